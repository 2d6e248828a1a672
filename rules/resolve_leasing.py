"""The life of a lease: the steps by which it is taken, confirmed and released."""

from __future__ import annotations

from hitproof.rules.places import Places
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.errors import DuplicateError, SchemaError
from hitproof.spec.leasing import ACTIONS, COMPARED, LeaseStep, Leasing
from hitproof.spec.rulefile import LeaseStepDecl, RuleFile
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["resolve_leasing"]


def resolve_leasing(parts: list[tuple[Tree, RuleFile]], vocabulary: Vocabulary) -> Leasing | None:
    """The leases that a rulebook declares; None where it declares none, and then nothing can be held by it.

    Raises:
        DuplicateError: The section, a step or an action stands twice.
        SchemaError: An action belongs to another phase, or compares what no step has noted.
    """
    found: Leasing | None = None
    for tree, part in parts:
        if part.leasing is None:
            continue
        at = Places(tree, ("leasing",))
        vocabulary.claim("section", "leasing", at())
        declared = {"take": part.leasing.take, "confirm": part.leasing.confirm, "release": part.leasing.release}
        _check_ids(declared, at)
        phases = {phase: _steps(phase, steps, at) for phase, steps in declared.items()}
        noted = any(step.does == "note" for step in phases["take"])
        compares = next((step for step in phases["confirm"] if step.does in COMPARED), None)
        if compares is not None and not noted:
            raise SchemaError(
                "nothing is noted that could be compared",
                where=compares.where,
                rule=f"leasing/{compares.id}",
                got=compares.does,
                expected="a step under take that does note",
            )
        found = Leasing(phases["take"], phases["confirm"], phases["release"], at())
    return found


def _check_ids(declared: dict[str, list[LeaseStepDecl]], at: Places) -> None:
    seen: set[str] = set()
    for phase, steps in declared.items():
        for i, decl in enumerate(steps):
            if decl.id in seen:
                raise DuplicateError(
                    f"step {decl.id} stands twice", where=at(phase, i, "id"), rule=f"leasing/{decl.id}"
                )
            seen.add(decl.id)


def _steps(phase: str, declared: list[LeaseStepDecl], at: Places) -> tuple[LeaseStep, ...]:
    found: dict[str, LeaseStep] = {}
    for i, decl in enumerate(declared):
        where, rule = at(phase, i, "does"), f"leasing/{decl.id}"
        if decl.does not in ACTIONS[phase]:
            raise SchemaError(
                f"this is not done where a lease is in its phase '{phase}'",
                where=where,
                rule=rule,
                got=decl.does,
                expected=", ".join(ACTIONS[phase]),
            )
        if decl.does in found:
            raise DuplicateError(f"'{decl.does}' is done twice", where=where, rule=rule, got=decl.does)
        found[decl.does] = LeaseStep(decl.id, decl.does, decl.because, decl.source, at(phase, i, "id"))
    return tuple(found.values())
