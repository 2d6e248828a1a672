"""Counterexamples as text, as a sequence diagram and as a trace."""

from __future__ import annotations

from typing import Any

from hitproof.cli.stories import itf, rule_lines, sequence_diagram, story_lines
from hitproof.spec.proof import Counterexample
from hitproof.spec.scenario import Scenario
from hitproof.spec.seen import ConjunctSeen, FactValue, RuleSeen, StepSeen

SEEN = RuleSeen(
    rule="window/covers_window",
    place="tail.yaml:40:18",
    moment="at 64 tokens",
    conjuncts=[
        ConjunctSeen(text="needs.to <= self.end", holds=True, values={"self.end": 64}),
        ConjunctSeen(text="self.start <= needs.first", holds=False, values={"self.start": 1, "needs.first": 0}),
        ConjunctSeen(text="self.sealed", holds=None, values={"self.sealed": None}),
    ],
    changes={"self.marks": ([], [1, 2]), "self.published": (True, False)},
)
STORY = Scenario.model_validate(
    {
        "scenario": "story",
        "title": "a story",
        "profile": "gemma-3-27b",
        "request": {"length": 9},
        "segments": [{"id": "s", "group": "full"}],
    }
)


def found(**given: Any) -> Counterexample:
    """One that the engine has replayed."""
    usual = {"sentence": "rows are missing", "rule": "a/b", "place": "a.yaml:1:1", "scenario": STORY, "replayed": True}
    return Counterexample.model_validate({**usual, "seen": [SEEN], **given})


def steps(**last: Any) -> list[StepSeen]:
    """A lease takes a segment, and it is evicted."""
    state: dict[str, FactValue] = {
        "pins": 0,
        "form": "full",
        "address": 2**61,
        "marks": [1, 2],
        "rate": 0.5,
        "end": None,
    }
    return [
        StepSeen(segments={"s": state}),
        StepSeen(who="l", does="take", to=["s"], segments={"s": {**state, "pins": 1}}, leases={"l": {"reading": True}}),
        StepSeen(**{"does": "evict", "to": ["s"], "segments": {"s": {**state, "form": "gone"}}, **last}),
    ]


def test_each_part_is_told_with_its_truth_and_its_values() -> None:
    """One line a part, below the rule with its place; what has changed is told last."""
    assert [
        "    window/covers_window, at 64 tokens (tail.yaml:40:18)",
        "      holds   needs.to <= self.end   [self.end = 64]",
        "      fails   self.start <= needs.first   [self.start = 1, needs.first = 0]",
        "      unknown self.sealed   [self.sealed = unknown]",
        "      changes self.marks: {} -> {1, 2}; self.published: true -> false",
    ] == rule_lines(SEEN)


def test_what_the_engine_did_is_told() -> None:
    """Replayed, done otherwise with what it did, or not replayed at all."""
    assert "  the engine replayed it" == story_lines(found())[-1]
    contrary = "\n".join(
        story_lines(found(replayed=False, seen=[], differences=["accepted: expected True, got False"]))
    )
    assert "accepted: expected True, got False" in contrary
    assert "please report it" in contrary
    assert "  the engine could not replay it" == story_lines(found(replayed=False, seen=[]))[-1]


def test_the_diagram_has_a_message_a_step_and_what_it_changed() -> None:
    """Leases and the engine act on segments; at the end stands what goes wrong and each part that does not hold."""
    lines = [line.strip() for line in sequence_diagram(found(), steps()).splitlines()]
    assert "sequenceDiagram" == lines[0]
    assert [
        "participant p0 as l",
        "participant p1 as engine",
        "participant p2 as s (full)",
        "p0->>p2: take",
        "Note over p2: pins: 0 to 1",
        "p1->>p2: evict",
        "Note over p2: pins: 1 to 0<br/>form: full to gone",
        "Note over p0,p2: rows are missing",
        "Note over p0,p2: window/covers_window: self.start #60;= needs.first fails, self.start = 1, needs.first = 0",
        "Note over p0,p2: window/covers_window: self.sealed is unknown, self.sealed = unknown",
    ] == lines[3:]


def test_what_was_refused_has_an_arrow_of_its_own() -> None:
    """An event that did not happen."""
    assert "p1--xp2: evict: no" in sequence_diagram(found(), steps(happened=False))


def test_text_of_rule_files_cannot_end_a_line_of_the_diagram() -> None:
    """Line ends, statement ends and markup become harmless."""
    text = sequence_diagram(found(sentence="a\nb; c <script> #x", seen=[]), steps())
    assert "Note over p0,p2: a b#59; c #60;script#62; #35;x" in text


def test_the_trace_has_a_state_a_step_and_one_set_of_variables() -> None:
    """Each state has every variable, and none beside them; the first is the beginning."""
    trace = itf(found(), steps())
    assert ["action", "segment_s", "lease_l"] == trace["vars"]
    assert [0, 1, 2] == [state["#meta"]["index"] for state in trace["states"]]
    assert all({"#meta", *trace["vars"]} == set(state) for state in trace["states"])
    assert ["the beginning", "l take s", "evict s"] == [state["action"] for state in trace["states"]]
    assert [False, True, False] == [state["lease_l"]["taken"] for state in trace["states"]]


def test_values_of_the_trace_are_those_of_the_format() -> None:
    """Sets and large numbers have their tags; what is unknown or a fraction is no value of the format."""
    (first, *_) = itf(found(), steps())["states"]
    assert {
        "pins": 0,
        "form": "full",
        "address": {"#bigint": str(2**61)},
        "marks": {"#set": [1, 2]},
        "rate": {"#unserializable": "0.5"},
        "end": {"#unserializable": "unknown"},
    } == first["segment_s"]
