"""Edits of the embedded rulebook: what breaks is killed and replayed, what means the same is proved redundant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import UsageError
from hitproof.spec.mutation import Fate
from hitproof.spec.profile import Profile
from hitproof.verification.mutation.conditions import term_edits
from hitproof.verification.mutation.judging import Judge
from hitproof.verification.mutation.mutate import choose_edits, mutate
from hitproof.verification.mutation.operators import Edit, all_edits

GEMMA, QWEN, FLASH = "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v4-flash"

FATES: dict[str, tuple[Fate, str, str]] = {
    # A check term, a guard, pins, an owner, an epoch rule, what is taken, set and forgotten.
    "checks/fingerprint_matches: drops `self.measured == self.recorded`": ("killed", "sound", GEMMA),
    "checks/exact_enough: drops `request.allows_approximate`": ("killed", "complete", QWEN),
    "transitions/spill: drops `self.tier == host`": ("killed", "complete", GEMMA),
    "transitions/promote_begin: turns `pins: unpinned` into `any`": ("killed", "complete", GEMMA),
    "transitions/roll_window: turns `owner: sole` into `any`": ("killed", "complete", GEMMA),
    "transitions/commit: turns `keeps_prefix` off": ("killed", "complete", GEMMA),
    "transitions/allocate: drops 'start' from what it takes": ("killed", "complete", GEMMA),
    "transitions/roll_window: drops 'start' from what it takes": ("killed", "sound", GEMMA),
    "transitions/defragment: drops `sets: written_generation`": ("killed", "complete", QWEN),
    "transitions/discard: turns `key: clear` into `publish`": ("killed", "complete", QWEN),
    # Options: sources, conditions, what they mend and leave.
    "options/requantize: drops `self.layout == kernel.layout`": ("killed", "repair_sound", QWEN),
    "uncompressed_tail/warm_up: drops 'covers_window' from what it mends": ("killed", "complete", GEMMA),
    "full_kv/fill_young_end: drops 'sealed' from what it mends": ("killed", "complete", GEMMA),
    "uncompressed_tail/warm_up: in `applies` turns `group.warmable` into `not group.warmable`": (
        "killed",
        "complete",
        GEMMA,
    ),
    "uncompressed_tail/fill_young_end: drops `needs.first <= self.end`": ("killed", "repair_sound", GEMMA),
    "options/private_copy: leaves `published` as it was": ("killed", "identity_monotone", GEMMA),
    "transitions/rollback: drops 'end' from what it takes": ("killed", "sound", GEMMA),
    "transitions/spill: drops `sets: tier`": ("killed", "complete", GEMMA),
    "compressed_global/well_formed: drops `self.end % group.ratio == 0`": ("killed", "sound", FLASH),
    "keys/disk: drops `salt`": ("killed", "identity_monotone", GEMMA),
    # Recoveries: what gives up too soon, and a counter that is not taken.
    "recovering/repair_failed: drops the step": ("killed", "terminates", GEMMA),
    "recovering/source_lost: drops 'failing' from what it takes": ("killed", "terminates", GEMMA),
    "recovering/confirmed: drops `failing == 0`": ("redundant", "", GEMMA),
    # What others ask for already, and what nobody reads any more.
    "options/bounce: in `applies` drops `group.has_bytes`": ("redundant", "", GEMMA),
    "options/promote_from_disk: drops 'stride_aligned' from what it mends": ("redundant", "", QWEN),
    "transitions/discard: drops 'recorded' from what it forgets": ("redundant", "", QWEN),
    "transitions/promote_failed: turns `owner: any` into `sole`": ("redundant", "", GEMMA),
    "routing_index/rebuild_keys: drops `known(kv.recorded)`": ("redundant", "", FLASH),
    "transitions/allocate: turns `key: clear` into `keep`": ("redundant", "", QWEN),
    # What the reader of rules refuses.
    "options/verify: drops 'self' from what it consumes": ("refused", "", QWEN),
    "transitions/append: turns `moves` on": ("refused", "", QWEN),
    "transitions/demote_end: turns `frees` off": ("refused", "", QWEN),
}


@pytest.fixture(scope="module")
def edits(source: RuleSource) -> dict[str, Edit]:
    """Every edit by its id."""
    return {edit.id: edit for edit in all_edits(source)}


@pytest.fixture(scope="module")
def judges(source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer) -> dict[str, Judge]:
    """A judge for each of a few models."""
    return {name: Judge(source, {name: profiles[name]}, replayer, 20_000) for name in (GEMMA, QWEN, FLASH)}


class TestEdits:
    """The list of edits."""

    def test_each_has_a_name_of_its_own_and_changes_the_rulebook(
        self, source: RuleSource, edits: dict[str, Edit]
    ) -> None:
        """None is made twice, and none is empty; places are in the rule files."""
        assert len(edits) == len(list(all_edits(source)))
        for edit in list(edits.values())[::25]:
            broken, where = source.edited(edit.path, edit.value)
            assert broken.digest != source.digest, edit.id
            assert where.line > 0

    def test_every_section_and_both_kinds_are_there(self, edits: dict[str, Edit]) -> None:
        """Guards, checks, options, events, keys, leases and recoveries."""
        sections = {"checks", "options", "transitions", "keys", "leasing", "recovering"}
        assert sections == {edit.section for edit in edits.values()}
        assert {"drop", "flip"} == {edit.what for edit in edits.values()}

    def test_a_selection_that_names_nothing_is_refused(self, source: RuleSource) -> None:
        """A score over no edits would be a good one."""
        assert {"same_salt"} == {edit.rule for edit in choose_edits(source, rules=["same_salt"])}
        with pytest.raises(UsageError):
            choose_edits(source, rules=["same_sugar"])


ATOMS = st.sampled_from(["a == b", "a < b", "known(a)", "c", "a in (x, y)", "not c", "a <= b"])
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.builds(
        lambda word, terms: word.join(f"({term})" for term in terms),
        st.sampled_from([" and ", " or "]),
        st.lists(inner, min_size=2, max_size=3),
    ),
    max_leaves=6,
)


def atoms(node: ast.expr) -> Iterator[ast.expr]:
    """What a condition is made of beside `and` and `or`."""
    if isinstance(node, ast.BoolOp):
        for term in node.values:
            yield from atoms(term)
    else:
        yield node


class TestTerms:
    """Edits of one condition."""

    @given(CONDITIONS)
    def test_each_atom_is_turned_once_and_each_term_dropped_once(self, condition: str) -> None:
        """As many edits as the tree has atoms, and terms; each reads, and none is the condition itself."""
        tree = ast.parse(condition, mode="eval").body
        found = list(term_edits(condition))
        junctions = [node for node in ast.walk(tree) if isinstance(node, ast.BoolOp)]
        terms = sum(len(node.values) for node in junctions) or 1
        assert len(list(atoms(tree))) == sum(edit.what == "flip" for edit in found)
        assert terms == sum(edit.what == "drop" for edit in found)
        for edit in found:
            assert edit.text is None or ast.unparse(ast.parse(edit.text)) != ast.unparse(tree)


@pytest.mark.parametrize("name", FATES)
def test_an_edit_meets_its_fate(
    name: str, edits: dict[str, Edit], judges: dict[str, Judge], source: RuleSource, replayer: EngineReplayer
) -> None:
    """Killed by the claim that should notice, proved redundant, or refused, each with its place."""
    expected, claim, profile = FATES[name]
    fate = judges[profile].judge(edits[name])
    assert (expected, claim) == (fate.fate, fate.by), fate.detail
    file, line, column = fate.place.rsplit(":", 2)
    assert file.endswith(".yaml")
    assert int(line) > 0
    assert int(column) > 0


def test_without_an_engine_nothing_is_killed(
    source: RuleSource, profiles: dict[str, Profile], edits: dict[str, Edit]
) -> None:
    """A counterexample that nobody has replayed kills nothing: the edit survives, and says why."""
    chosen = [edits["checks/exact_enough: drops `request.allows_approximate`"]]
    report = mutate(source, [profiles[GEMMA]], edits=chosen, replayer=None, jobs=1)
    assert ["survived"] == [edit.fate for edit in report.survivors]
    assert "no engine was given" in report.survivors[0].detail


def test_conditions_in_another_order_are_redundant_and_a_looser_one_is_not(
    source: RuleSource, judges: dict[str, Judge]
) -> None:
    """The solver tells a rewrite from a change."""
    path = ("every_object", "checks", "resident", "require")
    swapped = Edit("checks", "", "resident", "flip", path, "self.tier == device and self.form == home", "swaps")
    looser = Edit("checks", "", "resident", "flip", path, "self.tier == device", "loosens")
    assert "redundant" == judges[QWEN].judge(swapped).fate
    assert "redundant" != judges[QWEN].judge(looser).fate
    assert resolve(source).digest
