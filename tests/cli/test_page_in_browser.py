"""The page as a browser shows it: the figures of the replay, nothing cut or overlapping, light, dark and on paper."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hitproof.cli.page import replay_page
from tests.cli.chromium import CHROMIUM, dump, first_pixel, printed, screenshot
from tests.cli.page_reader import Element, expected_figures, figures, read
from tests.cli.running import run
from tests.cli.test_page import MODELS, POLICIES, story

WIDTH, HEIGHT = 1366, 768
POLICY = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
MEASURE = """<script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  const wrong = [];
  let seen = 0;
  for (const one of document.body.querySelectorAll("*")) {
    const box = one.getBoundingClientRect(), told = one.textContent.slice(0, 40);
    if (box.right > innerWidth + 0.5 || box.left < -0.5) wrong.push(`${one.tagName} ${told}`);
    if (one.matches(".scroll, figure") && one.scrollWidth > one.clientWidth + 1) wrong.push(`scrolls: ${told}`);
  }
  for (const picture of document.querySelectorAll("svg")) {
    const frame = picture.getBoundingClientRect();
    const boxes = [...picture.querySelectorAll("text")].map(one => [one, one.getBoundingClientRect()]);
    boxes.forEach(([one, a], place) => {
      seen += 1;
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 3 || a.bottom > frame.bottom + 3)
        wrong.push("cut: " + one.textContent);
      for (const [other, b] of boxes.slice(place + 1))
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
          wrong.push("overlap: " + one.textContent + " / " + other.textContent);
    });
  }
  document.body.dataset.measured = JSON.stringify({wrong, seen, width: innerWidth});
});
</script>
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for pages and pictures."""
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def reports(folder: Path) -> list[dict[str, Any]]:
    """Replays of two models under every retention; `page.html` is their page."""
    trace = folder / "synthetic.jsonl"
    assert 0 == run("trace", "synth", "--out", trace, "--requests", "300", "--seed", "7").code
    models = [part for model in MODELS for part in ("--model", model)]
    tiers = ("--capacity", "400", "--host-blocks", "400", "--disk-blocks", "400", "--retention", "all")
    done = run("replay", trace, *models, *tiers, "--format", "json", "--html", folder / "page.html")
    assert 0 == done.code, done.out
    found: list[dict[str, Any]] = done.data["reports"]
    return found


@pytest.fixture(scope="module")
def shown(folder: Path, reports: list[dict[str, Any]]) -> Element:
    """The elements that the browser made of the page."""
    assert reports
    return read(dump(folder / "page.html", WIDTH, HEIGHT))


def measured(page: str, file: Path) -> dict[str, Any]:
    """What a script finds out of place in a copy of the page that lets it run."""
    assert POLICY in page
    file.write_text(page.replace(POLICY, MEASURE), "utf-8")
    (told,) = re.findall(r'data-measured="([^"]*)"', dump(file, WIDTH, HEIGHT))
    found: dict[str, Any] = json.loads(told.replace("&quot;", '"').replace("&amp;", "&"))
    return found


def test_the_browser_shows_the_figures_of_the_replay(shown: Element, reports: list[dict[str, Any]]) -> None:
    """Each figure of the JSON answer is in the tables that the browser made, exactly."""
    assert expected_figures(reports) == figures(shown)


def test_the_browser_takes_the_page_as_it_is(folder: Path, shown: Element) -> None:
    """It mends nothing: the elements and texts are those of the file, but for the body's own parts."""
    written = read((folder / "page.html").read_text("utf-8"))
    for name in ("section", "svg", "table", "tr", "td", "th", "rect", "path", "text", "title", "li"):
        assert [one.text for one in written.all(name)] == [one.text for one in shown.all(name)]


@pytest.mark.parametrize("kind", ["many", "one", "policies", "long names"])
def test_nothing_is_cut_and_nothing_overlaps(kind: str, folder: Path, reports: list[dict[str, Any]]) -> None:
    """At 1366 pixels every element lies within the window, every label within its picture, and none on another."""
    told = {
        "many": story(reports),
        "one": story(reports[3:4]),
        "policies": story(reports[:1], policies=POLICIES),
        "long names": story(_with_long_names(reports)),
    }[kind]
    found = measured(replay_page(told), folder / f"{kind}.html")
    assert [] == found["wrong"]
    assert WIDTH == found["width"]
    assert found["seen"] > 50


def test_what_is_out_of_place_is_seen(folder: Path, reports: list[dict[str, Any]]) -> None:
    """An element wider than the window and two labels on one another are found, so a clean answer means something."""
    page = replay_page(story(reports[:1]))
    wide = page.replace("<main>", '<main><div style="width:1500px">too wide</div>', 1)
    double = page.replace(
        'class="total">', 'class="total">.</text><text x="300" y="15">12</text><text x="301" y="15">', 1
    )
    assert any("too wide" in one for one in measured(wide, folder / "wide.html")["wrong"])
    assert any("overlap" in one for one in measured(double, folder / "double.html")["wrong"])


def test_the_scheme_of_the_reader_is_followed(folder: Path, shown: Element) -> None:
    """The page is light on white, dark on the dark ground, and there is something to see on both."""
    assert shown.all("main")
    light, dark = (
        first_pixel(screenshot(folder / "page.html", folder / f"{dark}.png", WIDTH, HEIGHT, dark=dark))
        for dark in (False, True)
    )
    assert ((WIDTH, HEIGHT), (255, 255, 255)) == light[:2]
    assert ((WIDTH, HEIGHT), (0x14, 0x17, 0x1B)) == dark[:2]
    assert min(light[2], dark[2]) > 100


def test_it_prints_on_wide_paper(folder: Path, shown: Element) -> None:
    """A PDF of some pages, each wider than high."""
    assert shown.all("main")
    pdf = printed(folder / "page.html", folder / "page.pdf")
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert pdf.startswith(b"%PDF")
    assert 4 <= len(boxes) <= 14
    assert all(float(width) > float(height) for width, height in boxes)


def _with_long_names(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    spoiled = copy.deepcopy(reports)
    for one in spoiled:
        one["settings"]["model"] += "-WITH-a-very-long-NAME" * 5
        one["settings"]["retention"] += "_and_what_it_is_for" * 3
        for share in one["recovery"]:
            share["group"] += "_of_many_words" * 5
    return spoiled
