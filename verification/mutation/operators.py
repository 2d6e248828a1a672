"""Every edit of a rulebook that drops or turns one guard, term, effect, source, pin, epoch rule or step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hitproof.rules.edit import TreePath
from hitproof.rules.source import RuleSource
from hitproof.spec.yaml_tree import plain
from hitproof.verification.mutation.conditions import term_edits

__all__ = ["Edit", "all_edits"]

_EFFECTS = ("sets", "adds", "resets", "chooses")
_TOGGLES = ("keeps_prefix", "allocates", "moves", "frees", "renews", "bars", "quarantines")
_OTHER_PINS = {"unpinned": ("any", "drop"), "exclusive": ("any", "drop"), "any": ("unpinned", "flip")}
_OTHER_KEY = {"publish": ("keep", "clear"), "clear": ("keep", "publish"), "keep": ("publish", "clear")}


@dataclass(frozen=True)
class Edit:
    """One edit of a rulebook.

    Args:
        section: The part of a rulebook in which it stands, as in its files.
        object: The object whose rule it is; empty for the rules of all.
        rule: Id of the rule.
        what: `drop` or `flip`.
        path: Place of the edit: keys, and ids or indexes of list items.
        value: The new value, None to delete.
        change: The edit in words.
    """

    section: str
    object: str
    rule: str
    what: str
    path: TreePath
    value: Any
    change: str

    @property
    def id(self) -> str:
        """A name for the edit: the rule, and what is done to it."""
        return f"{self.object or self.section}/{self.rule}: {self.change}"


def all_edits(source: RuleSource) -> Iterator[Edit]:
    """Every edit, in the order of the files."""
    for tree in source.files.values():
        content = plain(tree)
        every = content.get("every_object") or {}
        yield from _common(("every_object",), "", every)
        for name, effect in every.get("effects", {}).items():
            yield from _effect(("every_object", "effects", name), "", name, effect)
        for name, members in every.get("check_sets", {}).items():
            path = ("every_object", "check_sets", name)
            yield from _items(path, "options", "", name, "the set of checks", members)
        for name, rules in content.get("objects", {}).items():
            yield from _object(name, rules)
        for event in content.get("transitions", ()):
            yield from _transition(event)
        yield from _keys(content.get("keys", {}))
        for phase, steps in (content.get("leasing") or {}).items():
            for step in steps:
                path = ("leasing", phase, step["id"])
                yield Edit("leasing", "", step["id"], "drop", path, None, f"drops the step '{step['does']}'")
        for step in (content.get("recovering") or {}).get("steps", ()):
            yield from _process_step(step)


def _object(name: str, rules: dict[str, Any]) -> Iterator[Edit]:
    path = ("objects", name)
    for index, condition in enumerate(rules.get("domain", ())):
        for edit in term_edits(condition):
            place = (*path, "domain", index)
            yield Edit("checks", name, "well_formed", edit.what, place, edit.text, edit.change)
    if isinstance(rules.get("needed"), str):
        yield from _condition((*path, "needed"), "checks", name, "needed", rules["needed"])
    if isinstance(rules.get("resumable"), dict):
        yield Edit("checks", name, "resumable", "drop", (*path, "resumable"), None, "drops where it can resume")
    yield from _common(path, name, rules)


def _common(path: TreePath, name: str, rules: dict[str, Any]) -> Iterator[Edit]:
    """Checks and options, of one object or of all."""
    for check in rules.get("checks", ()):
        place, rule = (*path, "checks", check["id"]), check["id"]
        for edit in term_edits(check["require"]):
            # A check that asks nothing stays, since other rules may name it.
            left = True if edit.text is None else edit.text
            yield Edit("checks", name, rule, edit.what, (*place, "require"), left, edit.change)
        if "applies" in check:
            yield from _condition((*place, "applies"), "checks", name, rule, check["applies"])
    for option in rules.get("recovery", ()):
        yield from _option((*path, "recovery", option["id"]), name, option)


def _option(path: TreePath, name: str, option: dict[str, Any]) -> Iterator[Edit]:
    rule = option["id"]
    for key in ("when", "applies"):
        if key in option:
            yield from _condition((*path, key), "options", name, rule, option[key])
    for key, told in (("mends", "what it mends"), ("consumes", "what it consumes"), ("effects", "its effects")):
        if isinstance(option.get(key), list):
            yield from _items((*path, key), "options", name, rule, told, option[key])
    yield from _effect(path, name, rule, option)


def _effect(path: TreePath, name: str, rule: str, effect: dict[str, Any]) -> Iterator[Edit]:
    """Assignments of an option or of an effect that options share."""
    for key in _EFFECTS:
        for fact, value in effect.get(key, {}).items():
            place = (*path, key, fact)
            if key == "chooses":
                yield from _condition(place, "options", name, rule, value)
                continue
            yield Edit("options", name, rule, "drop", place, None, f"drops `{key}: {fact}`")
            if key == "sets" and value != f"self.{fact}":
                yield Edit("options", name, rule, "flip", place, f"self.{fact}", f"leaves `{fact}` as it was")
    if effect.get("renews"):
        yield Edit("options", name, rule, "flip", (*path, "renews"), False, "turns `renews` off")


def _transition(event: dict[str, Any]) -> Iterator[Edit]:
    path, rule = ("transitions", event["id"]), event["id"]

    def edit(what: str, key: str | tuple[str, ...], value: object, change: str) -> Edit:
        place = (*path, key) if isinstance(key, str) else (*path, *key)
        return Edit("transitions", "", rule, what, place, value, change)

    if "when" in event:
        yield from _condition((*path, "when"), "transitions", "", rule, event["when"])
    pins, what = _OTHER_PINS[event["pins"]]
    yield edit(what, "pins", pins, f"turns `pins: {event['pins']}` into `{pins}`")
    owner = event.get("owner", "any")
    other = "any" if owner == "sole" else "sole"
    yield edit("drop" if owner == "sole" else "flip", "owner", other, f"turns `owner: {owner}` into `{other}`")
    for key, told in (("from", "its source forms"), ("takes", "what it takes"), ("forgets", "what it forgets")):
        if len(event.get(key, ())) > (key == "from"):
            yield from _items((*path, key), "transitions", "", rule, told, event[key])
    for fact, value in event.get("sets", {}).items():
        yield edit("drop", ("sets", fact), None, f"drops `sets: {fact}`")
        if isinstance(value, bool):
            yield edit("flip", ("sets", fact), not value, f"turns `sets: {fact}` into {str(not value).lower()}")
    key = event.get("key", "keep")
    for index, value in enumerate(_OTHER_KEY[key]):
        yield edit("flip" if index or key == "keep" else "drop", "key", value, f"turns `key: {key}` into `{value}`")
    for flag in _TOGGLES[:4]:
        old = bool(event.get(flag))
        yield edit("drop" if old else "flip", flag, not old, f"turns `{flag}` {'off' if old else 'on'}")


def _keys(keys: dict[str, Any]) -> Iterator[Edit]:
    for tier, key in keys.items():
        for field in key["fields"]:
            path: TreePath = ("keys", tier, "fields", field)
            yield Edit("keys", "", tier, "drop", path, None, f"drops `{field}`")
        for field in key.get("begins", {}):
            path = ("keys", tier, "begins", field)
            yield Edit("keys", "", tier, "drop", path, None, f"drops where `{field}` begins")


def _process_step(step: dict[str, Any]) -> Iterator[Edit]:
    path, rule = ("recovering", "steps", step["id"]), step["id"]
    yield Edit("recovering", "", rule, "drop", path, None, "drops the step")
    if "when" in step:
        yield from _condition((*path, "when"), "recovering", "", rule, step["when"])
    if len(step["on"]) > 1:
        yield from _items((*path, "on"), "recovering", "", rule, "what it answers", step["on"])
    yield from _items((*path, "takes"), "recovering", "", rule, "what it takes", step.get("takes", ()))
    for name in step.get("sets", {}):
        place = (*path, "sets", name)
        yield Edit("recovering", "", rule, "drop", place, None, f"drops `sets: {name}`")
    for flag in ("bars", "quarantines"):
        old = bool(step.get(flag))
        change = f"turns `{flag}` {'off' if old else 'on'}"
        yield Edit("recovering", "", rule, "drop" if old else "flip", (*path, flag), not old, change)


def _condition(path: TreePath, section: str, name: str, rule: str, condition: object) -> Iterator[Edit]:
    for edit in term_edits(condition):
        change = edit.change if path[-1] in ("when", "require") else f"in `{path[-1]}` {edit.change}"
        yield Edit(section, name, rule, edit.what, path, edit.text, change)


def _items(path: TreePath, section: str, name: str, rule: str, told: str, items: Any) -> Iterator[Edit]:
    for item in items:
        yield Edit(section, name, rule, "drop", (*path, item), None, f"drops '{item}' from {told}")
