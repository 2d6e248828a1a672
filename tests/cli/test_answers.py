"""What the commands answer about good input."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from hitproof.engine.trace import read_trace
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import load_rulebook
from hitproof.rules.scenarios import scenario_files
from hitproof.rules.source import read_source
from hitproof.spec.proof import CLAIMS
from tests.cli.running import edit, run

MOVED = "026-read-outlives-lease"


def test_check_counts_what_it_read() -> None:
    """The JSON report has the digest, the counts, every shipped profile, the assumptions and the claims."""
    rules = load_rulebook("mixed_attention")
    data = run("check", "--format", "json").data
    assert ("mixed_attention", rules.digest) == (data["rulebook"], data["digest"])
    assert list(rules.objects) == data["objects"]
    assert len(rules.objects) == data["counts"]["objects"]
    assert len(rules.repairs) == data["counts"]["repairs"]
    assert shipped_profiles() == [one["profile"] for one in data["profiles"]]
    assert list(rules.assumptions) == [one["id"] for one in data["assumptions"]]
    assert list(CLAIMS) == data["claims"]
    assert [] == data["warnings"]


@pytest.mark.parametrize("how", ["folder", "file"])
def test_a_rulebook_is_found_by_folder_and_by_file(book: Path, how: str) -> None:
    """A copy of the embedded rulebook has the embedded one's digest, however it is named."""
    named = book if how == "folder" else book / "rulebook.yaml"
    done = run("check", named, "--format", "json")
    assert (0, read_source("mixed_attention").digest) == (done.code, done.data["digest"])


def test_check_warns_of_names_that_are_never_used(book: Path) -> None:
    """An unused check set is a warning with its place, and no failure."""
    path = edit(book, "every_object.yaml", "  check_sets:\n", "  check_sets:\n    idle: [resident]\n")
    done = run("check", book, "--format", "json")
    assert 0 == done.code
    (warning,) = done.data["warnings"]
    line = path.read_text().splitlines().index("    idle: [resident]") + 1
    assert (str(path), line) == (warning["file"], warning["line"])
    assert "`idle`" in warning["message"]
    assert f"{path}:{line}:" in run("check", book).out


def test_check_binds_only_the_profiles_that_are_named() -> None:
    """`--profile` may stand several times."""
    names = ["gemma-3-27b", "qwen3-next-80b-a3b"]
    data = run("check", "--profile", names[0], "--profile", names[1], "--format", "json").data
    assert names == [one["profile"] for one in data["profiles"]]


def test_the_shipped_scenarios_pass() -> None:
    """`test` runs every scenario of the embedded rulebook and all pass."""
    done = run("test", "--format", "json")
    assert 0 == done.code
    files = [str(path) for path in scenario_files("mixed_attention")]
    assert (len(files), 0) == (done.data["passed"], done.data["failed"])
    assert files == [one["file"] for one in done.data["scenarios"]]


def test_coverage_tells_which_rules_decided() -> None:
    """A check that one scenario fails is covered, and all others are listed as never decisive."""
    data = run("test", "mixed_attention", _own(MOVED), "--format", "json").data
    checks = data["coverage"]["checks"]
    assert 2 == checks["decisive"]
    assert checks["total"] == checks["decisive"] + len(checks["never"])
    assert "*/fingerprint_matches" not in checks["never"]
    assert "*/same_weights" in checks["never"]
    assert ("*/recompute" in data["coverage"]["options"]["never"], 1) == (
        False,
        data["coverage"]["options"]["decisive"],
    )
    assert {"checks", "options", "transitions", "dispositions", "flags", "admission", "steps"} == set(data["coverage"])


def test_the_shipped_scenarios_leave_no_rule_idle() -> None:
    """Every check fails in one, every option is chosen, every event happens, every disposition and flag is met."""
    coverage = run("test", "mixed_attention", "--format", "json").data["coverage"]
    assert {} == {kind: part["never"] for kind, part in coverage.items() if part["never"]}


def test_a_failed_scenario_is_exit_code_1(book: Path) -> None:
    """A wrong expectation fails, and the difference is told."""
    path = edit(book, f"scenarios/{MOVED}.yaml", "verdict: recompute", "verdict: reuse")
    done = run("test", book, path, "--format", "json")
    assert (1, 0, 1) == (done.code, done.data["passed"], done.data["failed"])
    assert ["verdict: expected reuse, got recompute"] == done.data["scenarios"][0]["differences"]
    assert f"FAILED  {MOVED}" in run("test", book, path).out


