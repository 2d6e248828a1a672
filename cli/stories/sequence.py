"""A counterexample as a sequence diagram in Mermaid's language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hitproof.cli.stories.text import shown
from hitproof.spec.proof import Counterexample
from hitproof.spec.seen import FactValue, StepSeen

__all__ = ["sequence_diagram"]

ENGINE = "engine"
"""Who does what no lease does."""

_MOST_FACTS = 6
_LONGEST = 160


def sequence_diagram(found: Counterexample, steps: Sequence[StepSeen]) -> str:
    """The diagram: leases and the engine act on segments, and below each step stands what it changed.

    Args:
        found: The counterexample.
        steps: Its states; the first is before any step.
    """
    title = _plain(found.sentence)
    actors = list(dict.fromkeys([step.who or ENGINE for step in steps[1:]] or [ENGINE]))
    segments = list(steps[0].segments)
    names = {name: f"p{index}" for index, name in enumerate([*(f"who {one}" for one in actors), *segments])}
    lines = ["sequenceDiagram", f"    accTitle: {title}", "    autonumber"]
    lines += [f"    participant {names[f'who {one}']} as {_plain(one)}" for one in actors]
    groups = {} if found.scenario is None else {one.id: one.group for one in found.scenario.segments}
    lines += [
        f"    participant {names[one]} as {_plain(one)} ({_plain(groups.get(one, 'segment'))})" for one in segments
    ]
    for before, step in pairwise(steps):
        who = names[f"who {step.who or ENGINE}"]
        arrow, refused = ("->>", "") if step.happened else ("--x", ": no")
        for to in [names[one] for one in step.to] or [who]:
            lines.append(f"    {who}{arrow}{to}: {_plain(step.does)}{refused}")
        for name in segments:
            changed = _changed(before.segments[name], step.segments[name])
            if changed:
                lines.append(f"    Note over {names[name]}: {changed}")
    first, last = names[f"who {actors[0]}"], names[segments[-1]] if segments else names[f"who {actors[-1]}"]
    over = first if first == last else f"{first},{last}"
    lines.append(f"    Note over {over}: {title}")
    for seen in found.seen:
        for part in seen.conjuncts:
            if part.holds is not True:
                values = ", ".join(f"{path} = {shown(value)}" for path, value in part.values.items())
                truth = "fails" if part.holds is False else "is unknown"
                lines.append(f"    Note over {over}: {_plain(f'{seen.rule}: {part.text} {truth}, {values}')}")
    return "\n".join(lines) + "\n"


def _changed(before: dict[str, FactValue], after: dict[str, FactValue]) -> str:
    told = [
        _plain(f"{name}: {shown(before.get(name))} to {shown(value)}")
        for name, value in after.items()
        if before.get(name) != value
    ]
    more = [f"{len(told) - _MOST_FACTS} more"] if len(told) > _MOST_FACTS else []
    return "<br/>".join([*told[:_MOST_FACTS], *more])


def _plain(text: str) -> str:
    """Text that cannot end a line or a statement of the diagram, nor be read as markup."""
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
    printable = "".join(c if c.isprintable() else " " for c in short)
    return re.sub(r"[#;<>&%\"`{}]", lambda found: f"#{ord(found.group())};", printable)
