"""`hitproof diff`: names, folders and git revisions, exit codes, witnesses as scenario files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hitproof.rules.source import rulebook_folder
from tests.cli.running import run

MODEL = ("--profile", "gemma-3-4b")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with the shipped rulebook in its first revision, and a looser one in the work tree."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "repository"
    shutil.copytree(rulebook_folder("mixed_attention"), folder / "rules", ignore=shutil.ignore_patterns("scenarios"))
    monkeypatch.chdir(folder)

    def git(*words: str) -> None:
        settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *settings, *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    file = folder / "rules" / "every_object.yaml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("require: self.salt == request.salt", "require: known(self.salt)"), "utf-8")
    return folder


def test_a_revision_is_compared_with_the_work_tree(repository: Path, tmp_path: Path) -> None:
    """Looser than before: exit code 1, and a scenario that shows it; the other way round it is stricter."""
    out = tmp_path / "witnesses"
    looser = run("diff", "HEAD:rules", "rules", *MODEL, "--out", str(out))
    assert looser.code == 1, looser.err
    assert "The newer rulebook is looser." in looser.out
    assert "newly accepted at length" in looser.out
    files = list(out.iterdir())
    assert len(files) == 1
    assert run("test", "rules", "--scenario", str(files[0])).code in (0, 3)
    assert run("diff", "rules", "HEAD:rules", *MODEL).code == 0
    same = run("diff", "HEAD:rules", "mixed_attention", *MODEL, "--format", "json")
    assert (same.code, same.data["relation"], same.data["differences"]) == (0, "equal", [])


@pytest.mark.parametrize(
    "name", ["nowhere", "HEAD:nowhere", "no-such-revision:rules", ":rules", "HEAD:", "--output=x:rules"]
)
def test_what_git_does_not_have_is_bad_input(repository: Path, name: str) -> None:
    """Exit code 3, whatever the name looks like."""
    assert run("diff", "mixed_attention", name, *MODEL).code == 3
