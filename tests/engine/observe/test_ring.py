"""The ring keeps the last decisions; its dumps hold no identity and are read with suspicion."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.observe import ObservedEngine, Redactor, Ring, read_ring
from hitproof.engine.observe.redact import LEFT_OUT
from hitproof.spec.decision import Decision, Reason
from hitproof.spec.errors import HitproofError, InputTooLargeError, MissingFileError, RingError, UsageError
from tests.engine.state_cases import bound_to, build_of, engine_of, random_build

RULES = bound_to("pooled").rulebook
SECRET = "s3cret-tenant-salt"


def ring_of(size: int = 8) -> Ring:
    """A ring with a key that is known, and a clock that stands."""
    return Ring(Redactor(RULES, b"k" * 32), size, lambda: 1_700_000_000.5)


def dumped(tmp_path: Path, count: int = 30) -> Path:
    """The dump of random decisions."""
    ring, random, engine = ring_of(100), Random(4), engine_of("pooled")
    for _ in range(count):
        ObservedEngine(engine, ring).decide(random_build(engine, random).state())
    path = tmp_path / "ring.jsonl"
    assert count == ring.dump(path)
    return path


def test_the_last_decisions_are_kept() -> None:
    """The oldest gives way, numbers go on, and a part may be asked for."""
    ring = ring_of(3)
    decisions = [Decision("reuse", n, n) for n in range(5)]
    for decision in decisions:
        ring.decided(decision, 0.25)
    assert [(3, decisions[2]), (4, decisions[3]), (5, decisions[4])] == [
        (one.number, one.decision) for one in ring.last()
    ]
    assert [5] == [one.number for one in ring.last(1)]
    assert () == ring.last(0)
    assert 3 == len(ring.last(99))


@pytest.mark.parametrize("size", [0, -1, 10_001])
def test_a_ring_without_bounds_is_refused(size: int) -> None:
    """The size is at least 1 and at most 10,000."""
    with pytest.raises(UsageError, match="another size"):
        ring_of(size)


def test_threads_share_a_ring() -> None:
    """Every decision gets a number of its own while others are written down."""
    ring = ring_of(10_000)

    def work() -> None:
        for _ in range(300):
            ring.decided(Decision("miss", 0, 0), 0.0)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert all(json.loads(line)["verdict"] == "miss" for line in ring.lines())
    for thread in threads:
        thread.join()
    assert list(range(1, 1201)) == sorted(one.number for one in ring.last())


def test_a_dump_is_read_back(tmp_path: Path) -> None:
    """Verdicts, lengths, plans and failed rules come back as they were decided."""
    ring, random, engine = ring_of(100), Random(4), engine_of("pooled")
    path = dumped(tmp_path)
    for _ in range(30):
        ObservedEngine(engine, ring).decide(random_build(engine, random).state())
    kept = read_ring(path)
    assert [(one.decision.verdict, one.decision.logical, one.decision.usable) for one in ring.last()] == [
        (one.verdict, one.logical, one.usable) for one in kept
    ]
    assert [list(one.decision.failed) for one in ring.last()] == [one.failed for one in kept]
    assert [[step.option for step in one.decision.plan] for one in ring.last()] == [
        [step.option for step in one.plan] for one in kept
    ]
    assert any(reason.values for one in kept for reason in one.reasons)


def test_reasons_are_written_on_request(tmp_path: Path) -> None:
    """Without them a dump tells rule ids alone."""
    ring = ring_of()
    build = build_of("pooled", 65, 8).all()
    build.pieces["entries"][0].generation = 99
    ObservedEngine(build.engine, ring).decide(build.state())
    (full,), (short,) = ([json.loads(line) for line in ring.lines(reasons=wanted)] for wanted in (True, False))
    assert full["reasons"]
    assert [] == short["reasons"]
    assert full["failed"] == short["failed"]


def test_no_identity_leaves_the_process(tmp_path: Path) -> None:
    """Salts, adapters, digests and fingerprints are hashed: equal ones look equal, and none can be read."""
    ring = ring_of()
    build = build_of("pooled", 65, 8).all()
    for piece in build.pieces["entries"]:
        piece.salt, piece.adapter, piece.recorded = SECRET, SECRET, SECRET
    ObservedEngine(build.engine, ring).decide(build.state())
    (line,) = ring.lines()
    assert SECRET not in line
    values = {path: value for one in json.loads(line)["reasons"] for path, value in one["values"].items()}
    assert values["self.salt"] != values["request.salt"]
    assert values["self.salt"] == values["self.adapter"]
    assert all(str(values[path]).startswith("~") for path in ("self.salt", "request.salt", "self.adapter"))
    other = Redactor(RULES)
    assert other.value("self.salt", SECRET) != Redactor(RULES).value("self.salt", SECRET)


IDENTITIES = sorted(
    f"{scope}.{name}"
    for scope, facts in (("self", RULES.objects["compressed_global"].facts), ("request", RULES.request))
    for name, fact in facts.items()
    if fact.type.kind == "identity"
)


@given(st.sampled_from(IDENTITIES), st.text(min_size=4) | st.binary(min_size=4))
def test_every_identity_is_hashed(path: str, value: Any) -> None:
    """Whatever an identity is, what is written has a fixed form and size."""
    told = Redactor(RULES).value(path, value)
    assert isinstance(told, str)
    assert 13 == len(told)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("self.generation", 7, 7),
        ("self.sealed", True, True),
        ("self.sealed", None, None),
        ("self.form", "demoted", "demoted"),
        ("self.form", "x" * 65, LEFT_OUT),
        ("self.generation", 2**63, LEFT_OUT),
        ("self.marks", frozenset(range(100)), {"members": list(range(8)), "of": 100}),
        ("length", 64, 64),
        ("self.not_declared", "who knows", LEFT_OUT),
        ("self.not_declared", frozenset({1}), LEFT_OUT),
    ],
)
def test_values_are_capped(path: str, value: Any, told: Any) -> None:
    """Numbers, words and sets within bounds are told; what is not declared is left out."""
    assert told == Redactor(RULES).value(path, value)


def test_a_flood_of_reasons_is_cut(tmp_path: Path) -> None:
    """A decision with very many reasons is written within the bounds that the reader has."""
    ring = ring_of()
    values = {f"self.fact{n}": n for n in range(100)}
    reasons = tuple(Reason(f"kv/{n}", "identity", "x" * 5000, values, "y" * 5000, "z" * 5000) for n in range(200))
    ring.decided(Decision("recompute", 9, 0, failed=tuple(one.rule for one in reasons), reasons=reasons), 0.0)
    ring.dump(tmp_path / "r.jsonl")
    (kept,) = read_ring(tmp_path / "r.jsonl")
    assert (32, 32, 16) == (len(kept.failed), len(kept.reasons), len(kept.reasons[0].values))


def line(**changed: object) -> str:
    """A line of a dump with some keys changed."""
    ring = ring_of()
    ring.decided(Decision("reuse", 5, 5), 0.0)
    return json.dumps({**json.loads(next(ring.lines())), **changed})


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("{", "Expecting"),
        ("[]", "list"),
        ("null", "NoneType"),
        ('{"number": NaN}', "NaN is no JSON"),
        ("[" * 100_000, ""),
        (line(verdict="maybe"), "verdict"),
        (line(logical=-1), "logical"),
        (line(logical="5"), "logical"),
        (line(logical=True), "logical"),
        (line(logical=10**400), ""),
        (line(time=1e999).replace("Infinity", "1e999"), "time"),
        (line(extra=1), "extra"),
        (line(failed=["x"] * 33), "failed"),
        (line(digest="x" * 501), "digest"),
        (line(plan=[{}]), "plan.0.group"),
        (line(dispositions={"kv": "burn"}), "dispositions.kv"),
    ],
)
def test_a_hostile_line_is_refused_with_its_place(tmp_path: Path, text: str, got: str) -> None:
    """Each is an error with file and line, and the lines before it do not save it."""
    path = tmp_path / "ring.jsonl"
    path.write_text(f"{line()}\n\n{text}\n", "utf-8")
    with pytest.raises(RingError) as caught:
        read_ring(path)
    assert (str(path), 3) == (caught.value.where.file, caught.value.where.line)
    assert got in str(caught.value.got)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """No bytes make the reader fail otherwise than by an error of ours."""
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    try:
        read_ring(path)
    except HitproofError as error:
        assert str(path) == error.where.file


def test_sizes_are_capped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line too long, too many lines and a file too large are refused before they are parsed."""
    path = tmp_path / "ring.jsonl"
    path.write_text(" " * (256 * 2**10 + 1), "utf-8")
    with pytest.raises(InputTooLargeError, match="too long, or too many"):
        read_ring(path)
    path.write_text("\n" * 10_001, "utf-8")
    with pytest.raises(InputTooLargeError, match="too long, or too many"):
        read_ring(path)
    path.write_text("\n" * 10_000, "utf-8")
    assert [] == read_ring(path)
    monkeypatch.setattr("hitproof.engine.observe.ring_file.LIMIT_BYTES", 9999)
    with pytest.raises(InputTooLargeError, match="too large"):
        read_ring(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder, and a folder that cannot be written."""
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(MissingFileError):
            read_ring(path)
    with pytest.raises(MissingFileError, match="cannot be written"):
        ring_of().dump(tmp_path / "none" / "ring.jsonl")
