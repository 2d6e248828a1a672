"""A rulebook is bound to a model: constants folded, peers found, ranks spread, or what is missing is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import Literal, reads, text
from hitproof.spec.errors import BindError, SchemaError
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Rulebook

FULL = {"row_bytes": 1024, "stride": 4096}
ROWS = {"row_bytes": 128, "ratio": 4, "row_tokens": 4}


def profile(*groups: Mapping[str, Any], **constants: int | bool) -> Profile:
    """A model of two layers with these groups, in both layers where they say nothing else."""
    whole = [{"layers": [0, 1], **group} for group in groups]
    about = {"profile": "small", "title": "Small", "layers": 2, "sources": ["none"]}
    return Profile.model_validate({**about, "constants": constants, "groups": whole})


def full(**constants: int | bool) -> dict[str, Any]:
    """A group of full keys and values."""
    return {"id": "full", "object": "full_kv", "constants": {**FULL, **constants}}


def index(kv: str | None = "full", **constants: int | bool) -> dict[str, Any]:
    """A group of index keys."""
    peers = {} if kv is None else {"kv": kv}
    return {"id": "index", "object": "routing_index", "constants": {**ROWS, "ratio": 1, **constants}, "peers": peers}


def checks(group: BoundGroup) -> dict[str, str]:
    """The checks of a group as text, by id."""
    return {check.id: text(check.require) for check in group.checks}


class TestConstants:
    """What a profile gives takes the place of its name."""

    def test_no_constant_is_left(self, rulebook: Rulebook) -> None:
        """In no check, option, cost, effect, guard or disposition of any shipped model."""
        for bound in (bind_rulebook(rulebook, load_profile(name)) for name in shipped_profiles()):
            for group in bound.groups:
                nodes = [check.require for check in group.checks]
                nodes += [node for option in group.options for node in (option.when, option.cost)]
                nodes += [node for option in group.options for node in option.effect.sets.values()]
                nodes += [one.when for one in group.transitions if one.when is not None]
                nodes += [one.when for one in group.dispositions]
                assert not any(path.startswith("group.") for node in nodes for path in reads(node)), group.id

    def test_a_default_stands_where_the_profile_says_nothing(self, rulebook: Rulebook) -> None:
        """The rulebook's, then the object's, then the profile's own."""
        bound = bind_rulebook(rulebook, profile(full(), {"id": "edge", "object": "window_boundary"}, alignment=64))
        assert (64, True) == tuple(bound.group("full").constants[name] for name in ("alignment", "has_bytes"))
        assert bound.group("edge").constants["has_bytes"] is False
        own = bind_rulebook(rulebook, profile(full(alignment=128), alignment=64))
        assert 128 == own.group("full").constants["alignment"]

    def test_applies_drops_rules(self, rulebook: Rulebook) -> None:
        """A field without meaning takes no part; that is not the same as unknown."""
        bound = bind_rulebook(rulebook, profile(full(has_v=False, scaled=True)))
        names = checks(bound.group("full"))
        assert "scale_matches" in names
        assert not {"v_layout_matches", "at_stored_boundary"} & set(names)
        assert "v_layout_matches" in checks(bind_rulebook(rulebook, profile(full(has_v=True))).group("full"))

    def test_an_option_mends_no_check_that_was_dropped(self, rulebook: Rulebook) -> None:
        """What takes no part need not be mended."""
        group = bind_rulebook(rulebook, profile(full(has_v=False))).group("full")
        relayout = next(option for option in group.options if option.id == "relayout")
        assert {"layout_matches", "kernel_version_matches"} == relayout.mends

    def test_a_record_without_bytes_has_no_option_on_bytes(self, rulebook: Rulebook) -> None:
        """It is written anew, and never promoted or measured."""
        group = bind_rulebook(rulebook, profile({"id": "edge", "object": "window_boundary"})).group("edge")
        assert ["redetermine"] == [option.id for option in group.options]

    def test_a_missing_constant_is_told_with_the_rule(self, rulebook: Rulebook) -> None:
        """Its name, and the file, line and column of the expression that reads it."""
        with pytest.raises(BindError) as caught:
            bind_rulebook(rulebook, profile({"id": "full", "object": "full_kv"}))
        error = caught.value
        assert "row_bytes" in f"{error.got} {error.message}"
        assert error.rule is not None and error.rule.startswith("full_kv/")
        assert error.where.file.endswith("full_kv.yaml") and error.where.line

    def test_a_constant_that_no_rule_knows_is_told(self, rulebook: Rulebook) -> None:
        """A misspelt constant would otherwise be a default."""
        with pytest.raises(BindError, match="declares no group fact 'alignement'") as caught:
            bind_rulebook(rulebook, profile(full(alignement=64)))
        assert ("small/full", "alignement") == (caught.value.rule, caught.value.got)

    def test_a_divisor_must_be_positive(self, rulebook: Rulebook) -> None:
        """An alignment of nothing is no alignment."""
        with pytest.raises(BindError, match="divisor") as caught:
            bind_rulebook(rulebook, profile(full(alignment=0)))
        assert caught.value.where.file.endswith("every_object.yaml")

    def test_a_boundary_that_is_no_constant_is_told(self, source: RuleSource) -> None:
        """Multiples of a length are no boundaries."""
        changed, where = source.edited(("objects", "full_kv", "resumable"), {"every": "length"})
        with pytest.raises(BindError, match="divisor") as caught:
            bind_rulebook(resolve(changed), profile(full()))
        assert ("full_kv/resumable", where.line) == (caught.value.rule, caught.value.where.line)

    def test_multiples_are_counted_out(self, source: RuleSource) -> None:
        """The engine proposes them as lengths."""
        changed, _ = source.edited(("objects", "full_kv", "resumable"), {"every": "group.row_tokens * 16"})
        group = bind_rulebook(resolve(changed), profile(full())).group("full")
        assert ("every", 16) == (group.resumable, group.every)
        assert "length % 16 == 0" == checks(group)["resumable"]

    def test_an_object_without_rules_is_told(self, source: RuleSource) -> None:
        """The objects that have some are listed."""
        changed, _ = source.edited(("objects", "recurrent_state"), None)
        changed, _ = changed.edited(("demotion", "idle_above_high_water", "objects", "recurrent_state"), None)
        smaller, _ = changed.edited(("produces", "recurrent_state"), None)
        state = {"id": "state", "object": "recurrent_state", "constants": {"state_bytes": 64, "stride": 4096}}
        with pytest.raises(BindError, match="no rules for 'recurrent_state'") as caught:
            bind_rulebook(resolve(smaller), profile(state))
        assert "full_kv" in str(caught.value.expected)


