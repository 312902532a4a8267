"""Which gradings a certificate takes, and how the empty patch is graded; no test of a task is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.config import Settings
from core.settings.group import replace_values
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.artifacts import Artifacts
from taskdb.records import FailureKind, Score, Task
from taskdb.records.lineage import GoldGradings
from tests.exporters.tasks import FAIL_TO_PASS, PASS_TO_PASS, make_task

# The package has functions of these names.
certify = import_module("verifiers.certify")
grade = import_module("verifiers.grade")
OTHER = "tests/test_other.py::test_other"


@dataclass
class ReportingEvaluator:
    """An evaluator in whose runs tests pass and fail as a test wants."""

    failing: Sequence[str] = ()
    reports: bool = True
    files: list[Sequence[str]] = field(default_factory=list)
    """Files of each run."""

    def run(self, *_: object, files: Sequence[str], **__: object) -> Any:
        self.files.append(files)
        tests = [*FAIL_TO_PASS, *PASS_TO_PASS, OTHER]
        listed = [test for test in tests if not files or test.partition("::")[0] in files]
        statuses: Mapping[str, Outcome] = {
            test: Outcome(status=OutcomeStatus.FAILED if test in self.failing else OutcomeStatus.PASSED)
            for test in listed
        }
        report = EvaluationReport(outcomes=statuses, uncollected={}) if self.reports or not files else None
        result = SimpleNamespace(
            infrastructure_error=None,
            report=report,
            is_applied=True,
            canary_status="right",
            failure_detail="" if report else "the runner left no report",
            repairs=(),
            restored_files=(),
        )
        record = SimpleNamespace(counts=SimpleNamespace(passed=1))
        return SimpleNamespace(
            result=result, record=record, report=report or EvaluationReport(outcomes={}, uncollected={})
        )


@pytest.fixture
def services(tmp_path: Path) -> Any:
    settings = replace_values(Settings(), {"certify_exploits": "off"})
    return SimpleNamespace(artifacts=Artifacts(tmp_path / "artifacts"), settings=settings)


@pytest.fixture
def task(services: Any, tmp_path: Path) -> Task:
    made = make_task(services, tmp_path)
    return made.model_copy(update={"blind_controls": None, "controls": (), "PASS_TO_PASS": (*PASS_TO_PASS, OTHER)})


def grade_empty(
    evaluator: ReportingEvaluator, task: Task, services: Any, monkeypatch: pytest.MonkeyPatch, patch: bytes = b""
) -> Score:
    monkeypatch.setattr(grade, "open_task_evaluator", lambda *_, **__: nullcontext(evaluator))
    score: Score = grade.grade_worthless_patch(task, services, patch)
    return score


def test_the_empty_patch_earns_0_by_the_files_of_the_failing_tests(
    task: Task, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = ReportingEvaluator(FAIL_TO_PASS[:1])
    score = grade_empty(evaluator, task, services, monkeypatch)
    assert (score.value, score.f2p_rate) == (0.0, 0.5)
    assert evaluator.files == [["tests/test_words.py"]]
    assert score.explanation.startswith("the patch is empty: 1 FAIL_TO_PASS and 0 PASS_TO_PASS tests do not pass")


@pytest.mark.parametrize("patch", [b"", b"diff"])
def test_a_file_of_the_fewest_tests_shows_that_a_submission_earns_0(
    patch: bytes, task: Task, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = task.model_copy(update={"FAIL_TO_PASS": (*task.FAIL_TO_PASS, (OTHER, "assertion"))})
    # What fails in one file cannot pass as a whole.
    for controls, file in [((), "tests/test_other.py"), (FAIL_TO_PASS[:1], "tests/test_words.py")]:
        evaluator = ReportingEvaluator([*FAIL_TO_PASS, OTHER])
        controlled = both.model_copy(update={"controls": controls})
        score = grade_empty(evaluator, controlled, services, monkeypatch, patch)
        assert (score.value, score.evaluations, evaluator.files) == (0.0, 1, [[file]])
    evaluator = ReportingEvaluator(FAIL_TO_PASS)
    score = grade_empty(evaluator, both, services, monkeypatch, patch)
    assert (score.value, score.evaluations) == (0.0, 2)
    assert evaluator.files == [["tests/test_other.py"], ()]


def test_all_tests_run_at_once_where_none_is_to_be_repaired(
    task: Task, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = ReportingEvaluator([OTHER])
    score = grade_empty(evaluator, task.model_copy(update={"FAIL_TO_PASS": ()}), services, monkeypatch)
    assert (score.value, score.evaluations, evaluator.files) == (0.0, 1, [()])


@pytest.mark.parametrize(("failing", "value"), [((), 1.0), ((OTHER,), 0.0)])
def test_all_tests_decide_where_those_that_must_fail_pass(
    failing: Sequence[str], value: float, task: Task, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = ReportingEvaluator(failing)
    score = grade_empty(evaluator, task, services, monkeypatch)
    assert (score.value, score.evaluations) == (value, 2)
    assert [bool(files) for files in evaluator.files] == [True, False]


def test_all_tests_decide_where_the_files_of_some_leave_no_report(
    task: Task, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = ReportingEvaluator((), reports=False)
    assert grade_empty(evaluator, task, services, monkeypatch).value == 1.0


@pytest.mark.parametrize(
    ("kind", "with_others", "runs"), [("absent", False, 1), ("absent", True, 2), ("error", False, 2)]
)
def test_all_tests_run_at_once_where_no_listed_test_ran_without_the_gold_patch(
    kind: str, with_others: bool, runs: int, task: Task, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tuple((test, FailureKind(kind)) for test in FAIL_TO_PASS)
    passing = (OTHER,) if with_others else ()
    changed = task.model_copy(update={"FAIL_TO_PASS": failing, "PASS_TO_PASS": passing})
    evaluator = ReportingEvaluator(FAIL_TO_PASS, reports=False)
    score = grade_empty(evaluator, changed, services, monkeypatch)
    assert (score.value, score.evaluations, len(evaluator.files)) == (0.0, runs, runs)
    assert evaluator.files[-1] == (), "all tests decide"


def test_gold_is_graded_once_where_another_task_has_the_other_gradings(
    task: Task, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_score(value: float) -> Score:
        return Score(task=task.name, value=value, resolved=bool(value), f2p_rate=value, p2p_rate=1.0, evaluations=1)

    monkeypatch.setattr(certify.tests, "grade", lambda *_, **__: make_score(1.0))
    monkeypatch.setattr(certify.tests, "grade_worthless_patch", lambda *_: make_score(0.0))
    *_, own = certify.iterate_gradings(task, services)
    shared = GoldGradings(task="0" * 64, name="first", values=(1.0, 1.0), conditions=("at noon", "at night"))
    *_, relying = certify.iterate_gradings(task, services, gold_of=shared)
    assert (own.gold, own.evaluations) == ([1.0, 1.0, 1.0], 4)
    assert (relying.gold, relying.noop, relying.evaluations) == ([1.0, 1.0, 1.0], 0.0, 2)
    assert relying.conditions[0] == own.conditions[0]
    assert relying.conditions[1:] == ["at noon, in the image of first", "at night, in the image of first"]
