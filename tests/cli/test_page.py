"""The page of a replay is whole, loads nothing, shows the figures of the report, and takes no text for markup."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hitproof.cli.page import PolicyRow, ReplayStory, StatedRate, StatedRetention, policy_rows, replay_page
from hitproof.engine.replay import evaluate_policy
from hitproof.engine.trace import read_trace
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from tests.cli.page_reader import Element, expected_figures, figures, read
from tests.cli.running import Done, run

MODELS = ("deepseek-v4-flash", "qwen3-next-80b-a3b")
POLICIES = (
    PolicyRow("as stated", 310e3, 8.2e6, 0.2, 0.16, 0.005, 3 * 10**12, 4 * 10**11),
    PolicyRow("none", 420e3, 9.9e6, 0.2, 0.0, 0.165, 0, 0),
)
PARTS = ("effective", "recovered", "recomputed")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic trace."""
    file = tmp_path_factory.mktemp("trace") / "synthetic.jsonl"
    assert 0 == run("trace", "synth", "--out", file, "--requests", "300", "--seed", "7").code
    return file


@pytest.fixture(scope="module")
def made(trace: Path) -> tuple[Done, str]:
    """The answer of a replay of two models under every retention, and the page that it wrote."""
    page = trace.parent / "page.html"
    models = [part for model in MODELS for part in ("--model", model)]
    tiers = ("--capacity", "400", "--host-blocks", "400", "--disk-blocks", "400")
    done = run("replay", trace, *models, *tiers, "--retention", "all", "--format", "json", "--html", page)
    assert 0 == done.code, done.out
    return done, page.read_text("utf-8")


@pytest.fixture(scope="module")
def reports(made: tuple[Done, str]) -> list[dict[str, Any]]:
    """The reports, as JSON told them."""
    found: list[dict[str, Any]] = made[0].data["reports"]
    return found


@pytest.fixture(scope="module")
def page(made: tuple[Done, str]) -> Element:
    """The page's elements."""
    return read(made[1])


def story(reports: list[dict[str, Any]], **others: Any) -> ReplayStory:
    """A story about some reports."""
    return ReplayStory("trace.jsonl", "0" * 64, reports, **others)


class TestWhole:
    """The document itself."""

    def test_it_is_well_formed(self, made: tuple[Done, str], page: Element) -> None:
        """Every element is closed, ids are unique, links lead to one of them, and each picture is XML."""
        assert made[1].startswith("<!doctype html>")
        ids = [one.attributes["id"] for one in page.walk() if "id" in one.attributes]
        assert sorted(set(ids)) == sorted(ids)
        assert {one.attributes["href"] for one in page.all("a")} <= {f"#{name}" for name in ids}
        pictures = re.findall(r"<svg.*?</svg>", made[1], re.DOTALL)
        assert len(page.all("svg")) == len(pictures) > 10
        for picture in pictures:
            ElementTree.fromstring(picture)

    def test_it_loads_nothing(self, made: tuple[Done, str], page: Element) -> None:
        """No element names a place on the network, no style imports, nothing runs, and a browser is told so."""
        places = ("action", "background", "data", "href", "poster", "src", "srcset", "xlink:href")
        loading = [one for one in page.walk() if any(name in one.attributes for name in places)]
        assert {"a"} == {one.name for one in loading}
        assert all(one.attributes["href"].startswith("#") for one in loading)
        assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {
            one.name for one in page.walk()
        }
        assert not [one for one in page.walk() for name in one.attributes if name.startswith("on")]
        assert {"http://www.w3.org/2000/svg"} == set(re.findall(r"https?://[^\"'\s)]*", made[1]))
        style = page.all("style")[0].text
        assert "@import" not in style
        assert "url(" not in style
        policies = [one.attributes["content"] for one in page.all("meta") if "http-equiv" in one.attributes]
        assert ["default-src 'none'; style-src 'unsafe-inline'"] == policies

    def test_pictures_have_names_and_tables_titles(self, page: Element) -> None:
        """A screen reader is told what each picture shows, and each column and row what it is of."""
        for picture in page.all("svg"):
            assert "img" == picture.attributes["role"]
            assert picture.attributes["aria-label"] == picture.children[0].text
            assert "title" == picture.children[0].name
        for one in page.all("table"):
            assert one.all("caption")[0].text.strip()
            assert all(head.attributes.get("scope") for head in one.all("th"))

    def test_each_picture_has_its_figures_in_a_table(self, page: Element) -> None:
        """Every section with pictures has a table, and each run's timeline its own."""
        for section in page.all("section"):
            assert section.all("table"), section.attributes
        runs = len(MODELS) * 4
        assert runs == sum(one.attributes.get("id", "").startswith("timeline-") for one in page.all("table"))