class TestPeers:
    """Roles are played by groups."""

    def test_a_role_that_one_group_fits_need_not_be_named(self, rulebook: Rulebook) -> None:
        """It must have all layers of the group."""
        assert {"kv": "full"} == bind_rulebook(rulebook, profile(full(), index(None))).group("index").peers
        apart = profile({**full(), "layers": [0]}, index(None))
        with pytest.raises(BindError, match="needs a peer"):
            bind_rulebook(rulebook, apart)

    def test_a_role_that_two_groups_fit_must_be_named(self, rulebook: Rulebook) -> None:
        """Nothing is guessed."""
        entries = {"id": "entries", "object": "compressed_global", "constants": ROWS}
        with pytest.raises(BindError, match="needs a peer"):
            bind_rulebook(rulebook, profile(full(), entries, index(None)))
        bound = bind_rulebook(rulebook, profile(full(), entries, index("entries")))
        assert {"kv": "entries"} == bound.group("index").peers

    def test_a_peer_that_a_check_reads_is_needed(self, rulebook: Rulebook) -> None:
        """The role and the objects that can play it are told, at the check."""
        with pytest.raises(BindError, match="needs a peer that the profile does not give") as caught:
            bind_rulebook(rulebook, profile(index(None)))
        error = caught.value
        assert ("no group for the role kv", "a group of compressed_global or full_kv") == (error.got, error.expected)
        assert error.rule == "routing_index/same_kv"
        assert error.where.file.endswith("routing_index.yaml") and error.where.line

    def test_a_peer_of_the_wrong_object_is_told(self, rulebook: Rulebook) -> None:
        """With the objects that fit the role."""
        edge = {"id": "edge", "object": "window_boundary"}
        with pytest.raises(BindError, match="peer 'kv' of group 'index' has the wrong object") as caught:
            bind_rulebook(rulebook, profile(full(), edge, index("edge")))
        assert ("small/index", "window_boundary") == (caught.value.rule, caught.value.got)
        assert "compressed_global, full_kv" == caught.value.expected

    def test_a_role_that_the_object_has_not_is_told(self, rulebook: Rulebook) -> None:
        """With the roles that it has."""
        wrong = {**index(), "peers": {"kv": "full", "tail": "full"}}
        with pytest.raises(BindError, match="peer 'tail'") as caught:
            bind_rulebook(rulebook, profile(full(), wrong))
        assert "one of the roles kv, inputs, manifest" == caught.value.expected

    def test_an_option_without_its_peer_takes_no_part(self, rulebook: Rulebook) -> None:
        """Without kept inputs nothing is filled; without a manifest nothing comes back."""
        names = {option.id for option in bind_rulebook(rulebook, profile(full())).group("full").options}
        assert {"verify", "copy_open_extent", "bounce", "relayout", "requantize"} == names

    def test_an_option_that_reads_a_peer_takes_no_part_without_it(self, source: RuleSource) -> None:
        """Also where it does not consume what it reads: its condition could never be surely true."""
        path = ("objects", "routing_index", "recovery", "remap", "when")
        changed, _ = source.edited(path, "self.form == home and known(inputs.end)")
        group = bind_rulebook(resolve(changed), profile(full(), index())).group("index")
        assert "remap" not in {option.id for option in group.options}

    def test_a_disposition_that_reads_a_peer_takes_no_part_without_it(self, source: RuleSource) -> None:
        """What cannot be asked decides nothing."""
        path = ("objects", "routing_index", "disposition", "orphaned", "when")
        changed, _ = source.edited(path, "self.kv_content != inputs.recorded")
        group = bind_rulebook(resolve(changed), profile(full(), index())).group("index")
        assert "orphaned" not in {one.id for one in group.dispositions}

    def test_a_healthy_value_that_reads_a_peer_is_left_out_without_it(self, source: RuleSource) -> None:
        """The fact is unknown in such a scenario."""
        changed, _ = source.edited(("objects", "full_kv", "healthy", "end"), "inputs.end")
        assert "end" not in bind_rulebook(resolve(changed), profile(full())).group("full").healthy

    def test_groups_stand_after_their_peers(self, rulebook: Rulebook) -> None:
        """Whatever the order of the profile."""
        for given in (profile(index(), full()), *map(load_profile, shipped_profiles())):
            seen: set[str] = set()
            for group in bind_rulebook(rulebook, given).groups:
                assert seen.issuperset(group.peers.values()), group.id
                seen.add(group.id)


