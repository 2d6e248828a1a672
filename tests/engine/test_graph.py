"""Diagrams of the form machine: they show every event, escape every name, and can be read."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from hitproof.engine.form_graph import FormGraph, form_graph
from hitproof.engine.graph import mermaid, svg
from hitproof.engine.graph_svg import draw
from hitproof.spec.rulebook import ObjectRules, Rulebook
from tests.engine.event_cases import bound_to

BOUND = bound_to("deepseek-v4-flash")
RULEBOOK = BOUND.rulebook
DRAWN: dict[str, Rulebook | ObjectRules] = {"rulebook": RULEBOOK, **RULEBOOK.objects}
HOSTILE = "a\"b<script>&'; #x --> :\n]]>"

Box = tuple[float, float, float, float]


def arrows(text: str) -> dict[tuple[str, str], set[str]]:
    """The arrows of a Mermaid state diagram, by the forms that its names stand for."""
    names = {name: form for form, name in re.findall(r'state "(.*)" as (\w+)', text)}
    found = re.findall(r"^    (form\d+) --> (form\d+): (.*)$", text, re.MULTILINE)
    return {(names[source], names[target]): set(label.split(", ")) for source, target, label in found}


@pytest.mark.parametrize("name", sorted(RULEBOOK.objects))
def test_mermaid_shows_every_event_of_an_object(name: str) -> None:
    """The arrows of an object's diagram are its transitions, no more and no fewer."""
    expected: dict[tuple[str, str], set[str]] = {}
    for one in RULEBOOK.objects[name].transitions:
        for source in one.sources:
            expected.setdefault((source, one.target), set()).add(one.id)
    text = mermaid(RULEBOOK.objects[name])
    assert text.startswith("stateDiagram-v2\n")
    assert expected == arrows(text)


def test_mermaid_of_the_rulebook_merges_home_forms() -> None:
    """One diagram has every event once more, with `home` for the form where each object is at home."""
    shown = arrows(mermaid(RULEBOOK))
    assert {"rollback", "roll_window", "unseal", "defragment"} <= shown["home", "home"]
    assert {"evict"} == shown["home", "discarded"] == shown["demoted", "discarded"]
    assert not {"full", "windowed", "compressed", "index_dependent"} & {form for pair in shown for form in pair}
    events = {one.id for rules in RULEBOOK.objects.values() for one in rules.transitions}
    assert events == set().union(*shown.values())


def test_a_life_begins_where_nothing_is_held() -> None:
    """The start marker leads to `discarded`, which also stands first."""
    assert "discarded" == form_graph(RULEBOOK).forms[0]
    assert "    [*] --> form0\n" in mermaid(RULEBOOK)


def test_an_object_at_home_on_the_way_of_others_is_named_and_left_out() -> None:
    """A manifest's home is where other objects are demoted: merging it would draw a lie."""
    graph = form_graph(BOUND)
    assert "demoted_prefix" in graph.note
    assert ("demoted", "moving") in graph.edges
    assert {"promote_begin"} == set(graph.edges["demoted", "moving"])
    assert "demoted_prefix" in svg(BOUND)


def test_a_bound_group_is_drawn_as_its_object() -> None:
    """Whatever has a form machine can be drawn."""
    group = BOUND.group("window")
    assert mermaid(group.rules) == mermaid(group)
    assert mermaid(RULEBOOK) == mermaid(BOUND)