class TestFigures:
    """What the page says is what the report says."""

    def test_tables_carry_the_figures_of_the_report(self, page: Element, reports: list[dict[str, Any]]) -> None:
        """Each figure, of each run, exactly; and no other."""
        found = figures(page)
        assert expected_figures(reports) == found
        assert len(found) > 200

    def test_cells_read_as_the_figure_that_they_carry(self, page: Element) -> None:
        """Shares are told to a hundredth of a per cent, counts in full."""
        for cell in page.by_id("shares").all("td"):
            if "rate" in cell.attributes["data-figure"]:
                assert f"{100 * float(cell.attributes['data-value']):.2f}" == cell.text
        for cell in (*page.by_id("verdicts").all("td"), *page.by_id("depths").all("td")):
            assert f"{int(cell.attributes['data-value']):,}" == cell.text

    def test_timelines_list_the_bins_of_the_report(self, page: Element, reports: list[dict[str, Any]]) -> None:
        """Requests, touches and the blocks behind each share, bin by bin."""
        for place, one in enumerate(reports):
            line = one["timeline"]
            rows = [row.all("td") for row in page.by_id(f"timeline-{place}").all("tr")[2:]]
            assert [f"{count:,}" for count in line["requests"]] == [row[0].text for row in rows]
            assert [f"{count:,}" for count in line["blocks"]["touched"]] == [row[1].text for row in rows]
            for column, part in enumerate(("logical", *PARTS), start=2):
                values = [int(row[column].attributes["data-value"]) for row in rows]
                assert line["blocks"][part] == values
                shares = [100 * v / t for v, t in zip(values, line["blocks"]["touched"], strict=True)]
                assert [f"{share:.2f}" for share in shares] == [row[column].text for row in rows]

    def test_areas_are_as_high_as_the_shares(self, page: Element, reports: list[dict[str, Any]]) -> None:
        """Measured against the ticks of the axis, each part of each bin has the height of its share."""
        pictures = _named(page, "Shares of blocks over time")
        for picture, one in zip(pictures, reports, strict=True):
            zero, (tick, y) = _axis(picture)
            blocks = one["timeline"]["blocks"]
            for part in PARTS:
                area = next(p for p in picture.all("path") if {"area", part} <= p.classes)
                corners = re.findall(r"M[\d.]+ ([\d.]+)H[\d.]+V([\d.]+)H", area.attributes["d"])
                drawn = [(float(low) - float(high)) / (zero - y) * tick for low, high in corners]
                shares = [100 * n / t for n, t in zip(blocks[part], blocks["touched"], strict=True) if n]
                assert shares == pytest.approx(drawn, abs=0.1)

    def test_bars_are_as_long_as_the_shares(self, page: Element, reports: list[dict[str, Any]]) -> None:
        """The parts of a bar are to one another as the rates are."""
        (picture,) = _named(page, "Logical hits in blocks")
        bars = [group for group in picture.all("g") if group.all("rect")]
        for bar, one in zip(bars, reports, strict=True):
            drawn = dict.fromkeys(PARTS, 0.0)
            for piece in bar.all("rect"):
                drawn[next(iter(piece.classes))] = float(piece.attributes["width"])
            rates = [one[name]["blocks"] for name in ("effective_reuse_rate", "recovered_rate", "recomputed_rate")]
            scale = sum(drawn.values()) / sum(rates)
            assert [scale * share for share in rates] == pytest.approx(list(drawn.values()), abs=0.1)

    def test_the_finding_names_the_extremes(self, page: Element, reports: list[dict[str, Any]]) -> None:
        """The sentence on top has the logical rate and the least and largest effective one."""
        shares = [one["effective_reuse_rate"]["blocks"] for one in reports]
        (told,) = (one.text for one in page.all("p") if "finding" in one.classes)
        for share in (reports[0]["logical_hit_rate"]["blocks"], min(shares), max(shares)):
            assert f"{100 * share:.2f}\N{NO-BREAK SPACE}%" in told

    def test_settings_and_rates_are_told(self, page: Element, reports: list[dict[str, Any]], trace: Path) -> None:
        """A figure without its settings says nothing."""
        text = page.by_id("settings").text
        settings = reports[0]["settings"]
        for part in (trace.name, settings["rulebook"], settings["digest"], *MODELS, "400 blocks", "16 blocks"):
            assert part in text
        assert "No version change was injected" in text
        assert "Retention" in text
        assert "boundary % period == 0 or boundary == last" in text
        assert "stays on the device" in text