class TestRanks:
    """A rank is one more group."""

    def test_a_group_is_spread_over_its_ranks(self, rulebook: Rulebook) -> None:
        """Each with its own peers."""
        bound = bind_rulebook(rulebook, profile(full(), index(), ranks=2))
        assert {"full@0", "full@1", "index@0", "index@1"} == {group.id for group in bound.groups}
        assert {"kv": "full@1"} == bound.group("index@1").peers

    def test_a_peer_on_every_rank_may_be_shared(self, rulebook: Rulebook) -> None:
        """One record serves all ranks."""
        edge = {"id": "edge", "object": "window_boundary", "constants": {"ranks": 1}}
        tail = {"id": "tail", "object": "uncompressed_tail", "constants": {**FULL, "window": 8, "receptive_field": 14}}
        bound = bind_rulebook(rulebook, profile(edge, tail, ranks=2))
        assert [{"boundary": "edge"}] * 2 == [bound.group(f"tail@{rank}").peers for rank in (0, 1)]

    @pytest.mark.parametrize(("own", "other", "expected"), [(1, 2, "1"), (4, 2, "1 or 4"), (2, 4, "1 or 2")])
    def test_a_peer_on_other_ranks_is_told(self, rulebook: Rulebook, own: int, other: int, expected: str) -> None:
        """Which of its ranks would be read cannot be told."""
        with pytest.raises(BindError, match="spread over other ranks") as caught:
            bind_rulebook(rulebook, profile(full(ranks=other), index(ranks=own)))
        assert ("small/index", str(other), expected) == (caught.value.rule, caught.value.got, caught.value.expected)

    def test_an_object_may_fix_its_ranks(self, source: RuleSource) -> None:
        """Its peers see the same number."""
        changed, _ = source.edited(("objects", "full_kv", "constants"), {"ranks": 2})
        bound = bind_rulebook(resolve(changed), profile(full(), index(ranks=2)))
        assert {"kv": "full@0"} == bound.group("index@0").peers


