"""Two rulebooks for several models: every difference once, with the models in which it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitproof.rules.bind import bind_rulebook
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.scenario import Replayer
from hitproof.verification.diff.acceptance import Acceptance
from hitproof.verification.diff.report import Difference, DiffReport, joint_relation
from hitproof.verification.diff.rules import options, prices, sections, transitions
from hitproof.verification.solve import Asker

__all__ = ["compare"]


def compare(
    old: Rulebook,
    new: Rulebook,
    profiles: Sequence[Profile],
    *,
    replayer: Replayer | None,
    timeout_ms: int = 20_000,
    progress: Callable[[str], None] | None = None,
) -> DiffReport:
    """Which hits the newer rules accept and the older ones refuse, and the other way round.

    Whole hits are compared as they are judged before any repair: every group that must be there accepts a length. What
    repairs may make of the others is compared option by option.

    Args:
        old, new: The rulebooks.
        profiles: Models for which they are compared.
        replayer: The engine, which witnesses are replayed on.
        timeout_ms: Bound on one question to the solver.
        progress: Called with what is being compared.

    Raises:
        UsageError: There is no profile.
        HitproofError: A rulebook cannot be bound to a model.
    """
    if not profiles:
        raise UsageError("no profile is selected", expected="at least one")
    asker = Asker(timeout_ms)
    found: list[Difference] = []
    for profile in profiles:
        if progress is not None:
            progress(profile.profile)
        before, after = bind_rulebook(old, profile), bind_rulebook(new, profile)
        found += Acceptance(before, after, asker, replayer).differences()
        found += options(before, after, asker)
        found += transitions(before, after, asker)
    names = [profile.profile for profile in profiles]
    for section, relation in sections(old, new):
        sentence = f"'{section}' differs, and is only compared as it stands"
        found.append(Difference(what="section", profiles=names, subject=section, relation=relation, sentence=sentence))
    merged = _merged(found)
    # A group that accepts more where another accepts less may leave whole hits as they were: hits decide.
    decisive = [one.relation for one in merged if one.what != "group"]
    return DiffReport(
        old=old.digest,
        new=new.digest,
        profiles=names,
        relation=joint_relation(decisive),
        differences=merged,
        prices=prices(old, new),
    )


def _merged(found: Sequence[Difference]) -> list[Difference]:
    """Differences that several models have alike, once; the first one's witnesses stand for all."""
    alike: dict[tuple[str, str, str, str], Difference] = {}
    for one in found:
        subject = one.subject if one.what != "hit" else "hits"
        key = (one.what, subject, one.relation, one.sentence)
        known = alike.get(key)
        if known is None:
            alike[key] = one.model_copy(update={"subject": subject})
        else:
            alike[key] = known.model_copy(update={"profiles": [*known.profiles, *one.profiles]})
    return list(alike.values())
