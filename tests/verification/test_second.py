"""A second solver: what it says counts, and what it does not say is no proof."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import z3

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import InternalError, MissingFileError
from hitproof.spec.profile import Profile
from hitproof.spec.proof import VerifyReport
from hitproof.verification import verify
from hitproof.verification.questions import Checking, Questions
from hitproof.verification.second import Cvc5, Status

GEMMA = "gemma-3-27b"
FALSE = "(set-logic ALL)\n(declare-const x Int)\n(assert (and (< x 3) (> x 3)))\n(check-sat)\n"
TRUE = FALSE.replace("(> x 3)", "(> x 1)")


def pigeons(holes: int) -> str:
    """One pigeon more than there are holes: no model, and much to search."""
    places = [[f"p{bird}_{hole}" for hole in range(holes)] for bird in range(holes + 1)]
    lines = [f"(declare-const {name} Bool)" for row in places for name in row]
    lines += [f"(assert (or {' '.join(row)}))" for row in places]
    for hole in range(holes):
        for bird, row in enumerate(places):
            lines += [f"(assert (not (and {row[hole]} {other[hole]})))" for other in places[:bird]]
    return "\n".join(["(set-logic ALL)", *lines, "(check-sat)", ""])


@pytest.fixture(scope="module")
def cvc5() -> Cvc5:
    """The second solver."""
    pytest.importorskip("cvc5", reason="the package cvc5 is an extra")
    return Cvc5()


class TestCvc5:
    """The solver in its process."""

    def test_tells_what_has_a_model_and_what_has_none(self, cvc5: Cvc5) -> None:
        """Two questions that differ in a number have different answers, in any order."""
        assert ["unsat", "sat", "unsat"] == [cvc5(FALSE), cvc5(TRUE), cvc5(FALSE)]

    @pytest.mark.parametrize(
        "text",
        ["", "(check-sat", "(set-logic ALL)\n(assert strange)\n(check-sat)\n", "unsat\n", "(echo 1)\n(exit)\n"],
        ids=["nothing", "unfinished", "a name that is not declared", "no text of a solver", "no question"],
    )
    def test_has_no_answer_to_what_it_does_not_understand(self, cvc5: Cvc5, text: str) -> None:
        """What is no question is unknown, and the next question is answered as ever."""
        assert ["unknown", "unsat"] == [cvc5(text), cvc5(FALSE)]

    def test_does_not_take_an_echo_for_an_answer(self, cvc5: Cvc5) -> None:
        """A text that lets the solver write the word itself does not decide."""
        assert "sat" == cvc5(TRUE.replace("(check-sat)", '(echo "unsat")\n(check-sat)\n(echo "unsat")'))

    def test_gives_up_by_effort_alike_every_time(self, cvc5: Cvc5) -> None:
        """A bound on steps that is too small is unknown in every run; a larger one answers in every run."""
        small, large = Cvc5(effort=1_000), Cvc5(effort=10_000_000)
        assert ["unknown"] * 3 == [small(pigeons(8)) for _ in range(3)]
        assert ["unsat"] * 2 == [large(pigeons(8)) for _ in range(2)]

    def test_that_runs_out_of_memory_is_unknown(self, cvc5: Cvc5) -> None:
        """A process that is allowed less memory than it needs ends, which answers nothing."""
        pytest.importorskip("resource", reason="this system has no bounds on memory")
        assert "unknown" == Cvc5(memory_mb=30)(FALSE)

    def test_that_takes_too_long_is_ended(self, cvc5: Cvc5) -> None:
        """The backstop in seconds ends a search that no bound on effort does."""
        assert "unknown" == Cvc5(effort=10**12, seconds=1)(pigeons(14))

    def test_that_was_killed_answers_the_next_question(self) -> None:
        """A process that has died since its last answer is replaced by another."""
        pytest.importorskip("cvc5", reason="the package cvc5 is an extra")
        solver = Cvc5()
        assert "unsat" == solver(FALSE)
        assert solver._child is not None
        solver._child.process.kill()
        assert "unsat" == solver(FALSE)

    def test_goes_to_another_process_without_its_own(self, cvc5: Cvc5) -> None:
        """Settings travel, the child does not."""
        cvc5(FALSE)
        other = pickle.loads(pickle.dumps(cvc5))
        assert (cvc5.memory_mb, cvc5.effort, cvc5.seconds) == (other.memory_mb, other.effort, other.seconds)
        assert other._child is None
        assert "sat" == other(TRUE)


class TestQuestions:
    """What has no model, told once more."""

    def test_disagreement_is_loud_and_keeps_the_question(self, tmp_path: Path) -> None:
        """A second solver that has a model ends the run, and the question lies in a file."""
        questions = Questions(Checking(lambda text: "sat", str(tmp_path)))
        questions.begin("sound: window")
        with pytest.raises(InternalError, match="sound: window: Z3 finds no model and cvc5 does") as raised:
            questions.refuted(FALSE)
        (kept,) = tmp_path.glob("disagreement-*.smt2")
        assert str(kept) in str(raised.value)
        assert FALSE in kept.read_text("utf-8")

    def test_equal_questions_are_asked_once(self) -> None:
        """The second solver is asked once a question, and every asking counts."""
        asked: list[str] = []

        def second(text: str) -> Status:
            asked.append(text)
            return "unsat" if text == FALSE else "unknown"

        questions = Questions(Checking(second))
        for text in (FALSE, FALSE, TRUE, TRUE):
            questions.refuted(text)
        assert [FALSE, TRUE] == asked
        assert (2, 2, 4) == (questions.agreed, len(questions.undecided), len(questions.asked))

    def test_a_folder_that_cannot_be_written_to_is_told(self, tmp_path: Path) -> None:
        """The error names the file."""
        questions = Questions(Checking(folder=str(tmp_path / "gone")))
        with pytest.raises(MissingFileError, match="cannot be written"):
            questions.refuted(FALSE)


def proved(source: RuleSource, profile: Profile, checking: Checking, **settings: object) -> VerifyReport:
    """A claim with few questions, in this process."""
    replayer = EngineReplayer()
    chosen = {"claims": ["complete"], "jobs": 1, **settings}
    return verify(source, [profile], replayer=replayer, checking=checking, **chosen)  # type: ignore[arg-type]


class TestVerify:
    """A claim that is proved in two solvers."""

    def test_tells_on_how_many_questions_both_agree(
        self, source: RuleSource, profiles: dict[str, Profile], cvc5: Cvc5
    ) -> None:
        """With cvc5 the claim is proved as without it, and the questions that have no model are counted."""
        report = proved(source, profiles[GEMMA], Checking(cvc5))
        assert "proved" == report.verdict
        assert all(0 < result.agreed <= result.obligations for result in report.claims)

    def test_is_unknown_where_the_second_has_no_answer(self, source: RuleSource, profiles: dict[str, Profile]) -> None:
        """A question that only one of them answers proves nothing, and is named."""
        report = proved(source, profiles[GEMMA], Checking(lambda text: "unknown"))
        assert "unknown" == report.verdict
        assert "cvc5 has no answer to" in report.claims[0].detail

    def test_ends_where_the_second_disagrees(
        self, source: RuleSource, profiles: dict[str, Profile], tmp_path: Path
    ) -> None:
        """No verdict comes out at all."""
        with pytest.raises(InternalError, match="complete: "):
            proved(source, profiles[GEMMA], Checking(lambda text: "sat", str(tmp_path)))

    def test_asks_nothing_about_mutants(self, source: RuleSource, profiles: dict[str, Profile], tmp_path: Path) -> None:
        """Rules broken on purpose leave no questions in the folder: their stories are replayed instead."""
        whole, alone = tmp_path / "whole", tmp_path / "alone"
        for folder, mutants in ((whole, True), (alone, False)):
            folder.mkdir()
            proved(source, profiles[GEMMA], Checking(folder=str(folder)), mutants=mutants)
        assert sorted(path.name for path in whole.iterdir()) == sorted(path.name for path in alone.iterdir())

    def test_writes_questions_that_any_solver_reads(
        self, source: RuleSource, profiles: dict[str, Profile], tmp_path: Path
    ) -> None:
        """Each file has no model by Z3 from its text alone, and the index names each, with claim, profile and part."""
        report = proved(source, profiles[GEMMA], Checking(folder=str(tmp_path)))
        index = json.loads((tmp_path / "index.json").read_text("utf-8"))
        files = sorted(path.name for path in tmp_path.glob("*.smt2"))
        assert (report.rulebook, report.digest) == (index["rulebook"], index["digest"])
        assert files == [question["file"] for question in index["questions"]]
        for question in index["questions"]:
            assert {("complete", GEMMA)} == {(asked["claim"], asked["profile"]) for asked in question["asked_by"]}
            assert all(asked["part"] for asked in question["asked_by"])
            solver = z3.Solver(ctx=z3.Context())
            solver.from_string((tmp_path / question["file"]).read_text("utf-8"))
            assert ("unsat", question["expected"]) == (str(solver.check()), "unsat")

    def test_writes_the_same_files_with_any_number_of_processes(
        self, source: RuleSource, profiles: dict[str, Profile], tmp_path: Path
    ) -> None:
        """Names and contents are the same, the index too."""
        told = []
        for jobs in (1, 2):
            folder = tmp_path / str(jobs)
            folder.mkdir()
            proved(source, profiles[GEMMA], Checking(folder=str(folder)), jobs=jobs)
            told.append({path.name: path.read_bytes() for path in folder.iterdir()})
        assert told[0] == told[1]
