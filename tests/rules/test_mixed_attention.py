"""The embedded rulebook covers the article that it is made from, and is of one piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import reads
from hitproof.spec.errors import HitproofError
from hitproof.spec.profile import OBJECTS
from hitproof.spec.rulebook import LAYERS, LEVELS, Option, Rulebook
from hitproof.spec.rulefile import EveryObjectDecl, ObjectDecl
from tests.models import REPRESENTATIVE

OBJECTS_OF_THE_ARTICLE = {
    "compressed_global": "compressed",
    "uncompressed_tail": "windowed",
    "window_boundary": "windowed",
    "routing_index": "index_dependent",
    "demoted_prefix": "demoted",
}
FORMS_OF_THE_ARTICLE = {"compressed", "full", "windowed", "index_dependent", "demoted"}

# Article 4.2; the sixth field, the recovery conditions, are the options of each object.
METADATA = {
    "state identifier": ["form"],
    "write version": ["weights", "attention_config"],
    "window context": ["window_size", "position", "boundary_version"],
    "dependencies": ["index_config", "kv_content", "kv_generation"],
    "physical location": ["tier", "address", "origin_address"],
}

# Article 5, one line a section: what each layer must at least look at.
LAYER_READS = {
    "block_integrity": {"self.bytes", "self.written_generation", "self.measured"},
    "kernel_interface": {"self.layout", "self.kernel_version"},
    "group_intersection": {"self.start", "self.end", "kv.ready", "boundary.ready"},
    "hardware_alignment": {"self.address", "self.stride"},
}

# Article 6, by the ids of the invariants.
CONSISTENCY = {
    "admission": "6.1",
    "separation": "6.2",
    "check_to_use": "6.3",
    "static_graph": "6.4",
}

KERNELS = {
    "tail_fill",
    "window_roll",
    "index_rebuild",
    "index_remap",
    "recompress",
    "promote",
    "relayout",
    "requantize",
    "checksum",
}


def options(rulebook: Rulebook) -> Iterator[Option]:
    """Every option of every object."""
    for rules in rulebook.objects.values():
        yield from rules.options


def groups(rulebook: Rulebook) -> Iterator[BoundGroup]:
    """Every group of every shipped model."""
    for name in shipped_profiles():
        yield from bind_rulebook(rulebook, load_profile(name)).groups


class TestArticle:
    """What the article asks for is there."""

    def test_the_five_objects_have_their_forms(self, rulebook: Rulebook) -> None:
        """Article 3; a window and its boundary share one."""
        homes = {name: rulebook.objects[name].home for name in OBJECTS_OF_THE_ARTICLE}
        assert OBJECTS_OF_THE_ARTICLE == homes

    def test_the_five_forms_are_told_apart_from_the_life_around_them(self, rulebook: Rulebook) -> None:
        """Article 4.1; a segment that is written, moved, kept apart or gone has none of the five."""
        life = {"pending", "moving", "quarantined", "discarded"}
        assert FORMS_OF_THE_ARTICLE | life == set(rulebook.enums["form"])
        assert {rules.home for rules in rulebook.objects.values()} <= FORMS_OF_THE_ARTICLE

    def test_every_object_that_a_profile_can_name_has_rules(self, rulebook: Rulebook) -> None:
        """And no other."""
        assert set(OBJECTS) == set(rulebook.objects)

    @pytest.mark.parametrize("field", METADATA)
    def test_a_field_of_the_metadata_is_a_fact(self, rulebook: Rulebook, field: str) -> None:
        """Article 4.2: it takes part in matching, so some check reads it, or it says where bytes are."""
        declared = {fact for rules in rulebook.objects.values() for fact in rules.facts}
        assert set(METADATA[field]) <= declared
        read = {
            path
            for rules in rulebook.objects.values()
            for node in [check.require for check in rules.checks]
            for path in reads(node)
        }
        assert any(f"self.{fact}" in read for fact in METADATA[field])

    def test_the_sixth_field_are_the_conditions_of_recovery(self, rulebook: Rulebook) -> None:
        """Article 4.2: every object that holds bytes says how it comes back."""
        for rules in rulebook.objects.values():
            assert any(option.level == "full_recompute" for option in rules.options), rules.name

    def test_identity_and_the_four_layers_all_have_checks(self, rulebook: Rulebook) -> None:
        """Article 5; each of the four reads what its section names."""
        assert ("identity", *LAYER_READS) == LAYERS
        for layer, expected in LAYER_READS.items():
            checks = [check for rules in rulebook.objects.values() for check in rules.checks if check.layer == layer]
            assert expected <= {path for check in checks for path in reads(check.require)}, layer

    def test_the_three_levels_of_recovery_all_have_options(self, rulebook: Rulebook) -> None:
        """Article 4.3."""
        assert set(LEVELS) == {option.level for option in options(rulebook)}

    def test_the_four_consistency_checks_have_invariants(self, rulebook: Rulebook) -> None:
        """Article 6; each names its section."""
        found: dict[str, set[str]] = {}
        for invariant in rulebook.invariants:
            found.setdefault(invariant.check, set()).add(invariant.source)
        assert {check: {f"article {section}"} for check, section in CONSISTENCY.items()} == found

    def test_what_the_kernels_do_and_what_models_do_is_declared(self, rulebook: Rulebook) -> None:
        """Nine kernels, one forward pass, and one record that touches no bytes."""
        runs = {name: repair.runs for name, repair in rulebook.repairs.items()}
        assert {**dict.fromkeys(KERNELS, "kernel"), "forward": "model", "boundary_record": "record"} == runs


class TestOnePiece:
    """Nothing is left over, nothing is said twice."""

    @pytest.mark.parametrize("name", shipped_profiles())
    def test_every_shipped_profile_binds(self, rulebook: Rulebook, name: str) -> None:
        """Each group keeps checks of its own and the way to compute it again."""
        profile = load_profile(name)
        bound = bind_rulebook(rulebook, profile)
        assert {group.id for group in profile.groups} == {group.id for group in bound.groups}
        assert all(group.checks and group.recompute for group in bound.groups)

    def test_every_option_mends_checks_of_its_own_group(self, rulebook: Rulebook) -> None:
        """None that was dropped, and none of identity."""
        for group in groups(rulebook):
            layers = {check.id: check.layer for check in group.checks}
            for option in group.options:
                assert option.mends <= layers.keys(), option.rule
                assert "identity" not in {layers[check] for check in option.mends}, option.rule

    def test_an_option_of_a_group_mends_something(self, rulebook: Rulebook) -> None:
        """Else it could never be chosen."""
        idle = {option.rule for group in groups(rulebook) for option in group.options if not option.mends}
        assert not idle

    def test_every_repair_is_used(self, rulebook: Rulebook) -> None:
        """By an option of some group; what runs models serves full recomputation besides."""
        used = {option.repair for group in groups(rulebook) for option in group.options}
        unused = {name for name, repair in rulebook.repairs.items() if name not in used and repair.runs != "model"}
        assert not unused

    def test_every_object_is_in_some_model(self, rulebook: Rulebook) -> None:
        """The shipped profiles exercise all rules."""
        assert set(rulebook.objects) == {group.object for group in groups(rulebook)}

    def test_the_representative_models_bind_what_any_model_binds(self, rulebook: Rulebook) -> None:
        """Slow tests run for them alone: no check and no option is left to the other models."""
        bound = {name: bind_rulebook(rulebook, load_profile(name)).groups for name in shipped_profiles()}
        told = {
            name: {
                rule
                for group in groups
                for rule in (*(one.rule for one in group.checks), *(one.rule for one in group.options))
            }
            for name, groups in bound.items()
        }
        assert set().union(*told.values()) == set().union(*(told[name] for name in REPRESENTATIVE))

    def test_every_rule_says_why_and_from_where(self, source: RuleSource) -> None:
        """Reasons are sentences, sources name an article, a paper, a design note or a public discussion."""
        for rule, because, origin in reasons(source):
            assert len(because.split()) >= 3, rule
            assert origin.strip(), rule
            assert any(word in origin for word in ("article", "report", "design", "#")), rule

    def test_no_reason_is_copied(self, source: RuleSource) -> None:
        """One sentence explains one rule; the same check of several objects may share it."""
        told: dict[str, set[str]] = {}
        for rule, because, _ in reasons(source):
            told.setdefault(because, set()).add(rule.rpartition("/")[2])
        assert not {because: rules for because, rules in told.items() if len(rules) > 1}

    def test_ids_are_unique_within_their_kind(self, rulebook: Rulebook) -> None:
        """A reason code or a plan step names one rule."""
        for rules in rulebook.objects.values():
            for kind in (rules.checks, rules.options, rules.transitions, rulebook.dispositions[rules.name]):
                counted = Counter(one.id for one in kind)
                assert not [name for name, count in counted.items() if count > 1], rules.name

    def test_a_check_and_an_option_of_one_object_differ_in_name(self, rulebook: Rulebook) -> None:
        """`object/id` leads to one of them."""
        for rules in rulebook.objects.values():
            assert not {check.id for check in rules.checks} & {option.id for option in rules.options}, rules.name


def reasons(source: RuleSource) -> Iterator[tuple[str, str, str]]:
    """Every rule of the files with its reason and its source."""
    for _, part in source.parts():
        sections: dict[str, ObjectDecl | EveryObjectDecl] = {**part.objects}
        if part.every_object is not None:
            sections["every_object"] = part.every_object
        for name, section in sections.items():
            yield from ((f"{name}/{check.id}", check.because, check.source) for check in section.checks)
            yield from ((f"{name}/{option.id}", option.because, option.source) for option in section.recovery)
            yield from ((f"{name}/{rule.id}", rule.because, rule.source) for rule in section.disposition)
        yield from ((event.id, event.because, event.source) for event in part.transitions)
        yield from ((invariant.id, invariant.because, invariant.source) for invariant in part.invariants)
        yield from ((joint.id, joint.because, joint.source) for joint in part.joint)
        yield from ((flag.id, flag.because, flag.source) for flag in part.flags)


# A quarter of all places, in as many tests as may run side by side.
TURNS = 24


@pytest.mark.parametrize("turn", range(TURNS))
def test_a_rulebook_that_lacks_a_line_is_whole_or_refused(source: RuleSource, turn: int) -> None:
    """Whatever is deleted, a typed error with a place is raised or the models bind; nothing else happens."""
    deleted = 0
    for path in list(paths(source))[turn :: TURNS * 4]:
        changed, _ = source.edited(path, None)
        try:
            rulebook = resolve(changed)
            for name in REPRESENTATIVE:
                bind_rulebook(rulebook, load_profile(name))
        except HitproofError as error:
            assert error.message, path
        deleted += 1
    assert deleted


def paths(source: RuleSource) -> Iterator[tuple[str, ...]]:
    """Sections, entries and keys of the rule files, by keys and ids."""
    for _, part in source.parts():
        for section, entries in part.model_dump(by_alias=True, exclude_defaults=True).items():
            if not isinstance(entries, dict):
                continue
            for name, entry in entries.items():
                yield section, name
                yield from ((section, name, key) for key in entry if isinstance(entry, dict))
