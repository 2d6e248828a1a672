"""Serves traces in simulated time on three models under every policy of the rulebook; prints Markdown.

Usage: python examples/policy_table.py RATES TRACE...

RATES is a folder with a rates file a model, as `hitproof calibrate` writes them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hitproof.engine.replay import evaluate_policy, policy_table
from hitproof.engine.trace import read_trace
from hitproof.rules import bind_rulebook, load_profile, load_rulebook
from hitproof.rules.rates import load_rates, with_rates

# Devices that prefill: enough that a cold cache would keep them nearly busy.
LANES = {"deepseek-v4-flash": 3, "gemma-3-27b": 6, "qwen3-next-80b-a3b": 1}
TIERS = {"capacity": 10_000, "host_blocks": 50_000, "disk_blocks": 200_000}

if len(sys.argv) < 3:
    sys.exit("usage: python examples/policy_table.py RATES TRACE...")
rules = load_rulebook("mixed_attention")
for name in sys.argv[2:]:
    requests = list(read_trace(Path(name)))
    reports = []
    for model, lanes in LANES.items():
        bound = bind_rulebook(rules, load_profile(model))
        bound = with_rates(bound, load_rates(Path(sys.argv[1]) / f"{model}.yaml", rules))
        reports += [
            evaluate_policy(requests, bound, policy, lanes=lanes, **TIERS)  # type: ignore[arg-type]
            for policy in rules.policy.policies
        ]
    print(f"## {Path(name).stem.replace('_', ' ')}", "", policy_table(reports), sep="\n")