class TestText:
    """Names come from files that somebody else wrote."""

    HOSTILE = "\"'><script>alert(1)</script></style></title><img src=x onerror=alert(2)>&amp;{{ 7 * 7 }}"

    def test_names_are_never_markup(self, reports: list[dict[str, Any]]) -> None:
        """Trace, model, retention, rulebook, group, option, rate and policy are shown as the text that they are."""
        spoiled = copy.deepcopy(reports)
        for place, one in enumerate(spoiled):
            one["settings"].update(rulebook=self.HOSTILE, digest=self.HOSTILE, model=f"{self.HOSTILE}{place // 4}")
            one["settings"]["retention"] = f"{self.HOSTILE}{place % 4}"
            for share in one["recovery"]:
                share["group"] = share["option"] = self.HOSTILE
            one["recovery"] = one["recovery"][:1]
        told = ReplayStory(
            self.HOSTILE,
            self.HOSTILE,
            spoiled,
            (StatedRate(self.HOSTILE, 1.0, self.HOSTILE, self.HOSTILE),),
            (PolicyRow(self.HOSTILE, 1.0, 2.0, 0.1, 0.1, 0.1, 1, 1, 1, 1, self.HOSTILE),),
            (StatedRetention(self.HOSTILE, self.HOSTILE, True, self.HOSTILE),),
            self.HOSTILE,
        )
        text = replay_page(told)
        elements = read(text)
        assert not {"script", "img"} & {one.name for one in elements.walk()}
        assert not [name for one in elements.walk() for name in one.attributes if name.startswith("on")]
        assert self.HOSTILE in elements.all("h1")[0].text
        assert self.HOSTILE in elements.all("title")[0].text
        assert text.count("&lt;script&gt;") > 50

    def test_the_same_story_gives_the_same_bytes(self, reports: list[dict[str, Any]]) -> None:
        """Neither the wall time of the replay nor the order of keys is on the page."""
        others = [dict(reversed({**one, "seconds": 99.0}.items())) for one in reports]
        assert replay_page(story(reports)) == replay_page(story(others))

    def test_bytes_for_tokens_are_told(self, reports: list[dict[str, Any]], tmp_path: Path) -> None:
        """A trace that counts bytes is marked as one; a note appears where there is one to tell."""
        file = tmp_path / "agent.jsonl"
        file.write_text('{"ms_in_session": 0, "input_bytes": 4096, "output_bytes": 4, "hash_ids": [1, 2, 3, 4]}\n')
        page = tmp_path / "page.html"
        done = run("replay", file, "--model", MODELS[0], "--capacity", "9", "--html", page)
        assert (0, f"written: {page}") == (done.code, done.out.splitlines()[-1])
        assert "4 bytes are taken for one" in page.read_text("utf-8")
        assert "taken for one" not in replay_page(story(reports))


