"""Proof files: what was proved is remembered, and strict loading refuses whatever is not vouched for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitproof.engine import load
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.source import read_source
from hitproof.spec.errors import ProofError, UsageError
from hitproof.spec.proof import AXIOMS_DIGEST, CLAIMS
from hitproof.spec.proof_file import ProofFile, read_proof
from hitproof.verification import verify
from hitproof.verification.memory import Memory, axioms_digest, same_question

MODEL = "gemma-3-4b"
QUICK = ["separation", "alignment"]


def proved_file(claims: list[str] | None = None, earlier: ProofFile | None = None) -> tuple[ProofFile, Memory]:
    """The proof file of a run over some claims for one model."""
    memory = Memory(earlier)
    profile = load_profile(MODEL)
    report = verify(
        read_source("mixed_attention"), [profile], claims=claims or QUICK, replayer=None, jobs=1, memory=memory
    )
    return memory.proof(report, [profile], axioms_digest()), memory


def as_if_all_proved(file: ProofFile, **changes: Any) -> ProofFile:
    """Verdicts as of a run that proved every claim; strict loading is tested without the time that this takes."""
    profile = file.profiles[MODEL].model_copy(update={"claims": dict.fromkeys(CLAIMS, "proved")})
    return file.verdicts().model_copy(update={"profiles": {MODEL: profile}, **changes})


@pytest.fixture(scope="module")
def proof() -> ProofFile:
    """What proving two quick claims leaves behind."""
    return proved_file()[0]


def test_spec_tells_the_axioms_that_there_are() -> None:
    """The running path knows the axioms by their digest alone; `make schema` writes it after a change."""
    assert axioms_digest() == AXIOMS_DIGEST


def test_what_was_proved_is_not_proved_again(proof: ProofFile) -> None:
    """A second run with the first one's file proves nothing anew, and answers the same."""
    again, memory = proved_file(earlier=proof)
    stored = sum(map(len, proof.parts.values()))
    assert memory.reused == stored > 0
    assert [result.verdict for result in again.report.claims] == ["proved", "proved"]  # type: ignore[union-attr]
    assert again.parts == proof.parts
    assert read_proof(proof.text().encode(), "file") == proof


@pytest.mark.parametrize(
    ("path", "value", "kept"),
    [
        (("every_object", "checks", "base_aligned", "because"), "another sentence", {"separation"}),
        (("every_object", "checks", "base_aligned", "require"), "self.offset == 0", {"separation"}),
        (("transitions", "defragment", "sets", "offset"), "1", set()),
    ],
)
def test_a_changed_rule_is_proved_anew_and_nothing_else(
    proof: ProofFile, path: tuple[str, ...], value: str, kept: set[str]
) -> None:
    """Separation reads the transitions and no check; alignment reads the whole rulebook."""
    memory = Memory(proof)
    changed, _ = read_source("mixed_attention").edited(path, value)
    verify(changed, [load_profile(MODEL)], claims=QUICK, replayer=None, jobs=1, memory=memory)
    assert memory.reused == sum(len(proof.parts[claim]) for claim in kept)


def test_a_file_of_another_verifier_tells_nothing(proof: ProofFile) -> None:
    """Another code, solver or meaning of the language: all is proved again."""
    for change in ({"verifier": "0" * 64}, {"solver": "z3 0"}, {"semantics": 0}):
        other = proof.model_copy(update=change)
        _, memory = proved_file(["alignment"], other)
        assert memory.reused == 0, change
        assert not same_question(other, proof.digest, [load_profile(MODEL)], QUICK, crossed=False)


def test_the_same_question_is_told_from_others(proof: ProofFile) -> None:
    """Another rulebook, model, list of claims, or a second solver: nothing is answered from the file."""
    profile = load_profile(MODEL)
    assert same_question(proof, proof.digest, [profile], QUICK, crossed=False)
    assert not same_question(proof, "0" * 64, [profile], QUICK, crossed=False)
    assert not same_question(proof, proof.digest, [load_profile("gemma-3-1b")], QUICK, crossed=False)
    assert not same_question(proof, proof.digest, [profile], [*QUICK, "sound"], crossed=False)
    assert not same_question(proof, proof.digest, [profile], QUICK, crossed=True)
    assert not same_question(proof.verdicts(), proof.digest, [profile], QUICK, crossed=False)


