"""`verify --proof`, `--verdicts` and `--sign`: files that are whole, and requests that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.engine import load
from hitproof.spec.errors import ProofError
from hitproof.spec.proof_file import read_proof
from tests.cli.running import run

ASKED = ("verify", "mixed_attention", "--profile", "gemma-3-4b", "--claim", "alignment")


def test_the_memory_answers_a_second_time_without_the_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has changed, so nothing is asked."""
    memory = tmp_path / "memory.json"
    first = run(*ASKED, "--proof", str(memory))
    assert first.code == 0
    assert read_proof(memory.read_bytes(), "memory").parts["alignment"]

    def must_not(*_: object, **__: object) -> None:
        raise AssertionError("the solver was asked")

    monkeypatch.setattr("hitproof.verification.verify", must_not)
    second = run(*ASKED, "--proof", str(memory), "--verdicts", str(tmp_path / "verdicts.json"))
    assert (second.code, second.out) == (0, first.out)
    assert read_proof((tmp_path / "verdicts.json").read_bytes(), "verdicts").report is None


def test_what_makes_no_sense_is_refused_before_anything_is_proved(tmp_path: Path) -> None:
    """Exit code 3, and no file."""
    key, memory = tmp_path / "key.pem", tmp_path / "memory.json"
    key.write_text("no key", "utf-8")
    for more in (
        ("--sign", str(key)),
        ("--sign", str(key), "--verdicts", str(tmp_path / "v.json"), "--proof", str(memory)),
        ("--sign", str(key), "--verdicts", str(tmp_path / "v.json")),
        ("--proof", str(tmp_path / "missing" / "file.json")),
    ):
        assert run(*ASKED, *more).code == 3, more
    memory.write_text("{}", "utf-8")
    answer = run(*ASKED, "--proof", str(memory))
    assert answer.code == 3
    assert "the proof file cannot be read" in answer.err
    assert memory.read_text("utf-8") == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key.pem", "memory.json"]


def test_signed_verdicts_are_taken_by_the_key_of_the_deployment(tmp_path: Path) -> None:
    """A signature of one claim is refused: what is signed tells all claims."""
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = tmp_path / "key.pem"
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    answer = run(*ASKED, "--verdicts", str(tmp_path / "v.json"), "--sign", str(key))
    assert answer.code == 3
    assert "what is signed tells all claims" in answer.err


def test_verdicts_of_one_claim_vouch_for_nothing(tmp_path: Path) -> None:
    """Strict loading has its own list of claims."""
    path = tmp_path / "verdicts.json"
    assert run(*ASKED, "--verdicts", str(path)).code == 0
    with pytest.raises(ProofError, match="not every claim is proved"):
        load("gemma-3-4b", strict=True, proof=path)
