"""One edit judged: refused, redundant, killed by a claim, or survived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import HitproofError, Position
from hitproof.spec.mutation import EditFate, Fate
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.scenario import Replayer
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.claims.complete import EVENTS, MENDABLE, WHOLE
from hitproof.verification.cut import Cutter
from hitproof.verification.digest import digest_of, values_of
from hitproof.verification.mutation.equivalence import around_is_equal, groups_are_equal
from hitproof.verification.mutation.operators import Edit
from hitproof.verification.parts import Part
from hitproof.verification.prover import Prover
from hitproof.verification.run import Outcome

__all__ = ["Judge"]

_MEANING = frozenset({"checks", "costs", "dispositions", "keys", "options", "transitions"})
"""Aspects of a group that an edit may change."""

_LIKELY: Mapping[str, tuple[tuple[str, str], ...]] = {
    "checks drop": (("sound", ""), ("complete", MENDABLE), ("alignment", ""), ("check_to_use", "")),
    "checks flip": (("complete", WHOLE), ("sound", ""), ("complete", MENDABLE)),
    "options drop": (("repair_sound", ""), ("complete", MENDABLE), ("alignment", ""), ("identity_monotone", "")),
    "options flip": (("repair_sound", ""), ("complete", MENDABLE)),
    "mends drop": (("complete", MENDABLE),),
    "transitions drop": (("complete", EVENTS), ("sound", ""), ("identity_monotone", ""), ("separation", "")),
    "transitions flip": (("complete", EVENTS), ("sound", ""), ("identity_monotone", ""), ("separation", "")),
    "keys drop": (("identity_monotone", ""),),
    "leasing drop": (("check_to_use", ""),),
    "recovering drop": (("terminates", ""),),
    "recovering flip": (("terminates", ""),),
}
"""Claims, and what of them, that an edit is likely to break, by what has killed such edits: they are asked first."""


_OF_OBJECTS = frozenset({"digest", "objects"})
"""Fields of a rulebook that tell of its objects: what a group has of them, the group's own key tells."""


@dataclass(frozen=True)
class _Asked:
    """A part of a claim that the edit has touched."""

    claim: str
    profile: str
    part: Part
    cutter: Cutter