def test_strict_loading_takes_rules_that_are_proved_for_the_model(proof: ProofFile, tmp_path: Path) -> None:
    """Every required claim, this rulebook, this model, these axioms."""
    path = tmp_path / "proof.json"
    path.write_text(as_if_all_proved(proof).text(), "utf-8")
    assert load(MODEL, strict=True, proof=path).bound.profile.profile == MODEL


CHANGES: dict[str, Callable[[ProofFile], ProofFile]] = {
    "another rulebook": lambda file: as_if_all_proved(file, digest="1" * 64),
    "another meaning": lambda file: as_if_all_proved(file, semantics=99),
    "other axioms": lambda file: as_if_all_proved(file, axioms="2" * 64),
    "no such model": lambda file: as_if_all_proved(file, profiles={}),
    "two claims only": lambda file: file.verdicts(),
    "a claim left out": lambda file: as_if_all_proved(
        file,
        profiles={MODEL: file.profiles[MODEL].model_copy(update={"claims": dict.fromkeys(CLAIMS[1:], "proved")})},
    ),
    "a claim unknown": lambda file: as_if_all_proved(
        file,
        profiles={
            MODEL: file.profiles[MODEL].model_copy(
                update={"claims": {**dict.fromkeys(CLAIMS, "proved"), "sound": "unknown"}}
            )
        },
    ),
    "another model of that name": lambda file: as_if_all_proved(
        file,
        profiles={MODEL: file.profiles[MODEL].model_copy(update={"digest": "3" * 64})},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_strict_loading_refuses_what_is_not_vouched_for(proof: ProofFile, tmp_path: Path, change: str) -> None:
    """A typed error with the file, what it tells and what was wanted; nothing is loaded."""
    path = tmp_path / "proof.json"
    path.write_text(CHANGES[change](proof).text(), "utf-8")
    with pytest.raises(ProofError) as caught:
        load(MODEL, strict=True, proof=path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', "\x00", json.dumps({"format": 1, "more": 1})])
def test_what_is_no_proof_file_is_refused(tmp_path: Path, content: str) -> None:
    """Neither a truncated nor a foreign file loads anything; a missing one says how to make it."""
    path = tmp_path / "proof.json"
    with pytest.raises(ProofError, match="there is none"):
        load(MODEL, strict=True, proof=path)
    path.write_text(content, "utf-8")
    with pytest.raises(ProofError, match="cannot be read"):
        load(MODEL, strict=True, proof=path)


def test_a_proof_without_strictness_is_a_mistake(tmp_path: Path) -> None:
    """Who hands over a proof means it to be asked."""
    with pytest.raises(UsageError, match="strict loading alone"):
        load(MODEL, proof=tmp_path / "proof.json")


def test_only_the_deployments_key_vouches(proof: ProofFile, tmp_path: Path) -> None:
    """Signed content loads; unsigned, changed or otherwise signed content does not; without a key it is not asked."""
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    ours, theirs = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    key = ours.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path, plain = tmp_path / "proof.json", as_if_all_proved(proof)

    def signed(by: Ed25519PrivateKey) -> ProofFile:
        return plain.model_copy(update={"signature": by.sign(plain.signed_bytes()).hex()})

    path.write_text(signed(ours).text(), "utf-8")
    load(MODEL, strict=True, proof=path, key=key)
    for file, message in (
        (plain, "is not signed"),
        (signed(theirs), "signature is not of the given key"),
        (signed(ours).model_copy(update={"solver": "z3 99"}), "signature is not of the given key"),
    ):
        path.write_text(file.text(), "utf-8")
        with pytest.raises(ProofError, match=message):
            load(MODEL, strict=True, proof=path, key=key)
    with pytest.raises(UsageError, match="the public key cannot be read"):
        load(MODEL, strict=True, proof=path, key=b"no key")


def test_the_embedded_rulebook_comes_with_its_verdicts() -> None:
    """Strict loading works as installed, for every shipped model; `make proof` makes them anew after a change."""
    for model in shipped_profiles():
        assert load(model, strict=True).bound.profile.profile == model
