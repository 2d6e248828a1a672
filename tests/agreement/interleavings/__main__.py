"""The whole bound by command: every cast, every engine mutant and longer soaks, with what was counted.

python -m tests.agreement.interleavings --steps 12
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import process_time

from hitproof.verification.acceptance import Acceptor
from tests.agreement.interleavings.broken import BROKEN
from tests.agreement.interleavings.explore import explore
from tests.agreement.interleavings.soaked import soaked
from tests.agreement.interleavings.world import CASTS, FIRST, WIDER, engine


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore, and print what was found; 1 where something was not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.agreement.interleavings", description=__doc__)
    parser.add_argument("--steps", type=int, default=12, help="steps of a run")
    parser.add_argument(
        "--wide", action="store_true", help="casts of six too; at 12 steps that takes some minutes each"
    )
    parser.add_argument("--cast", type=int, choices=range(len(CASTS) + len(WIDER)), help="only this cast")
    parser.add_argument("--soak", type=float, default=20.0, help="seconds of each soak; 0 for none")
    given = parser.parse_args(arguments)
    judge, good = Acceptor(engine().bound), True
    casts = (*CASTS, *WIDER) if given.wide else CASTS
    if given.cast is not None:
        casts = ((*CASTS, *WIDER)[given.cast],)
    print("actors | begins | states | edges | steps of the log | CPU s | failure")
    for cast in casts:
        for first in FIRST:
            began = process_time()
            found = explore(first, given.steps, cast, acceptor=judge)
            spent = round(process_time() - began)
            print(
                f"{', '.join(cast)} | {first} | {len(found.states)} | {found.edges} | {found.steps} | {spent} |", end=""
            )
            print(f" {found.failure or 'none'} {' '.join(found.schedule)}", flush=True)
            good = good and not found.failure
    if given.cast is None:
        print("\nbroken on purpose | caught after steps | as")
        for name, broken in BROKEN.items():
            with broken.planted():
                found = explore(broken.first, given.steps, broken.cast, acceptor=judge, broken=broken.manager)
            print(f"{name} | {len(found.schedule)} | {found.failure or 'NOT CAUGHT'}", flush=True)
            good = good and bool(found.failure)
    for profile in ("gemma-3-27b", "deepseek-v4-flash") if given.soak else ():
        result = soaked(profile, given.soak)
        why = result.refusal or result.failure or "all"
        print(f"\nsoak of {profile}: {result.accepted} steps accepted: {why}; {dict(result.kinds)}", flush=True)
        good = good and not (result.refusal or result.failure)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
