"""Rules about load are read, or refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.condition import reads
from hitproof.spec.errors import ConditionError, DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.rulebook import Rulebook
from tests.rules.broken_book import Slip, assert_told, slips

FILE = "admission.yaml"


def test_rules_read_what_a_plan_takes_of_a_pool(rulebook: Rulebook) -> None:
    """`demand.<pool>` stands for the pool's own expression."""
    require = rulebook.policy.admission["staging_has_room"].require
    assert reads(rulebook.policy.pools["staging"].demand) <= reads(require)
    assert not any(path.startswith("demand.") for path in reads(require))


def test_every_rule_takes_part_in_some_policy(rulebook: Rulebook) -> None:
    """None of the shipped rules about load is there for nothing; retentions may be chosen without a policy."""
    rules, policies = rulebook.policy, rulebook.policy.policies.values()
    for kind in ("admission", "execution", "demotion"):
        assert set(getattr(rules, kind)) == {name for policy in policies for name in getattr(policy, kind)}
    assert any(policy.waiting == "ranked" for policy in policies)


def test_who_ranks_says_how(source: RuleSource) -> None:
    """A policy that ranks needs the section `waiting`; one by arrival does not."""
    without, _ = source.edited(("waiting",), None)
    with pytest.raises(SchemaError, match="no rule says how waiting requests are ranked") as told:
        resolve(without)
    assert ("short_first", "ranked") == (told.value.rule, told.value.got)
    by_arrival, _ = without.edited(("policies", "short_first", "waiting"), "arrival")
    assert resolve(by_arrival).policy.waiting is None


@slips(
    Slip(
        "a count of two pools",
        FILE,
        "used: runtime.staging_used_bytes",
        "used: ¶runtime.staging_bytes",
        DuplicateError,
        rule="runtime.staging_bytes",
        got="runtime.staging_bytes",
    ),
    Slip(
        "a count that is none",
        FILE,
        "capacity: runtime.staging_bytes",
        "capacity: ¶runtime.load_percents",
        ReferenceNameError,
        rule="staging",
        got="runtime.load_percents",
        hint="load_percent",
    ),
    Slip(
        "counts in two units",
        FILE,
        "used: runtime.staging_used_bytes",
        "used: ¶runtime.filled_blocks",
        SchemaError,
        rule="staging",
        got="blocks",
        expected="bytes",
    ),
    Slip(
        "a rule that reads a segment",
        FILE,
        "require: demand.device_blocks <= runtime.capacity_blocks",
        "require: ¶self.bytes <= runtime.staging_bytes",
        ConditionError,
        rule="can_ever_fit",
        got="self.bytes",
    ),
    Slip(
        "an unknown pool",
        FILE,
        "require: demand.device_blocks <= runtime.capacity_blocks",
        "require: ¶demand.device_block <= runtime.capacity_blocks",
        ConditionError,
        rule="can_ever_fit",
        got="demand.device_block",
    ),
    Slip(
        "an unknown retention",
        FILE,
        "retention: periodic\n    because: a baseline; only what lies",
        "retention: ¶periodical\n    because: a baseline; only what lies",
        ReferenceNameError,
        rule="always_recompute",
        got="periodical",
        hint="periodic",
    ),
    Slip(
        "an unknown repair",
        FILE,
        "repairs: [promote, checksum, index_remap]",
        "repairs: [promote, ¶checksums, index_remap]",
        ReferenceNameError,
        rule="always_load",
        got="checksums",
        hint="checksum",
    ),
    Slip(
        "an unknown object",
        FILE,
        "objects: [full_kv, compressed_global",
        "objects: [¶full_kvs, compressed_global",
        ReferenceNameError,
        rule="idle_above_high_water",
        got="full_kvs",
        hint="full_kv",
    ),
)
def test_a_slip_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each slip has its class, place and rule, and what was got."""
    assert_told(tmp_path, slip)