class TestShapes:
    """Pages of one run, of none of something, and with policies."""

    def test_one_run_is_told_wide(self, reports: list[dict[str, Any]]) -> None:
        """A single report has one picture a topic, as wide as the page, and all of its figures."""
        elements = read(replay_page(story(reports[:1])))
        expected = expected_figures(reports[:1])
        assert {key: value for key, value in expected.items() if not key[1].startswith("rates.")} == figures(elements)
        (picture,) = _named(elements, "Shares of blocks over time")
        assert "1120" == picture.attributes["width"]

    def test_policies_appear_only_where_there_are_some(self, reports: list[dict[str, Any]]) -> None:
        """Without policies their section is left out; with them it tells every figure."""
        assert "by-policy" not in replay_page(story(reports[:1]))
        elements = read(replay_page(story(reports[:1], policies=POLICIES)))
        rows = elements.by_id("policies").all("tr")[2:]
        for row, policy in zip(rows, POLICIES, strict=True):
            told = {cell.attributes["data-figure"]: float(cell.attributes["data-value"]) for cell in row.all("td")}
            assert {name: float(getattr(policy, name)) for name in told} == told
            assert 9 == len(told)

    def test_reports_of_policies_become_rows(self, trace: Path, reports: list[dict[str, Any]]) -> None:
        """Each figure of a row is that of its report; the model is named where there are two."""
        rules = load_rulebook("mixed_attention")
        told = [
            evaluate_policy(
                read_trace(trace), bind_rulebook(rules, load_profile(model)), policy, capacity=2_000
            ).as_dict()
            for model, policy in ((MODELS[0], "state_aware"), (MODELS[1], "always_recompute"))
        ]
        rows = policy_rows(told)
        assert [f"{MODELS[0]}, state aware", f"{MODELS[1]}, always recompute"] == [row.policy for row in rows]
        assert ("state aware",) == tuple(row.policy for row in policy_rows(told[:1]))
        for row, one in zip(rows, told, strict=True):
            assert (one["ttft_us"]["p50"], one["ttft_us"]["p99"]) == (row.ttft_p50_us, row.ttft_p99_us)
            shares = (row.effective_rate, row.recovered_rate, row.recomputed_rate)
            assert tuple(one["rates"][name] for name in PARTS) == shares
            moved = (row.host_bytes, row.disk_bytes, row.down_bytes)
            assert tuple(one["bytes"][name] for name in ("host", "disk", "down")) == moved
        assert "1 lane, arrivals as in the trace" in replay_page(story(reports[:1], policies=rows))

    def test_a_trace_without_hits_has_a_page(self, tmp_path: Path) -> None:
        """One request that matches nothing: no part, no repair, no division by zero."""
        file, page = tmp_path / "one.jsonl", tmp_path / "page.html"
        file.write_text('{"timestamp": 5, "input_length": 100, "output_length": 1, "hash_ids": [1]}\n')
        assert 0 == run("replay", file, "--model", MODELS[0], "--capacity", "9", "--html", page).code
        elements = read(page.read_text("utf-8"))
        assert "No plan repaired anything." in elements.by_id("by-price").text
        assert "0.00\N{NO-BREAK SPACE}%" in elements.all("p")[1].text


class TestRefusals:
    """What would fail after a long replay is refused before it."""

    def test_a_file_that_cannot_be_written_is_told_first(self, tmp_path: Path) -> None:
        """A missing folder, and a folder in place of a file; the trace is not even looked for."""
        for target in (tmp_path / "none" / "page.html", tmp_path):
            command = ("replay", tmp_path / "no-trace", "--model", MODELS[0], "--capacity", "9", "--html", target)
            done = run(*command, "--format", "json")
            assert (3, "file", str(target)) == (done.code, done.error["code"], done.error["file"])

    def test_a_failed_replay_leaves_the_old_page(self, tmp_path: Path) -> None:
        """A page appears whole or stays as it was."""
        file, page = tmp_path / "broken.jsonl", tmp_path / "page.html"
        file.write_text('{"timestamp": 5}\n')
        page.write_text("old")
        assert 3 == run("replay", file, "--model", MODELS[0], "--capacity", "9", "--html", page).code
        assert ("old", [file, page]) == (page.read_text(), sorted(tmp_path.iterdir()))

    def test_without_the_template_library_the_page_is_refused(
        self, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The message says what to install; without `--html` nothing is missed."""
        for name in [name for name in sys.modules if name.startswith("hitproof.cli.page")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "jinja2", None)
        command = ("replay", trace, "--model", MODELS[1], "--capacity", "9")
        done = run(*command, "--html", tmp_path / "page.html")
        assert (3, True) == (done.code, "hitproof[cli]" in done.err)
        assert 0 == run(*command).code


def _named(page: Element, start: str) -> list[Element]:
    return [one for one in page.all("svg") if one.attributes["aria-label"].startswith(start)]


def _axis(picture: Element) -> tuple[float, tuple[float, float]]:
    """Where 0 per cent lies, and the last tick of the upright axis with its place."""
    ticks = [(one.text.removesuffix("\N{NO-BREAK SPACE}%"), one) for one in _ticks(picture) if "%" in one.text]
    places = [(float(text), float(one.attributes["y"])) for text, one in ticks]
    return places[0][1], places[-1]


def _ticks(picture: Element) -> Iterator[Element]:
    return (one for one in picture.all("text") if "tick" in one.classes)
