"""One call from names to an engine."""

from __future__ import annotations

from pathlib import Path

from hitproof.engine.decide import Engine
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.rules.source import rulebook_folder
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile

__all__ = ["PROOF_NAME", "load", "proof_beside"]

PROOF_NAME = "rulebook.proof.json"
"""Name of the proof file in a rulebook's folder."""


def load(
    profile: str | Path | Profile,
    rulebook: str | Path = "mixed_attention",
    *,
    strict: bool = False,
    proof: str | Path | None = None,
    key: str | Path | bytes | None = None,
) -> Engine:
    """Load a rulebook, bind it to a model and compile the engine.

    Args:
        profile: A shipped profile's name, a file, or a profile.
        rulebook: An embedded rulebook's name, a folder, or a `rulebook.yaml`.
        strict: Refuse rules that are not proved for this model.
        proof: The proof file; `rulebook.proof.json` beside the rulebook without.
        key: Public key (PEM, as a file or as bytes) of who must have signed the proof. It comes from the deployment,
            never from beside the rulebook.

    Raises:
        HitproofError: With file, line, column and rule id.
        ProofError: Strict, and there is no proof of just these rules for just this model, or none that is signed.
        UsageError: A proof or a key is given, and the loading is not strict.
    """
    model = profile if isinstance(profile, Profile) else load_profile(profile)
    if not strict and (proof is not None or key is not None):
        raise UsageError("a proof is asked for by strict loading alone", expected="strict=True")
    rules = load_rulebook(rulebook)
    if strict:
        from hitproof.engine.strict import require_proof

        require_proof(rules, model, proof_beside(rulebook) if proof is None else Path(proof), key)
    return Engine(bind_rulebook(rules, model))


def proof_beside(rulebook: str | Path) -> Path:
    """Where the proof of a rulebook lies unless somebody says otherwise."""
    return rulebook_folder(rulebook) / PROOF_NAME
