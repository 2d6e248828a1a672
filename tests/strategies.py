"""Hypothesis strategies that tests share: a vocabulary, well-typed conditions, and states near valid ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hitproof.spec.condition import Scope
from hitproof.spec.facts import Fact, admit, declare_fact

ENUMS = {"form": ("full", "windowed", "discarded"), "tier": ("device", "host", "disk")}

_TYPES: dict[str, tuple[str, list[int] | list[float] | None]] = {
    "self.start": ("tokens", [0, 1_000_000]),
    "self.end": ("tokens", [0, 1_000_000]),
    "self.shift": ("tokens", [-50, 50]),
    "self.bytes": ("bytes", None),
    "self.address": ("address", None),
    "self.form": ("form", None),
    "self.tier": ("tier", None),
    "self.generation": ("counter", None),
    "self.kv_generation": ("counter", None),
    "self.weights": ("identity", None),
    "self.marks": ("set of tokens", None),
    "self.pinned": ("bool", None),
    "kv.generation": ("counter", None),
    "kv.form": ("form", None),
    "kv.ready": ("bool", None),
    "request.weights": ("identity", None),
    "runtime.rate": ("us/(tokens*layers)", [0.0, 1000.0]),
    "runtime.wait": ("us", [0.0, 1_000_000.0]),
    "length": ("tokens", [0, 1_000_000]),
    "group.window": ("tokens", [1, 4096]),
    "group.ratio": ("tokens", [0, 4096]),
    "group.layers": ("layers", [1, 100]),
    "group.row_bytes": ("bytes", [1, 100_000]),
    "group.has_v": ("bool", None),
}

FACTS: dict[str, Fact] = {
    path: declare_fact(path, text, ENUMS, domain=domain) for path, (text, domain) in _TYPES.items()
}
SCOPE = Scope(
    FACTS,
    constants=frozenset(path for path in FACTS if path.startswith("group.")),
    aliases={"home": "windowed"},
)
CONSTANTS: dict[str, object] = {
    "group.window": 128,
    "group.ratio": 4,
    "group.layers": 3,
    "group.row_bytes": 584,
    "group.has_v": True,
}
VALID: dict[str, object] = {
    "self.start": 0,
    "self.end": 512,
    "self.shift": 0,
    "self.bytes": 512 * 584,
    "self.address": 0x24000,
    "self.form": "windowed",
    "self.tier": "device",
    "self.generation": 7,
    "self.kv_generation": 7,
    "self.weights": "w1",
    "self.marks": frozenset({128, 256, 512}),
    "self.pinned": False,
    "kv.generation": 7,
    "kv.form": "full",
    "kv.ready": True,
    "request.weights": "w1",
    "runtime.rate": 0.5,
    "runtime.wait": 100.0,
    "length": 512,
}

_CLASSES: dict[str, list[str]] = {}
for _path, _fact in FACTS.items():
    # Two addresses do not fit into 2**62 together: they have conditions of their own below.
    if _fact.type.kind in ("int", "real") and not _path.startswith(("group.", "self.address")):
        _CLASSES.setdefault(str(_fact.type), []).append(_path)
_FIXED = {"tokens": ["group.window", "group.ratio"], "bytes": ["group.row_bytes"]}
_SMALL = st.sampled_from([0, 1, 3, 4, 127, 128, 511, 512, 513, 4096])


def numbers(unit: str) -> st.SearchStrategy[str]:
    """Texts of numbers in this unit (`tokens`, `bytes` or `us`)."""
    leaf = st.one_of(st.sampled_from(_CLASSES[unit] + _FIXED.get(unit, [])), _SMALL.map(str))
    sure = st.sampled_from(_CLASSES[unit])

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        whole = [
            st.builds("({0} % {1})".format, inner, st.sampled_from(["4", "128", "512"])),
            st.builds("({0} // {1})".format, inner, st.sampled_from(["2", "4", "7"])),
        ]
        if unit == "tokens":
            whole.append(inner.map(lambda x: f"({x} // group.ratio * group.ratio)"))
            whole.append(inner.map(lambda x: f"({x} % group.window)"))
        return st.one_of(
            st.builds("({0} {1} {2})".format, inner, st.sampled_from("+-"), inner),
            st.builds("{0}({1}, {2})".format, st.sampled_from(["min", "max"]), inner, inner),
            inner.map(lambda x: f"abs({x})"),
            inner.map(lambda x: f"(-{x})"),
            inner.map(lambda x: f"({x} * 3)"),
            *([] if unit == "us" else whole),
        )

    return st.one_of(sure, st.recursive(leaf, extend, max_leaves=4))


def costs() -> st.SearchStrategy[str]:
    """Texts of costs: microseconds that may multiply a quantity by a rate."""
    product = numbers("tokens").map(lambda x: f"(self.end - {x}) * group.layers * runtime.rate")
    return st.one_of(numbers("us"), product, st.builds("{0} + {1}".format, product, numbers("us")))


def atoms() -> st.SearchStrategy[str]:
    """Texts of conditions without `and`, `or` and `not`."""
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    same = st.sampled_from(["==", "!="])
    compared = [
        st.builds("{0} {1} {2}".format, numbers(unit), order, numbers(unit)) for unit in ("tokens", "bytes", "us")
    ]
    counters = st.sampled_from(["self.generation", "self.kv_generation", "kv.generation", "self.generation + 1"])
    return st.one_of(
        *compared,
        st.builds("{0} <= {1} < {2}".format, *([numbers("tokens")] * 3)),
        st.builds("{0} {1} {2}".format, counters, order, st.one_of(counters, _SMALL.map(str))),
        st.builds(
            "{0} {1} {2}".format,
            st.sampled_from(["self.form", "kv.form"]),
            same,
            st.sampled_from(["full", "home", "discarded", "kv.form"]),
        ),
        st.builds("self.weights {0} request.weights".format, same),
        st.sampled_from(["self.pinned", "kv.ready", "group.has_v", "True", "False"]),
        st.builds("{0} {1} self.marks".format, numbers("tokens"), st.sampled_from(["in", "not in"])),
        st.sampled_from(["self.tier in (device, host)", "self.tier not in (disk,)", "self.address % 512 == 0"]),
        st.sampled_from(["(self.address + self.bytes) % 512 < 8", "-self.address // 4096 < 0"]),
        st.builds("{0} in (0, 128, 512)".format, numbers("tokens")),
        st.sampled_from(sorted(VALID)).map(lambda path: f"known({path})"),
    )


def conditions() -> st.SearchStrategy[str]:
    """Texts of well-typed conditions over SCOPE; `known` stands anywhere."""

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds("({0} and {1})".format, inner, inner),
            st.builds("({0} or {1})".format, inner, inner),
            st.builds("implies({0}, {1})".format, inner, inner),
            inner.map(lambda x: f"(not {x})"),
        )

    return st.recursive(atoms(), extend, max_leaves=5)


@st.composite
def states(draw: st.DrawFn) -> dict[str, object]:
    """Values by path: a valid state in which up to four facts were broken, left out, or put at an edge."""
    state = dict(VALID)
    for path in draw(st.lists(st.sampled_from(sorted(VALID)), max_size=4, unique=True)):
        state[path] = draw(broken_values(path))
    return state


def broken_values(path: str) -> st.SearchStrategy[Any]:
    """Values of a fact near its valid one: unknown, at and beyond the domain's edges, of the wrong type."""
    fact = FACTS[path]
    common: list[Any] = [None, "elsewhere", True, 7, 2.5]
    match fact.type.kind:
        case "int" | "counter":
            near = VALID[path]
            assert isinstance(near, int) and fact.lo is not None and fact.hi is not None
            edges = [fact.lo, fact.hi, fact.lo - 1, fact.hi + 1, near - 1, near + 1, 2**63, -(2**63)]
            return st.sampled_from([*common, *edges])
        case "real":
            return st.sampled_from([*common, 0.0, fact.hi, -1.0, 0.25, 1e300, float("nan"), float("inf"), 2**70])
        case "bool":
            return st.sampled_from([True, False, None, 0, 1])
        case "enum":
            return st.sampled_from([*fact.type.members, None, "gone", 0])
        case "identity":
            return st.sampled_from(["w1", "w2", None, 7, 7.0, True])
        case _:
            sets = [frozenset(), frozenset({128}), frozenset({True}), frozenset({2**70})]
            return st.sampled_from([*sets, None, {128}])


def admitted(state: dict[str, object]) -> dict[str, object]:
    """The state with everything out of type or domain made unknown."""
    return {path: admit(FACTS[path], value) for path, value in state.items()}