class TestOptions:
    """What binding adds to options, and refuses in them."""

    def test_what_the_request_must_bring_is_part_of_the_condition(self, rulebook: Rulebook) -> None:
        """Tokens and media."""
        group = bind_rulebook(rulebook, profile(full())).group("full")
        assert group.recompute is not None
        assert {"request.has_tokens", "request.has_media"} == set(reads(group.recompute.when))

    def test_full_recomputation_stands_apart(self, rulebook: Rulebook) -> None:
        """It is never chosen beside the others: it means a shorter length."""
        for name in shipped_profiles():
            for group in bind_rulebook(rulebook, load_profile(name)).groups:
                assert group.recompute is not None and group.recompute.id == "recompute"
                assert "full_recompute" not in {option.level for option in group.options}

    @pytest.mark.parametrize(
        ("path", "value", "lost"),
        [
            (("every_object", "effects", "fresh_block", "sets", "generation"), None, "generation"),
            (("every_object", "effects", "fresh_block", "sets", "form"), None, "form"),
            (("objects", "routing_index", "recovery", "rebuild_keys", "effects"), [], "bound_for"),
        ],
    )
    def test_a_repair_must_not_lose_what_the_engine_owns(
        self, source: RuleSource, path: tuple[str, ...], value: object, lost: str
    ) -> None:
        """The engine alone writes it, so it is always known."""
        inputs = {"id": "inputs", "object": "layer_inputs", "constants": {"row_bytes": 8, "stride": 4096}}
        changed, _ = source.edited(path, value)
        with pytest.raises(SchemaError, match="a fact unknown that the engine owns") as caught:
            bind_rulebook(resolve(changed), profile(full(), index(), inputs))
        error = caught.value
        assert (lost, "kept by the repair or set by the option") == (error.got, error.expected)
        assert error.rule is not None and error.where.line

    def test_a_guard_that_the_profile_decides_is_dropped(self, rulebook: Rulebook) -> None:
        """A record without bytes needs no address to be written."""
        bound = bind_rulebook(rulebook, profile(full(), {"id": "edge", "object": "window_boundary"}))
        guards = {name: {one.id: one.when for one in bound.group(name).transitions} for name in ("full", "edge")}
        assert guards["edge"]["append"] is None
        assert guards["full"]["append"] is not None


def test_binding_is_deterministic(rulebook: Rulebook) -> None:
    """The same rules and the same model give an equal result."""
    for name in shipped_profiles():
        assert bind_rulebook(rulebook, load_profile(name)) == bind_rulebook(rulebook, load_profile(name))


def test_what_says_nothing_of_it_is_always_needed(rulebook: Rulebook) -> None:
    """Its condition is the literal truth."""
    inputs = {"id": "inputs", "object": "layer_inputs", "constants": {"row_bytes": 8, "stride": 4096}}
    bound = bind_rulebook(rulebook, profile(full(), inputs))
    assert isinstance(bound.group("inputs").needed, Literal)
    assert not isinstance(bound.group("full").needed, Literal)
