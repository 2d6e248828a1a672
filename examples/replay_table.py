"""Replays a trace on every shipped model, at five capacities and under every retention; prints Markdown.

Usage: python examples/replay_table.py TRACE
"""

from __future__ import annotations

import sys
from pathlib import Path

from hitproof.engine.replay import markdown_table, replay_table
from hitproof.engine.trace import read_trace
from hitproof.rules import bind_rulebook, load_profile, load_rulebook

MODELS = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
# Blocks of device, host and disk; None is unlimited.
TIERS = [(1_000, 0, 0), (10_000, 0, 0), (50_000, 0, 0), (None, 0, 0), (10_000, 50_000, 200_000)]

if len(sys.argv) != 2:
    sys.exit("usage: python examples/replay_table.py TRACE")
requests = list(read_trace(Path(sys.argv[1])))
rules = load_rulebook("mixed_attention")
models = [bind_rulebook(rules, load_profile(name)) for name in MODELS]
reports = list(replay_table(requests, models, TIERS))
print("## Blocks", "", markdown_table(reports), sep="\n")
print("## Tokens", "", markdown_table(reports, unit="tokens"), sep="\n")
