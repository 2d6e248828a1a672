"""The life of a hit after its decision: counters, and the steps that whatever is reported leads to."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.rules.places import Places
from hitproof.rules.scopes import Scopes
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.condition import Node, Ref, Scope, parse_condition
from hitproof.spec.errors import DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.facts import Fact, declare_fact
from hitproof.spec.process import ENDS, MEASURES, OF_A_REPAIR, Counter, ProcessStep, RecoveryProcess
from hitproof.spec.rulefile import CounterDecl, ProcessStepDecl, RuleFile
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["resolve_process"]


def resolve_process(
    parts: list[tuple[Tree, RuleFile]], vocabulary: Vocabulary, scopes: Scopes
) -> RecoveryProcess | None:
    """The process that a rulebook declares; None where it declares none, and then no plan can be run by it.

    Raises:
        DuplicateError: The section, a counter or a step stands twice.
        SchemaError: A counter may fall below 0, or a step asks for what its reports cannot give.
        ReferenceNameError: A step takes or sets what is no counter.
        ConditionError: An expression is wrong.
    """
    found: RecoveryProcess | None = None
    for tree, part in parts:
        if part.recovering is None:
            continue
        at = Places(tree, ("recovering",))
        vocabulary.claim("section", "recovering", at("counters"))
        counters = _counters(part.recovering.counters, scopes, at)
        scope = scopes.recovering({one.id: one.fact for one in counters})
        steps: dict[str, ProcessStep] = {}
        for i, decl in enumerate(part.recovering.steps):
            here = at.under("steps", i)
            if decl.id in steps:
                raise DuplicateError(f"step {decl.id} stands twice", where=here("id"), rule=f"recovering/{decl.id}")
            steps[decl.id] = _step(decl, {one.id: one.fact for one in counters}, scope, here)
        found = RecoveryProcess(counters, tuple(steps.values()), at("counters"))
    return found


def _counters(declared: list[CounterDecl], scopes: Scopes, at: Places) -> tuple[Counter, ...]:
    scope = scopes.recovering({})
    found: dict[str, Counter] = {}
    for i, decl in enumerate(declared):
        here, rule = at.under("counters", i), f"recovering/{decl.id}"
        if decl.id in found:
            raise DuplicateError(f"counter {decl.id} stands twice", where=here("id"), rule=rule)
        if decl.id in scope.facts:
            raise DuplicateError(f"'{decl.id}' is another name already", where=here("id"), rule=rule, got=decl.id)
        fact = declare_fact(
            decl.id, "count", {}, domain=decl.domain, because=decl.because, where=here("domain"), rule=rule
        )
        if decl.domain is not None and decl.domain[0] < 0:
            raise SchemaError(
                "a counter stays at 0 or more",
                where=here("domain"),
                rule=rule,
                got=list(decl.domain),
                expected="[0, highest]",
            )
        start = parse_condition(str(decl.start), scope, expect=fact.type, where=here("start"), rule=rule)
        measure = start.path.partition(".")[2] if isinstance(start, Ref) and start.path.startswith("event.") else None
        found[decl.id] = Counter(decl.id, fact, start, measure, decl.because, here("id"))
    return tuple(found.values())


def _step(decl: ProcessStepDecl, counters: Mapping[str, Fact], scope: Scope, at: Places) -> ProcessStep:
    rule = f"recovering/{decl.id}"
    when = None
    if decl.when is not None:
        when = parse_condition(str(decl.when), scope, where=at("when"), rule=rule, allow_known="any")
    for key, names in (("takes", decl.takes), ("sets", list(decl.sets))):
        for i, name in enumerate(names):
            known = [one for one in counters if key == "sets" or one in MEASURES]
            if name not in known:
                raise ReferenceNameError(
                    f"'{name}' is no counter" + (" that is measured" if key == "takes" else ""),
                    where=at("takes", i) if key == "takes" else at("sets", name),
                    rule=rule,
                    got=name,
                    hint=suggest(name, known),
                )
    twice = sorted(set(decl.takes) & set(decl.sets))
    if twice:
        raise DuplicateError(
            f"'{twice[0]}' is both measured and set", where=at("sets", twice[0]), rule=rule, got=twice[0]
        )
    _check_reports(decl, at, rule)
    sets: dict[str, Node] = {
        name: parse_condition(str(text), scope, expect=counters[name].type, where=at("sets", name), rule=rule)
        for name, text in decl.sets.items()
    }
    return ProcessStep(
        id=decl.id,
        on=tuple(dict.fromkeys(decl.on)),
        when=when,
        takes=tuple(dict.fromkeys(decl.takes)),
        sets=sets,
        bars=decl.bars,
        quarantines=decl.quarantines,
        then=decl.then,
        because=decl.because,
        source=decl.source,
        where=at("id"),
    )


def _check_reports(decl: ProcessStepDecl, at: Places, rule: str) -> None:
    """What follows must be able to follow each report: nothing is used unless it is ready, and so on."""
    allowed = {"use": ("ready",), "go_on": ("done",), "retry": OF_A_REPAIR}.get(decl.then)
    if decl.bars or decl.quarantines:
        allowed = tuple(one for one in OF_A_REPAIR if allowed is None or one in allowed)
    for i, report in enumerate(decl.on):
        if allowed is not None and report not in allowed:
            raise SchemaError(
                f"after the report '{report}' this cannot follow",
                where=at("on", i),
                rule=rule,
                got=report,
                expected=", ".join(allowed) or "no report at all",
            )
    if decl.bars and decl.then not in ("decide", *ENDS):
        raise SchemaError(
            "a barred level asks for a new decision", where=at("then"), rule=rule, got=decl.then, expected="decide"
        )
