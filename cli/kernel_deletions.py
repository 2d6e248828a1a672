"""Entries of repair declarations deleted one by one, and who notices each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hitproof.rules.edit import edit
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import HitproofError
from hitproof.spec.rulebook import Option, Repair, Rulebook
from hitproof.spec.yaml_tree import plain

if TYPE_CHECKING:
    from hitproof.kernels.selftest import Trial

__all__ = ["Deletion", "Noticed", "deletions", "noticed_by"]

CLAIM = "repair_sound"


@dataclass(frozen=True, slots=True)
class Deletion:
    """One entry taken out of a declaration.

    Args:
        repair: Its name.
        part: `consumes` or `establishes`.
        entry: The source or fact.
        declared: The declaration without it.
        path: Place of the entry in the declaration's file.
    """

    repair: str
    part: str
    entry: str
    declared: Repair
    path: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Noticed:
    """Who noticed a deletion; an empty text where nobody did or none was asked.

    Args:
        contract: What a trial on tensors found.
        loader: What the loader says of the rulebook.
        claim: What the verifier says of a rulebook whose options do without the source too, where there can be one.
    """

    contract: str = ""
    loader: str = ""
    claim: str = ""

    @property
    def caught(self) -> bool:
        """Whether anybody did."""
        return bool(self.contract or self.loader or self.claim)


def deletions(repair: Repair) -> Iterator[Deletion]:
    """Every source and every established fact of a declaration, deleted alone."""
    for i, alternative in enumerate(repair.consumes):
        for j, source in enumerate(alternative):
            left = (*alternative[:j], *alternative[j + 1 :])
            consumes = (*repair.consumes[:i], left, *repair.consumes[i + 1 :])
            yield Deletion(repair.id, "consumes", source, replace(repair, consumes=consumes), ("consumes", i, j))
    for fact in repair.establishes:
        establishes = {name: how for name, how in repair.establishes.items() if name != fact}
        yield Deletion(repair.id, "establishes", fact, replace(repair, establishes=establishes), ("establishes", fact))


def noticed_by(deletion: Deletion, source: RuleSource, rules: Rulebook, trial: Trial | None, backend: str) -> Noticed:
    """Ask the trials, the loader, and for a source the claim.

    Args:
        deletion: What was deleted.
        source: The rule files, whole.
        rules: What they mean.
        trial: A trial of the repair; None where it has no kernel.
        backend: Which implementation is tried.
    """
    contract = "" if trial is None else _by_contract(deletion, trial, backend)
    cut = _without(source, deletion)
    try:
        resolve(cut)
        loader = ""
    except HitproofError as error:
        loader = f"{error.rule}: {error.message}" if error.rule else error.message
    claim = ""
    if deletion.part == "consumes" and find_spec("z3") is not None:
        claim = _by_claim(deletion, cut, rules)
    return Noticed(contract, loader, claim)


def _by_contract(deletion: Deletion, trial: Trial, backend: str) -> str:
    from hitproof.kernels.selftest import check_sources, check_trial

    check = check_sources if deletion.part == "consumes" else check_trial
    about = "consumes" if deletion.part == "consumes" else deletion.entry
    return next((one.text for one in check(trial, deletion.declared, backend) if one.about == about), "")


def _without(source: RuleSource, deletion: Deletion) -> RuleSource:
    """The rule files with the entry gone from its declaration."""
    changed: dict[str, Any] = {}
    for name, tree in source.repairs.items():
        ours = plain(tree).get("repair") == deletion.repair
        changed[name] = edit(tree, deletion.path, None) if ours else tree
    return replace(source, repairs=changed)


def _by_claim(deletion: Deletion, cut: RuleSource, rules: Rulebook) -> str:
    """What the verifier says where every option does without the source as well."""
    from hitproof.engine.scenario import EngineReplayer
    from hitproof.verification import verify

    users: list[Option] = []
    changed = cut
    for thing in rules.objects.values():
        for option in thing.options:
            role = _role(option, deletion.entry, thing.peers)
            if option.repair == deletion.repair and role is not None:
                users.append(option)
                changed = _freed(changed, option, role)
    for name in shipped_profiles():
        profile = load_profile(name)
        if not any(group.object == option.object for group in profile.groups for option in users):
            continue
        try:
            report = verify(changed, [profile], claims=[CLAIM], replayer=EngineReplayer(), jobs=1)
        except HitproofError:
            # The options read what they no longer consume, so there is no such rulebook to ask about.
            return ""
        found = report.claims[0].counterexample
        if report.verdict == "refuted" and found is not None:
            return f"{CLAIM} refuted for {name}: {found.sentence}"
    return ""


def _role(option: Option, source: str, peers: Mapping[str, tuple[str, ...]]) -> str | None:
    """The name by which an option consumes what the declaration calls `source`."""
    return next((role for role in option.consumes if role == source or source in peers.get(role, ())), None)


def _freed(source: RuleSource, option: Option, role: str) -> RuleSource:
    """The rule files with a role gone from an option, where it is written; an inherited one is written once."""
    for path in (
        ("objects", option.object, "recovery", option.id, "consumes", role),
        ("every_object", "recovery", option.id, "consumes", role),
    ):
        try:
            return source.edited(path, None)[0]
        except HitproofError:
            continue
    return source