def test_explain_goes_down_to_the_condition_and_its_values() -> None:
    """The reason has the rule, the part that failed, its values and the place."""
    done = run("explain", "mixed_attention", MOVED, "--format", "json")
    reason = next(r for r in done.data["decision"]["reasons"] if r["rule"] == "kv/fingerprint_matches")
    assert 0 == done.code
    assert "self.measured == self.recorded" == reason["conjunct"]
    assert {"self.measured": "mixed", "self.recorded": "c11"} == reason["values"]
    assert "every_object.yaml:" in reason["place"]
    (group,) = [row for row in done.data["groups"] if row["group"] == "kv"]
    assert ["generation_current", "fingerprint_matches"] == group["failed"]
    text = run("explain", "mixed_attention", "026").out
    for part in ("Verdict: recompute", "self.measured = mixed", reason["place"], "kv: full on device"):
        assert part in text


def test_explain_shows_the_plan() -> None:
    """Where a hit is recovered, the plan names option, repair and price."""
    scenario = next(
        one["scenario"]
        for one in run("test", "--format", "json").data["scenarios"]
        if one["verdict"] in ("repair", "rebuild")
    )
    data = run("explain", "mixed_attention", scenario, "--format", "json").data
    (step, *_) = data["decision"]["plan"]
    assert step["option"] in {option for row in data["groups"] for option in row["mended_by"]}
    assert step["repair"] in run("explain", "mixed_attention", scenario).out


@pytest.mark.parametrize("drawn", [None, "full_kv"])
def test_graph_draws_mermaid_and_svg(drawn: str | None, tmp_path: Path) -> None:
    """Both drawings come out on stdout and into a file."""
    chosen = () if drawn is None else ("--object", drawn)
    assert run("graph", *chosen).out.startswith("stateDiagram-v2")
    file = tmp_path / "machine.svg"
    assert 0 == run("graph", *chosen, "--as", "svg", "--out", file).code
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert [file] == list(tmp_path.iterdir())


def test_profiles_are_listed_and_shown(tmp_path: Path) -> None:
    """What `profile show` prints loads as the same profile."""
    listed = run("profile", "list", "--format", "json").data["profiles"]
    assert shipped_profiles() == [one["profile"] for one in listed]
    file = tmp_path / "copy.yaml"
    file.write_text(run("profile", "show", "gemma-3-27b").out)
    assert load_profile("gemma-3-27b") == load_profile(file)


def test_a_profile_is_derived_from_a_configuration(tmp_path: Path) -> None:
    """`profile from-config` writes a profile that `check` accepts."""
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "num_hidden_layers": 2,
                "num_attention_heads": 8,
                "num_key_value_heads": 2,
                "hidden_size": 512,
                "head_dim": 64,
                "torch_dtype": "bfloat16",
            }
        )
    )
    out = tmp_path / "small.yaml"
    done = run("profile", "from-config", config, "--name", "small", "--out", out, "--format", "json")
    assert (0, {"profile": "small", "file": str(out)}) == (done.code, done.data)
    assert 0 == run("check", "--profile", out).code
    shown = run("profile", "from-config", config, "--name", "small").out
    assert out.read_text() == shown


def test_plain_rows_are_those_of_the_library_that_runs_the_model(tmp_path: Path) -> None:
    """With `--plain` an index key is its values alone; as it is served it has fp8 values and a scale."""
    config = tmp_path / "config.json"
    stated = {"model_type": "deepseek_v32", "num_hidden_layers": 2, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    config.write_text(json.dumps({**stated, "index_head_dim": 128, "index_topk": 64, "torch_dtype": "bfloat16"}))
    served, plain = (
        run("profile", "from-config", config, *more, "--format", "json").data for more in ((), ("--plain",))
    )
    rows = [
        next(group for group in data["groups"] if group["id"] == "index")["constants"]["row_bytes"]
        for data in (served, plain)
    ]
    assert [2 * 132, 2 * 256] == rows


def test_trace_synth_writes_a_trace(tmp_path: Path) -> None:
    """The same seed writes the same requests."""
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for file in files:
        done = run("trace", "synth", "--out", file, "--requests", "20", "--seed", "7", "--format", "json")
        assert (0, 20) == (done.code, done.data["requests"])
    assert files[0].read_bytes() == files[1].read_bytes()
    assert 20 == len(list(read_trace(files[0])))


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Files are replaced whole: a folder in the way is an error and nothing is left behind."""
    taken = tmp_path / "taken"
    taken.mkdir()
    done = run("schema", "--out", taken, "--format", "json")
    assert (3, "file", str(taken)) == (done.code, done.error["code"], done.error["file"])
    assert [taken] == list(tmp_path.iterdir())


def _own(name: str) -> Path:
    return next(path for path in scenario_files("mixed_attention") if path.stem == name)
