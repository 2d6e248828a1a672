"""Strict loading: rules run only where a proof of just these rules and just this model says that all claims hold."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hitproof.spec.errors import Position, ProofError, UsageError
from hitproof.spec.profile import Profile
from hitproof.spec.proof import AXIOMS_DIGEST, CLAIMS, SEMANTICS_VERSION
from hitproof.spec.proof_file import ProofFile, profile_digest, read_proof
from hitproof.spec.rulebook import Rulebook

__all__ = ["require_proof"]


def require_proof(rulebook: Rulebook, profile: Profile, path: Path, key: str | Path | bytes | None) -> ProofFile:
    """Ask a proof file whether it vouches for these rules and this model; everything that it names is worked out anew.

    Args:
        rulebook: The rules as they were loaded.
        profile: The model.
        path: The proof file.
        key: Public key of who must have signed it; None where its place is trusted.

    Raises:
        ProofError: It does not vouch for them, and why.
        UsageError: The key cannot be used, or the package that checks signatures is missing.
    """
    where = Position(str(path))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ProofError(
            "strict loading needs a proof, and there is none",
            where=where,
            got=error.strerror,
            hint=f"hitproof verify {rulebook.name} --proof {path}",
        ) from error
    proof = read_proof(content, str(path))
    if key is not None:
        _must_be_signed(proof, where, key)
    for what, told, ours in (
        ("rulebook", proof.digest, rulebook.digest),
        ("meaning of the rule language", proof.semantics, SEMANTICS_VERSION),
        ("axioms", proof.axioms, AXIOMS_DIGEST),
    ):
        if told != ours:
            raise ProofError(f"the proof is of another {what}", where=where, got=_short(told), expected=_short(ours))
    proved = proof.profiles.get(profile.profile)
    if proved is None:
        raise ProofError(
            f"nothing is proved for the model '{profile.profile}'",
            where=where,
            got=", ".join(sorted(proof.profiles)) or "no model",
        )
    ours = profile_digest(profile)
    if proved.digest != ours:
        raise ProofError(
            f"the proof is of another model named '{profile.profile}'",
            where=where,
            got=_short(proved.digest),
            expected=_short(ours),
        )
    # The list of claims is this version's own: a file that names fewer vouches for less.
    open_claims = [claim for claim in CLAIMS if proved.claims.get(claim) != "proved"]
    if open_claims:
        verdicts = {claim: proved.claims.get(claim, "not asked") for claim in open_claims}
        raise ProofError(
            f"not every claim is proved for the model '{profile.profile}'",
            where=where,
            got=", ".join(f"{claim}: {verdict}" for claim, verdict in verdicts.items()),
            expected="every claim proved",
        )
    return proof


def _must_be_signed(proof: ProofFile, where: Position, key: str | Path | bytes) -> None:
    if find_spec("cryptography") is None:
        raise UsageError(
            "signatures need a package that is not installed",
            expected="cryptography",
            hint="pip install 'hitproof[sign]'",
        )
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(key if isinstance(key, bytes) else Path(key).read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError("the public key cannot be read", got=type(error).__name__, expected="PEM, Ed25519") from error
    if not isinstance(public, Ed25519PublicKey):
        raise UsageError("the public key is of another kind", got=type(public).__name__, expected="Ed25519")
    if proof.signature is None:
        raise ProofError("the proof is not signed", where=where, expected="a signature of the given key")
    try:
        public.verify(bytes.fromhex(proof.signature), proof.signed_bytes())
    except InvalidSignature as error:
        raise ProofError(
            "the proof's signature is not of the given key, or not of this content", where=where
        ) from error


def _short(value: object) -> object:
    return value[:12] if isinstance(value, str) else value
