"""How long the verifier takes to analyse generated rulebooks of 200 and 1,000 rules."""

from __future__ import annotations

from time import perf_counter, process_time

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource, read_source
from hitproof.spec.bound import BoundRulebook
from hitproof.verification import verify

__all__ = ["generated", "run"]

MODEL = "gemma-3-4b"
CLAIMS = ("deterministic", "fail_closed")
"""What analysing a set of rules means: dead rules, rules that compete, rules that accept what is unknown."""


def generated(rules: int) -> RuleSource:
    """The shipped rulebook with further checks, until a model has so many rules; each of them decides somewhere."""
    source = read_source("mixed_attention")
    missing = rules - _count(bind_rulebook(resolve(source), load_profile(MODEL)))
    if missing <= 0:
        return source
    shipped = next(one.objects["full_kv"] for _, one in source.parts() if "full_kv" in (one.objects or {}))
    checks = [check.model_dump(mode="json", exclude_none=True) for check in shipped.checks]
    more = [
        {
            "id": f"generated_{number}",
            "layer": "block_integrity",
            "require": f"not self.epoch == {number * 1000} or self.idle_us <= {number}.0",
            "because": "a generated rule for measuring",
            "source": "benchmark",
        }
        for number in range(1, missing + 1)
    ]
    return source.edited(("objects", "full_kv", "checks"), [*checks, *more])[0]


def run() -> None:
    """Print wall and CPU time for both sizes, one process."""
    print(f"\nAnalysis of generated rulebooks ({', '.join(CLAIMS)}; {MODEL}, one process)")
    for rules in (200, 1000):
        source = generated(rules)
        profile = load_profile(MODEL)
        count = _count(bind_rulebook(resolve(source), profile))
        wall, cpu = perf_counter(), process_time()
        report = verify(source, [profile], claims=CLAIMS, replayer=EngineReplayer(), jobs=1)
        wall, cpu = perf_counter() - wall, process_time() - cpu
        asked = sum(result.obligations for result in report.claims)
        print(f"  {count:5} rules: {report.verdict}, {asked} questions, {wall:.2f} s wall, {cpu:.2f} s CPU")


def _count(bound: BoundRulebook) -> int:
    return sum(len(group.checks) + len(group.options) + len(group.transitions) for group in bound.groups)


if __name__ == "__main__":
    run()
