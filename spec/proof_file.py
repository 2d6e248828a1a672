"""What was proved, as a file beside a rulebook: by whom, about what exactly, and with which parts to be proved once."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hitproof.spec.errors import Position, ProofError
from hitproof.spec.profile import Profile
from hitproof.spec.proof import ClaimVerdict, VerifyReport

__all__ = ["MAX_PROOF_BYTES", "ProofFile", "ProvedProfile", "StoredOutcome", "profile_digest", "read_proof"]

MAX_PROOF_BYTES = 64 << 20
"""Nothing longer is parsed."""

_Digest = Field(pattern=r"^[0-9a-f]{64}$")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoredOutcome(_Model):
    """What proving one part came to; only a part without a gap and without a counterexample is stored.

    Args:
        crossed: A second solver was asked as well, and agreed.
    """

    obligations: int = Field(ge=0)
    seconds: float
    witness: str | None
    covered: list[str]
    count: int
    rules: dict[str, str]
    decisive: list[str]
    alone: bool
    agreed: int = Field(ge=0)
    crossed: bool


class ProvedProfile(_Model):
    """One model: its digest, and the verdict of each claim."""

    digest: str = _Digest
    claims: dict[str, ClaimVerdict]


class ProofFile(_Model):
    """What was proved of one rulebook.

    Args:
        format: Version of this shape.
        rulebook: Its name.
        digest: Digest of its files.
        semantics: Version of the rule language's meaning.
        axioms: Digest of the axioms, which are written from papers.
        verifier: Digest of the verifier's own code, its axioms among it.
        solver: Name and version of the solver.
        profiles: Verdicts, model by model.
        report: The whole answer, for who asks the same again; None in a file that only tells verdicts.
        parts: What was proved of each claim, by the digest of all that its proof reads.
        signature: Ed25519 over everything else, as hexadecimal text; None where nobody has signed.
    """

    format: Literal[1] = 1
    rulebook: str
    digest: str = _Digest
    semantics: int
    axioms: str = _Digest
    verifier: str = _Digest
    solver: str
    profiles: dict[str, ProvedProfile]
    report: VerifyReport | None
    parts: dict[str, dict[str, StoredOutcome]]
    signature: str | None = Field(default=None, pattern=r"^[0-9a-f]{128}$")

    def signed_bytes(self) -> bytes:
        """What a signature is over: everything but itself, as canonical JSON."""
        data: Any = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

    def verdicts(self) -> ProofFile:
        """The verdicts alone, unsigned: what strict loading asks for."""
        return self.model_copy(update={"report": None, "parts": {}, "signature": None})

    def text(self) -> str:
        """The file's text."""
        data: Any = self.model_dump(mode="json")
        return json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True) + "\n"


def profile_digest(profile: Profile) -> str:
    """Digest of a model's groups and constants."""
    return hashlib.sha256(profile.model_dump_json().encode()).hexdigest()


def read_proof(content: bytes, name: str) -> ProofFile:
    """A proof file from its bytes.

    Raises:
        ProofError: It is too long, no JSON, or of another shape.
    """
    if len(content) > MAX_PROOF_BYTES:
        where = Position(name)
        raise ProofError("the proof file is too long", where=where, got=len(content), expected=MAX_PROOF_BYTES)
    try:
        return ProofFile.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(str(part) for part in first["loc"])
        said = f"{at}: {first['msg']}"
        raise ProofError("the proof file cannot be read", where=Position(name), got=said) from error