class Judge:
    """Judges edits of one rulebook, one after the other.

    Args:
        source: The rule files.
        profiles: Models by name; an edit is redundant only if it is for all of them.
        replayer: Runs counterexamples on the real engine.
        timeout_ms: Bound on one question to the solver.
    """

    def __init__(
        self, source: RuleSource, profiles: Mapping[str, Profile], replayer: Replayer | None, timeout_ms: int
    ) -> None:
        self.prover = Prover(source, profiles, replayer, timeout_ms)
        self.source, self.profiles = source, profiles
        self._proved: dict[str, frozenset[str]] = {}
        self._decided: dict[str, Outcome] = {}
        self._whole: dict[tuple[str, str], str] = {}
        self._book: tuple[Rulebook, str] | None = None
        self._misled: set[str] = set()

    def judge(self, edit: Edit) -> EditFate:
        """What becomes of an edit.

        Raises:
            ReferenceNameError: The rulebook has no such place.
        """
        broken, where = self.source.edited(edit.path, edit.value)
        try:
            rulebook = resolve(broken)
            bound = {name: bind_rulebook(rulebook, profile) for name, profile in self.profiles.items()}
        except HitproofError as error:
            return _fate(edit, where, "refused", detail=str(error))
        if self._is_redundant(bound):
            return _fate(edit, where, "redundant")
        cutters = {name: Cutter(one) for name, one in bound.items()}
        gaps: list[str] = []
        for asked in self._touched(cutters, edit):
            outcome = self.prover.ask_part(asked.claim, asked.part, asked.cutter)
            found = outcome.counterexample
            if found is not None and found.replayed:
                return _fate(edit, where, "killed", asked.claim, asked.profile, found.sentence)
            gaps += [f"{asked.claim}: {gap}" for gap in outcome.gaps]
            if found is not None:
                self._misled.add(asked.claim)
        dead = self._dead(cutters)
        if dead:
            return _fate(edit, where, "dead", "deterministic", detail=f"never decisive: {', '.join(dead)}")
        return _fate(edit, where, "survived", detail="; ".join(dict.fromkeys(gaps))[:500])

    def _is_redundant(self, bound: Mapping[str, BoundRulebook]) -> bool:
        """Whether every group of every model means the same; groups that are alike are asked once."""
        asked: set[tuple[str, str]] = set()
        for name, other in bound.items():
            one = self.prover.cutter(name).bound
            if not around_is_equal(self.prover.asker, one, other):
                return False
            cutter = Cutter(other)
            for group in one.groups:
                keys = self._key(name, group.id), cutter.key(_all_of(group.id))
                if keys[0] != keys[1] and keys not in asked:
                    asked.add(keys)
                    if not groups_are_equal(self.prover.asker, one, other, group.id):
                        return False
        return True

    def _key(self, profile: str, group: str) -> str:
        if (profile, group) not in self._whole:
            self._whole[profile, group] = self.prover.cutter(profile).key(_all_of(group))
        return self._whole[profile, group]

    def _touched(self, cutters: Mapping[str, Cutter], edit: Edit) -> Iterator[_Asked]:
        """Parts whose key no part of the intact rulebook has, each once; the likeliest first.

        Where one story does not replay, others of its claim seldom do: that claim waits until the others were asked.
        """
        kind = "mends" if "mends" in edit.path else edit.section
        likely = [(claim, about) for claim, about in _LIKELY.get(f"{kind} {edit.what}", ()) if claim in ALL_CLAIMS]
        new: dict[str, list[_Asked]] = {}
        given: set[int] = set()
        later: list[_Asked] = []
        self._misled.clear()
        for claim, about in (*likely, *((name, "") for name in ALL_CLAIMS)):
            if claim not in new:
                new[claim] = self._new_parts(claim, cutters)
            for one in new[claim]:
                if id(one) not in given and about in ("", *one.part.about):
                    given.add(id(one))
                    if claim in self._misled:
                        later.append(one)
                    else:
                        yield one
        yield from later

    def _new_parts(self, claim: str, cutters: Mapping[str, Cutter]) -> list[_Asked]:
        """Parts of a claim that the intact rulebook does not have, each once."""
        seen = set(self._keys(claim))
        found = []
        for profile, cutter in cutters.items():
            for part in ALL_CLAIMS[claim].parts_of(cutter.bound):
                key = self._told(cutter, part)
                if key not in seen:
                    seen.add(key)
                    found.append(_Asked(claim, profile, part, cutter))
        return found

    def _keys(self, claim: str) -> frozenset[str]:
        """Keys of all parts of a claim about the intact rulebook, for all models."""
        if claim not in self._proved:
            self._proved[claim] = frozenset(
                self._told(self.prover.cutter(name), part)
                for name in self.profiles
                for part in self.prover.parts(claim, name)
            )
        return self._proved[claim]

    def _told(self, cutter: Cutter, part: Part) -> str:
        """The key of a part; one that reads the whole rulebook is not told from another by rules of other objects."""
        if "rulebook" not in part.reads:
            return cutter.key(part)
        rulebook = cutter.bound.rulebook
        if self._book is None or self._book[0] is not rulebook:
            rest = {name: value for name, value in values_of(rulebook).items() if name not in _OF_OBJECTS}
            self._book = rulebook, digest_of(rest)
        return f"{cutter.key(replace(part, reads=part.reads - {'rulebook'}))} {self._book[1]}"

    def _dead(self, cutters: Mapping[str, Cutter]) -> list[str]:
        """Rules that decide nowhere under the edit, in any model."""
        claim = "deterministic"
        outcomes = []
        for cutter in cutters.values():
            for part in ALL_CLAIMS[claim].parts_of(cutter.bound):
                key = cutter.key(part)
                if key not in self._decided:
                    self._decided[key] = self.prover.ask_part(claim, part, cutter)
                outcomes.append(self._decided[key])
        rules = {place: rule for outcome in outcomes for place, rule in outcome.rules.items()}
        decisive = {place for outcome in outcomes for place in outcome.decisive}
        return sorted({rules[place] for place in set(rules) - decisive})


def _all_of(group: str) -> Part:
    return Part(group, (group,), reads=_MEANING)


def _fate(edit: Edit, where: Position, fate: Fate, by: str = "", profile: str = "", detail: str = "") -> EditFate:
    return EditFate(
        id=edit.id,
        section=edit.section,
        rule=f"{edit.object}/{edit.rule}" if edit.object else edit.rule,
        what="drop" if edit.what == "drop" else "flip",
        change=edit.change,
        place=str(where),
        fate=fate,
        by=by,
        profile=profile,
        detail=detail,
    )