def test_hostile_names_stay_text() -> None:
    """Quotes, markup and arrows in a name neither break the Mermaid text nor the image."""
    rules = RULEBOOK.objects["full_kv"]
    one = replace(rules.transitions[0], id=HOSTILE, sources=(HOSTILE,), target="pending")
    hostile = replace(rules, title=HOSTILE, transitions=(one, replace(one, target=HOSTILE)))
    text = mermaid(hostile)
    assert 6 == len(text.splitlines())
    assert not set("\"<>&';") & set(re.sub(r"#\d+;|-->", "", text.replace('state "', "").replace('" as', "")))
    root = ElementTree.fromstring(svg(hostile))
    assert HOSTILE in {element.text for element in root.iter()}
    assert not [element for element in root.iter() if element.tag.endswith("script")]


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_image_is_self_contained(name: str) -> None:
    """The image is well-formed and refers to nothing outside itself."""
    text = svg(DRAWN[name])
    ElementTree.fromstring(text)
    assert not re.search(r"href|url\((?!#)|@import|<script|<image|<foreignObject", text)
    assert {"http://www.w3.org/2000/svg"} == set(re.findall(r"https?://[^\"' ]+", text))


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_image_can_be_read(name: str) -> None:
    """No label meets another label, the box of a form or the image's edge, and every event is there."""
    root = ElementTree.fromstring(svg(DRAWN[name]))
    labels, boxes = text_boxes(root), form_boxes(root)
    for (one, first), (other, second) in combinations(labels, 2):
        assert not overlap(first, second), f"{one} on {other}"
    for label, place in labels:
        assert 0 <= place[0] and place[2] <= float(root.get("width", 0)), f"{label} is cut"
        assert 0 <= place[1] and place[3] <= float(root.get("height", 0)), f"{label} is cut"
        for box in boxes:
            assert inside(place, box) or not overlap(place, box), f"{label} on the border of a form"
    events = {event for events in form_graph(DRAWN[name]).edges.values() for event in events}
    assert events <= {label for label, _ in labels}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_arrows_touch_the_forms_they_join(name: str) -> None:
    """Each arrow begins and ends on the border of a box, and they are as many as the graph's edges."""
    root = ElementTree.fromstring(svg(DRAWN[name]))
    paths = [one.get("d", "") for one in root.iter(f"{SVG}path") if one.get("marker-end")]
    edges = [pair for pair in form_graph(DRAWN[name]).edges if pair[0] != pair[1]]
    assert len(edges) == len(paths)
    boxes = form_boxes(root)
    for path in paths:
        for x, y in ends(path):
            assert any(on_border(x, y, box) for box in boxes), path


def test_an_empty_machine_can_be_drawn() -> None:
    """No transitions give an empty diagram, not an error."""
    empty = FormGraph("nothing", (), {})
    ElementTree.fromstring(draw(empty))
    assert "stateDiagram-v2\n    direction LR\n" == mermaid(replace(RULEBOOK.objects["full_kv"], transitions=()))


SVG = "{http://www.w3.org/2000/svg}"


def text_boxes(root: ElementTree.Element) -> list[tuple[str, Box]]:
    """Every text with the room that it takes; a character is 7.3 pixels wide, in bold 8.6."""
    found = []
    for one in root.iter(f"{SVG}text"):
        text, x, y = one.text or "", float(one.get("x", 0)), float(one.get("y", 0))
        width = len(text) * (8.6 if one.get("class") in ("form", "title") else 7.3)
        left = x - {"middle": width / 2, "end": width}.get(one.get("text-anchor", ""), 0)
        found.append((text, (left, y - 10, left + width, y + 3)))
    return found


def form_boxes(root: ElementTree.Element) -> list[Box]:
    """The boxes of the forms."""
    found = []
    for one in root.iter(f"{SVG}rect"):
        if one.get("class") == "box":
            x, y, width, height = (float(one.get(key, 0)) for key in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def ends(path: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """First and last point of a path of M, H and V steps."""
    steps = re.findall(r"([MHV])([\d.]+)(?: ([\d.]+))?", path)
    x, y = float(steps[0][1]), float(steps[0][2])
    start = (x, y)
    for kind, value, _ in steps[1:]:
        x, y = (float(value), y) if kind == "H" else (x, float(value))
    return start, (x, y)


def overlap(one: Box, other: Box) -> bool:
    """Whether two rectangles share an area."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def inside(one: Box, other: Box) -> bool:
    """Whether the first rectangle lies in the second."""
    return other[0] <= one[0] and other[1] <= one[1] and one[2] <= other[2] and one[3] <= other[3]


def on_border(x: float, y: float, box: Box) -> bool:
    """Whether a point lies on a rectangle's border, within a tenth of a pixel."""
    near_x = min(abs(x - box[0]), abs(x - box[2])) < 0.1 and box[1] <= y <= box[3]
    near_y = min(abs(y - box[1]), abs(y - box[3])) < 0.1 and box[0] <= x <= box[2]
    return near_x or near_y
