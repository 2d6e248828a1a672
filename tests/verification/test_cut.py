"""The key of a part tells apart whatever its proof reads, and nothing else; what it does not tell is out of reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.edit import edit
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import InternalError
from hitproof.spec.facts import COUNT, Fact
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Rulebook
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.cut import Cutter
from hitproof.verification.parts import ASPECTS, EVERYTHING, Part, whole_part

FLASH = "deepseek-v4-flash"
Keys = dict[tuple[str, str], str]


def keys(bound: BoundRulebook, *claims: str) -> Keys:
    """The keys of all parts of some claims, by claim and label."""
    cutter = Cutter(bound)
    return {(claim, part.label): cutter.key(part) for claim in claims for part in ALL_CLAIMS[claim].parts_of(bound)}


def changed(before: Keys, after: Keys) -> set[tuple[str, str]]:
    """Claim and first word of the label, which is the group, of every part whose key is another one."""
    assert set(before) == set(after)
    return {(claim, label.split()[0]) for claim, label in before if before[claim, label] != after[claim, label]}


@pytest.fixture(scope="module")
def flash(source: RuleSource, profiles: dict[str, Profile]) -> BoundRulebook:
    """The embedded rulebook bound to a model with every kind of peer."""
    return bind_rulebook(resolve(source), profiles[FLASH])


def in_repair(name: str, key: str, value: object) -> Callable[[RuleSource], RuleSource]:
    """An edit of the declaration of a repair."""
    return lambda source: replace(source, repairs={**source.repairs, name: edit(source.repairs[name], (key,), value)})


def in_rules(*path: str, value: object) -> Callable[[RuleSource], RuleSource]:
    """An edit of a rule file."""
    return lambda source: source.edited(path, value)[0]


INDEX = ("objects", "routing_index")
EDITS: dict[str, tuple[Callable[[RuleSource], RuleSource], set[tuple[str, str]], set[tuple[str, str]]]] = {
    "condition of a check": (
        in_rules(*INDEX, "checks", "same_kv", "require", value="kv.ready"),
        {(claim, "csa_index") for claim in ("sound", "fail_closed", "deterministic", "repair_sound", "static_graph")},
        {("fail_closed", "csa_entries"), ("graph_covers_machine", "csa_index"), ("separation", "csa_index")},
    ),
    "condition of a peer": (
        in_rules("objects", "compressed_global", "checks", "bytes_whole", "require", value="self.bytes > 0"),
        {("sound", "csa_entries"), ("sound", "csa_index"), ("repair_sound", "csa_index"), ("fail_closed", "csa_index")},
        {("sound", "window"), ("graph_covers_machine", "csa_entries")},
    ),
    "condition of an option": (
        in_rules(*INDEX, "recovery", "remap", "when", value="kv.ready"),
        {("repair_sound", "csa_index"), ("deterministic", "csa_index")},
        {("sound", "csa_index"), ("fail_closed", "csa_index"), ("repair_sound", "csa_entries")},
    ),
    "effect": (
        in_rules(*INDEX, "recovery", "remap", "sets", "kv_generation", value=None),
        {("repair_sound", "csa_index"), ("static_graph", "csa_index")},
        {("sound", "csa_index"), ("fail_closed", "csa_index")},
    ),
    "sources": (
        in_rules(*INDEX, "recovery", "remap", "consumes", value=["kv"]),
        {("repair_sound", "csa_index")},
        {("sound", "csa_index")},
    ),
    "declaration of a repair": (
        in_repair("index_remap.yaml", "keeps", ["identity", "span", "life", "residence", "generations", "placement"]),
        {("repair_sound", "csa_index"), ("static_graph", "csa_index")},
        {("sound", "csa_index"), ("repair_sound", "csa_entries")},
    ),
    "guard of an event": (
        in_rules("transitions", "discard", "when", value="self.pins < 0"),
        {("sound", "csa_index"), ("separation", "csa_index"), ("graph_covers_machine", "window_boundary")},
        {("fail_closed", "csa_index"), ("repair_sound", "csa_index")},
    ),
    "what an event forgets": (
        in_rules("transitions", "demote_end", "forgets", value=["mapped_generation"]),
        {("sound", "csa_index"), ("separation", "csa_index")},
        {("fail_closed", "csa_index")},
    ),
    "needs": (
        in_rules("objects", "uncompressed_tail", "needs", "first", value="max(length - group.window, 0)"),
        {("sound", "window"), ("fail_closed", "window"), ("repair_sound", "window")},
        {("sound", "csa_entries"), ("separation", "window")},
    ),
    "invariant over pairs": (
        in_rules("invariants", "blocks_have_one_owner", "require", value="not self.address == other.address"),
        {("separation", "window"), ("separation", "csa_index")},
        {("sound", "window"), ("repair_sound", "window")},
    ),
    "flag": (
        in_rules("flags", "eager", "unless", value="not request.captured"),
        {("static_graph", "window")},
        {("sound", "window"), ("separation", "window")},
    ),
    "price": (
        in_rules(*INDEX, "recovery", "remap", "cost", value="runtime.launch_us"),
        set(),
        {(claim, "csa_index") for claim in ("sound", "deterministic", "repair_sound", "static_graph", "fail_closed")},
    ),
    "why, and where from": (
        in_rules(*INDEX, "checks", "same_kv", "because", value="another reason"),
        set(),
        {(claim, "csa_index") for claim in ("sound", "deterministic", "repair_sound", "fail_closed")},
    ),
}
CLAIMS = ("sound", "deterministic", "fail_closed", "repair_sound", "separation", "static_graph", "graph_covers_machine")


@pytest.mark.parametrize("what", EDITS)
def test_the_key_changes_with_what_a_proof_reads(what: str, source: RuleSource, flash: BoundRulebook) -> None:
    """Each edit moves the keys of those whose proof reads the place, and leaves the others alone."""
    change, moved, still = EDITS[what]
    after = bind_rulebook(resolve(change(source), lenient=True), flash.profile)
    found = changed(keys(flash, *CLAIMS), keys(after, *CLAIMS))
    assert moved <= found
    assert not still & found


SHARED: dict[str, Callable[[Rulebook], Rulebook]] = {
    "assumption": lambda book: replace(
        book, assumptions={k: v for k, v in book.assumptions.items() if k != "writers_tell"}
    ),
    "facts of the engine": lambda book: replace(book, engine_owned=book.engine_owned - {"epoch"}),
    "facts at the door": lambda book: replace(book, door=book.door[:-1]),
    "domain of a request's fact": lambda book: replace(
        book, request={**book.request, "length": replace(book.request["length"], hi=4096)}
    ),
    "type of a kernel's fact": lambda book: replace(
        book, kernel={**book.kernel, "layout": replace(book.kernel["layout"], type=COUNT)}
    ),
    "run time": lambda book: replace(book, runtime={**book.runtime, "new": Fact("new", COUNT)}),
}


@pytest.mark.parametrize("what", SHARED)
def test_what_all_proofs_rest_on_is_in_every_key(what: str, flash: BoundRulebook) -> None:
    """Assumptions and declarations of shared facts move every key."""
    after = replace(flash, rulebook=SHARED[what](flash.rulebook))
    before, now = keys(flash, *CLAIMS), keys(after, *CLAIMS)
    assert set() == {name for name in before if before[name] == now[name]}


def test_a_fact_of_the_segment_is_in_the_keys_of_its_object(flash: BoundRulebook) -> None:
    """So is the form that an object has at home."""
    old = flash.group("csa_index").rules
    narrow = {**old.facts, "end": replace(old.facts["end"], hi=4096)}
    for rules in (replace(old, facts=narrow), replace(old, home="full"), replace(old, mandatory=not old.mandatory)):
        groups = tuple(replace(group, rules=rules) if group.id == "csa_index" else group for group in flash.groups)
        now = replace(flash, groups=groups)
        before, after = (Cutter(bound).key(PROBE) for bound in (flash, now))
        assert before != after


@pytest.mark.parametrize(
    ("constant", "moved", "still"),
    [
        ({"window": 64}, {"sound", "fail_closed", "repair_sound"}, {"separation", "graph_covers_machine"}),
        ({"row_bytes": 999}, {"sound", "fail_closed", "repair_sound"}, {"separation", "graph_covers_machine"}),
        ({"alignment": 256}, {"sound", "static_graph", "repair_sound"}, {"graph_covers_machine"}),
        ({"stride": 8192}, {"repair_sound"}, {"separation", "graph_covers_machine", "sound"}),
        ({"receptive_field": 9}, {"repair_sound"}, {"separation", "graph_covers_machine", "fail_closed", "sound"}),
        ({}, set(), set(CLAIMS)),
    ],
    ids=["window", "row_bytes", "alignment", "stride", "receptive_field", "none"],
)
def test_constants_are_in_the_keys_of_those_who_read_them(
    constant: dict[str, int], moved: set[str], still: set[str], source: RuleSource, flash: BoundRulebook
) -> None:
    """Geometry tells models apart; layers and ids do not."""
    groups = tuple(
        group.model_copy(update={"constants": {**group.constants, **constant}, "layers": group.layers[:1]})
        if group.id == "window"
        else group
        for group in flash.profile.groups
    )
    after = bind_rulebook(flash.rulebook, flash.profile.model_copy(update={"groups": groups}))
    found = changed(keys(flash, *CLAIMS), keys(after, *CLAIMS))
    mine = {claim for claim, group in found if group == "window"}
    assert moved <= mine
    assert not still & mine


PROBE = Part("probe", ("csa_index",), ("about",))


@pytest.mark.parametrize(
    "other",
    [
        replace(PROBE, about=("else",)),
        replace(PROBE, groups=("csa_entries",)),
        replace(PROBE, groups=("csa_index", "csa_entries")),
        replace(PROBE, reads=frozenset({"options"})),
        replace(PROBE, reads=frozenset({"checks", "invariants"})),
        replace(PROBE, constants=frozenset({"ratio"})),
    ],
    ids=["about", "group", "groups", "less", "more", "constants"],
)
def test_what_a_part_is_about_is_in_its_key(other: Part, flash: BoundRulebook) -> None:
    """Two parts of one claim that ask different things never share a proof."""
    cutter = Cutter(flash)
    assert cutter.key(PROBE) != cutter.key(other)


def test_which_peer_is_which_is_in_the_key(flash: BoundRulebook) -> None:
    """The same groups read in other roles are another proof; other ids for the same groups are not."""
    swapped = {"csa_index": {"kv": "hca_entries"}}
    renamed = {group.id: f"the_{group.id}" for group in flash.groups}
    rewired = tuple(
        replace(group, peers={**group.peers, **swapped.get(group.id, {})}) if group.id in swapped else group
        for group in flash.groups
    )
    elsewhere = tuple(
        replace(group, id=renamed[group.id], peers={role: renamed[peer] for role, peer in group.peers.items()})
        for group in flash.groups
    )
    key = Cutter(flash).key(PROBE)
    assert key != Cutter(replace(flash, groups=rewired)).key(PROBE)
    assert key == Cutter(replace(flash, groups=elsewhere)).key(replace(PROBE, groups=("the_csa_index",)))


def test_a_rule_of_its_own_kind_is_never_taken_for_another(flash: BoundRulebook) -> None:
    """A value that a key cannot tell is an error, not a hole in the key."""
    strange: Any = object()
    groups = tuple(replace(group, every=strange) if group.id == "csa_index" else group for group in flash.groups)
    with pytest.raises(InternalError, match="which no key can tell"):
        Cutter(replace(flash, groups=groups)).key(PROBE)


READINGS: dict[str, Callable[[BoundRulebook], Any]] = {
    "options": lambda cut: list(cut.group("csa_index").options),
    "transitions": lambda cut: cut.group("csa_index").transitions[0],
    "recompute": lambda cut: cut.group("csa_index").recompute.when,  # type: ignore[union-attr]
    "a constant": lambda cut: cut.group("csa_index").constants.get("layer_count"),
    "layers": lambda cut: len(cut.group("csa_index").layers),
    "rules before binding": lambda cut: bool(cut.group("csa_index").rules.checks),
    "invariants": lambda cut: list(cut.invariants),
    "flags": lambda cut: cut.flags[0],
    "repairs": lambda cut: cut.rulebook.repairs["relayout"],
    "the digest": lambda cut: cut.rulebook.digest.upper(),
    "other groups": lambda cut: cut.group("window"),
}


@pytest.mark.parametrize("what", READINGS)
def test_what_a_part_does_not_name_is_out_of_reach(what: str, flash: BoundRulebook) -> None:
    """A proof that reads more than its key tells stops with an error of the program."""
    with pytest.raises((InternalError, KeyError)):
        READINGS[what](Cutter(flash).cut(PROBE))


def test_prices_are_read_by_name_alone(flash: BoundRulebook) -> None:
    """Options come without their prices, unless those are named too."""
    cutter = Cutter(flash)
    options = replace(PROBE, reads=frozenset({"options"}))
    with pytest.raises(InternalError, match="the cost of"):
        bool(cutter.cut(options).group("csa_index").options[0].cost)
    priced = replace(PROBE, reads=frozenset({"options", "costs"}))
    assert flash.group("csa_index").options == cutter.cut(priced).group("csa_index").options


def test_unknown_aspects_are_refused(flash: BoundRulebook) -> None:
    """A misspelt aspect would withhold nothing."""
    with pytest.raises(InternalError, match="no aspect 'check'"):
        Cutter(flash).cut(replace(PROBE, reads=frozenset({"check"})))


def test_a_claim_without_parts_reads_everything_and_shares_with_nobody(
    source: RuleSource, profiles: dict[str, Profile], flash: BoundRulebook
) -> None:
    """The whole part's cut is the rulebook itself; its key is of the whole profile."""
    part, cutter = whole_part(flash), Cutter(flash)
    cut = cutter.cut(part)
    assert EVERYTHING == part.reads
    assert not EVERYTHING & ASPECTS
    assert (flash.groups, flash.rulebook) == (cut.groups, cut.rulebook)
    others = [bind_rulebook(flash.rulebook, profiles[name]) for name in ("gemma-3-27b", "qwen3-next-80b-a3b")]
    assert 3 == len({cutter.key(part), *(Cutter(other).key(whole_part(other)) for other in others)})
