"""Proof files of `hitproof verify`: read as a memory of what was proved, written whole, signed on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitproof.spec.profile import Profile
    from hitproof.spec.proof import VerifyReport
    from hitproof.spec.proof_file import ProofFile
    from hitproof.verification.memory import Memory

__all__ = ["Wanted", "check_wanted", "earlier_proof", "write_proofs", "write_verdicts"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of proof files.

    Args:
        proof: Read before and written after: a memory. Whoever can write it can make the next run believe what was
            never proved, so it is no certificate.
        verdicts: Written after: verdicts alone, for strict loading.
        sign: Private key (PEM, Ed25519) by which `verdicts` is signed.
    """

    proof: Path | None = None
    verdicts: Path | None = None
    sign: Path | None = None


def check_wanted(wanted: Wanted, *, partly: bool) -> None:
    """Refuse what cannot be asked, before anything is proved.

    Args:
        wanted: What is asked.
        partly: Whether only some claims are proved.

    Raises:
        UsageError: A signature without a file to sign, over what was remembered, or without the package for it.
        MissingFileError: A file cannot be written.
    """
    from hitproof.cli.output import check_target
    from hitproof.spec.errors import UsageError

    for path in (wanted.proof, wanted.verdicts):
        if path is not None:
            check_target(path)
    if wanted.sign is None:
        return
    if wanted.verdicts is None:
        raise UsageError("there is nothing to sign", expected="--verdicts FILE")
    if wanted.proof is not None:
        raise UsageError("what is signed is proved anew, and never remembered", got="--proof", expected="no --proof")
    if partly:
        raise UsageError("what is signed tells all claims", got="--claim", expected="no --claim")
    if find_spec("cryptography") is None:
        raise UsageError(
            "signatures need a package that is not installed",
            expected="cryptography",
            hint="pip install 'hitproof[sign]'",
        )
    _private_key(wanted.sign)


def earlier_proof(path: Path | None) -> ProofFile | None:
    """The proof file of an earlier run; None where there is none yet.

    Raises:
        ProofError: There is a file, and it is no proof file.
        MissingFileError: It cannot be read.
    """
    from hitproof.spec.errors import MissingFileError, Position
    from hitproof.spec.proof_file import read_proof

    if path is None or not path.exists():
        return None
    try:
        content = path.read_bytes()
    except OSError as error:
        where = Position(str(path))
        raise MissingFileError("the proof file cannot be read", where=where, got=error.strerror) from error
    return read_proof(content, str(path))


def write_proofs(wanted: Wanted, memory: Memory, report: VerifyReport, profiles: Sequence[Profile]) -> None:
    """Write the files that are asked for, each whole or not at all.

    Raises:
        InternalError: `spec/` tells other axioms than there are.
        MissingFileError: A file cannot be written.
    """
    from hitproof.cli.output import write_file
    from hitproof.spec.errors import InternalError
    from hitproof.spec.proof import AXIOMS_DIGEST
    from hitproof.verification.memory import axioms_digest

    if wanted.proof is None and wanted.verdicts is None:
        return
    if axioms_digest() != AXIOMS_DIGEST:
        raise InternalError(f"spec/proof.py tells other axioms than there are: {axioms_digest()}")
    proof = memory.proof(report, profiles, axioms_digest())
    if wanted.proof is not None:
        write_file(wanted.proof, proof.text())
    write_verdicts(wanted, proof)


def write_verdicts(wanted: Wanted, proof: ProofFile) -> None:
    """Write the verdicts of a proof file, signed where that is asked for.

    Raises:
        MissingFileError: The file cannot be written.
    """
    from hitproof.cli.output import write_file

    if wanted.verdicts is None:
        return
    verdicts = proof.verdicts()
    if wanted.sign is not None:
        signature = _private_key(wanted.sign).sign(verdicts.signed_bytes()).hex()
        verdicts = verdicts.model_copy(update={"signature": signature})
    write_file(wanted.verdicts, verdicts.text())


def _private_key(path: Path):  # type: ignore[no-untyped-def]  # the package is an extra
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    from hitproof.spec.errors import UsageError

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError("the private key cannot be read", got=type(error).__name__, expected="PEM, Ed25519") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError("the private key is of another kind", got=type(key).__name__, expected="Ed25519")
    return key
