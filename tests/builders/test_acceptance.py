from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from backends.git import GitRepository
from backends.sandbox.execution import ExecResult
from backends.tree import CommitTree
from builders.acceptance import (
    BuildAcceptance,
    BuildRejection,
    Reason,
    check_run,
    compare_runs,
    compute_collected_share,
    find_own_test_files,
    run_acceptance,
)
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.following import PlannedRun
from evaluation.runner.run import EvaluationResult
from evaluation.runner.time_limit import TimeLimit
from languages.python import PYTHON
from tests import records
from tests.containers import make_environment_image, make_services
from tests.helpers import TinyRepo

FILES = ["tests/test_a.py", "tests/test_b.py"]


def make_result(
    outcomes: dict[str, OutcomeStatus], uncollected: dict[str, str] | None = None, killed_by: str | None = None
) -> EvaluationResult:
    report = EvaluationReport(
        outcomes={t: Outcome(status=s) for t, s in outcomes.items()}, uncollected=uncollected or {}
    )
    ran = ExecResult(exit_code=0, output="", files={}, seconds=1.0, killed_by=killed_by)
    return EvaluationResult(
        exec_result=ran,
        report=report,
        test_seconds=0.5,
        script_sha256="",
        log="collecting\nE   ModuleNotFoundError: No module named 'x'\nbye",
        is_applied=True,
        canary_status="none",
    )


PASSED, FAILED, SKIPPED = OutcomeStatus.PASSED, OutcomeStatus.FAILED, OutcomeStatus.SKIPPED
GOOD = {"tests/test_a.py::test_1": PASSED, "tests/test_b.py::test_2": PASSED}


def test_two_equal_runs_of_all_files_are_accepted() -> None:
    assert check_run(make_result(GOOD), FILES) is None
    acceptance = compare_runs(make_result(GOOD), make_result(GOOD), FILES)
    assert isinstance(acceptance, BuildAcceptance)
    assert acceptance.collected_share == 1.0
    assert acceptance.counts.passed == 2


def test_a_second_run_that_hangs_is_rejected_by_the_seconds_of_the_first() -> None:
    result = replace(make_result(GOOD, killed_by="time"), time_limit=TimeLimit(expected=0.05, minimum=0.5))
    rejection = check_run(result, FILES)
    assert rejection is not None
    assert rejection.reason is Reason.TIMEOUT
    assert rejection.detail == "the tests hang: they were ended after 0 s, an earlier run took 0.1 s"


def test_the_second_run_may_take_ten_times_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[TimeLimit | None] = []

    def run(*_: object, time_limit: TimeLimit | None = None, **__: object) -> EvaluationResult:
        limits.append(time_limit)
        result = make_result({"tests/test_a.py::test_1": PASSED})
        return replace(result, exec_result=replace(result.exec_result, seconds=21.0))

    monkeypatch.setattr("builders.acceptance._run_plan_tests", run)
    monkeypatch.setattr("builders.acceptance.run_in_turn", lambda *_, **__: None)
    services = MagicMock()
    tree, candidate = make_tree(tmp_path, "tests/test_a.py"), records.make_candidate(records.make_pull_request())
    assert isinstance(run_acceptance(records.PLAN, tree, candidate, "an-image", services), BuildAcceptance)
    assert [limit and limit.seconds for limit in limits] == [None, 210.0]


@pytest.mark.parametrize(
    ("files", "n_runs"),
    [(("tests/test_a.py",), 1), (("tests/test_a.py", *(f"more/test_{n}.py" for n in range(3))), 2)],
    ids=["its only file", "one of four"],
)
def test_a_suite_that_is_too_slow_is_not_run_again_where_it_has_no_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], n_runs: int
) -> None:
    runs = []

    def run(_plan: object, _pool: object, given: list[str], *_: object, **__: object) -> EvaluationResult:
        runs.append(given)
        return make_result({}, killed_by="time")

    monkeypatch.setattr("builders.acceptance._run_plan_tests", run)
    monkeypatch.setattr("builders.acceptance.run_in_turn", lambda *_, **__: None)
    candidate = records.make_candidate(records.make_pull_request()).model_copy(
        update={"test_files": ("tests/test_a.py",)}
    )
    rejection = run_acceptance(records.PLAN, make_tree(tmp_path, *files), candidate, "an-image", MagicMock())
    assert isinstance(rejection, BuildRejection)
    assert rejection.reason is Reason.TIMEOUT
    assert runs == [[], ["tests/test_a.py"]][:n_runs]


def accept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, containers: list[list[EvaluationResult]], seconds: float = 30.0
) -> tuple[BuildAcceptance | BuildRejection, list[list[PlannedRun]]]:
    """Return the result of an acceptance, whose containers give these results, and the runs planned for each."""
    planned: list[list[PlannedRun]] = []

    def run_in_turn(_: object, runs: list[PlannedRun], **__: object) -> list[EvaluationResult]:
        planned.append(runs)
        return containers[len(planned) - 1]

    monkeypatch.setattr("builders.acceptance.run_in_turn", run_in_turn)
    monkeypatch.setattr("builders.acceptance.run_tests", lambda *_, **__: containers[len(planned)][0])
    services = MagicMock()
    services.test_limits.return_value.seconds = 900.0
    tree, candidate = make_tree(tmp_path, "tests/test_a.py"), records.make_candidate(records.make_pull_request())
    following = PlannedRun(script="", seconds=seconds, factor=3)
    return run_acceptance(records.PLAN, tree, candidate, "an-image", services, following=following), planned


ONE = make_result({"tests/test_a.py::test_1": PASSED})
ONE_FAILED = make_result({"tests/test_a.py::test_1": FAILED})


def test_all_runs_have_one_container_where_the_second_is_as_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_result({"tests/test_own.py::test_own": PASSED})
    accepted, planned = accept(tmp_path, monkeypatch, [[ONE, ONE, own]])
    assert isinstance(accepted, BuildAcceptance)
    assert accepted.following is own
    ((first, second, following),) = planned
    assert (first.seconds, first.factor) == (900.0, 0)
    assert (second.seconds, second.factor) == (120.0, 10)
    assert (following.seconds, following.factor) == (30.0, 3)


@pytest.mark.parametrize("again", [ONE_FAILED, ONE])
def test_a_second_run_that_differs_counts_unless_it_does_so_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: EvaluationResult
) -> None:
    result, planned = accept(tmp_path, monkeypatch, [[ONE, ONE_FAILED, ONE], [ONE, again, ONE]])
    assert [runs[0].seconds for runs in planned] == [900.0, 120.0]
    if again is ONE:
        assert isinstance(result, BuildRejection), "it varies by chance"
    else:
        assert isinstance(result, BuildAcceptance), "files of the run before make it fail"


@pytest.mark.parametrize(("seconds", "follows"), [(30.0, True), (800.0, False)])
def test_another_run_follows_the_second_where_a_container_has_time_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, follows: bool
) -> None:
    accepted, planned = accept(tmp_path, monkeypatch, [[ONE], [ONE, ONE]], seconds)
    assert isinstance(accepted, BuildAcceptance)
    assert (accepted.following is ONE) == follows
    limits = [[run.seconds for run in runs] for runs in planned[1:]]
    assert limits == ([[120.0, seconds + 3 * ONE.test_seconds]] if follows else [])


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (make_result({}), Reason.NO_TESTS_COLLECTED),
        (make_result({"tests/test_a.py::test_1": PASSED}), Reason.FEW_COLLECTED),
        (make_result(dict.fromkeys(GOOD, FAILED)), Reason.MOSTLY_FAILING),
        (make_result(dict.fromkeys(GOOD, SKIPPED)), Reason.MOSTLY_FAILING),
        (make_result(GOOD, killed_by="time"), Reason.TIMEOUT),
        (make_result(GOOD, killed_by="memory"), Reason.OUT_OF_MEMORY),
    ],
)
def test_an_image_that_does_not_run_the_tests_is_rejected(result: EvaluationResult, reason: Reason) -> None:
    rejection = check_run(result, FILES)
    assert rejection is not None
    assert rejection.reason is reason


def test_the_missing_module_is_named_in_the_detail() -> None:
    rejection = check_run(make_result({"tests/test_a.py::test_1": PASSED}), FILES)
    assert rejection is not None
    assert "No module named 'x'" in rejection.detail


def test_a_file_that_skips_itself_counts_as_collected() -> None:
    report = make_result({"tests/test_a.py::test_1": PASSED}, {"tests/test_b.py": "collection skipped"}).report
    assert report is not None
    assert compute_collected_share(report, FILES) == 1.0


def test_tests_with_changing_statuses_are_excluded_and_too_many_reject_the_image() -> None:
    many = {f"tests/test_a.py::test_{n}": PASSED for n in range(100)}
    one_flaky = compare_runs(make_result(many), make_result(many | {"tests/test_a.py::test_7": FAILED}), FILES[:1])
    assert isinstance(one_flaky, BuildAcceptance)
    assert len(one_flaky.stable_report.outcomes) == 99
    ten = {f"tests/test_a.py::test_{n}": FAILED for n in range(10)}
    rejection = compare_runs(make_result(many), make_result(many | ten), FILES[:1])
    assert isinstance(rejection, BuildRejection)
    assert rejection.reason is Reason.UNSTABLE


def make_tree(tmp_path: Path, *paths: str, **contents: str) -> CommitTree:
    repo = TinyRepo(tmp_path / "repo")
    commit = repo.commit("base", dict.fromkeys(paths, "def test_one():\n    pass\n") | contents)
    return CommitTree(GitRepository(repo.path), commit)


def test_the_changes_own_test_files_are_those_that_exist_at_base(tmp_path: Path) -> None:
    candidate = records.make_candidate(
        records.make_pull_request(), test_files=("t/test_a.py", "t/test_new.py", "t/data.json")
    )
    assert find_own_test_files(make_tree(tmp_path, "t/test_a.py", "t/test_b.py"), candidate) == ["t/test_a.py"]


def test_a_change_that_only_adds_test_files_runs_their_neighbours(tmp_path: Path) -> None:
    candidate = records.make_candidate(records.make_pull_request(), test_files=("t/test_new.py",))
    tree = make_tree(tmp_path, "t/test_a.py", "t/test_b.py", "u/test_c.py")
    assert find_own_test_files(tree, candidate) == ["t/test_a.py", "t/test_b.py"]


def test_files_without_tests_and_with_other_names_are_not_expected(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, "tests/test_a.py", "tests/tests.py", **{"tests/test_helpers.py": "X = 1\n"})
    assert PYTHON.find_test_files(tree, records.PLAN) == ["tests/test_a.py"]


FORGER = """#!/opt/venv/bin/python
import sys
report = next(word.partition("=")[2] for word in sys.argv if word.startswith("--junitxml"))
open(report, "w").write('<testsuites><testsuite name="pytest" tests="1"><testcase classname="tests.test_a" '
    'name="test_one" file="tests/test_a.py" line="1" time="0.1"/></testsuite></testsuites>')
print("1 passed")
"""


@pytest.mark.docker
@pytest.mark.parametrize("forged", [False, True])
def test_a_forged_report_is_detected_by_the_forgery_check(tmp_path: Path, forged: bool) -> None:
    services, body = make_services(tmp_path), "def test_one():\n    pass\n"
    image = make_environment_image(services, {"tests/test_a.py": body})
    if forged:
        files = {"/run/mergemill/forger.py": FORGER.encode()}
        copy = ["/bin/sh", "-c", "cp /run/mergemill/forger.py /opt/venv/bin/pytest"]
        _, built = services.images.build(
            image, copy, "mergemill-test/forger:1", limits=services.build_limits(), files=files, workdir="/testbed"
        )
        assert built is not None
        image = built.name
    tree, candidate = make_tree(tmp_path, "tests/test_a.py"), records.make_candidate(records.make_pull_request())
    assert isinstance(run_acceptance(records.PLAN, tree, candidate, image, services), BuildAcceptance)
    checked = run_acceptance(records.PLAN, tree, candidate, image, services, check_forgery=True)
    assert isinstance(checked, BuildRejection) == forged
    if isinstance(checked, BuildRejection):
        assert checked.reason is Reason.FAKE_REPORT
        services.images.remove(image)


def test_random_words_in_test_names_do_not_make_an_image_unstable() -> None:
    fixed = {f"tests/test_a.py::test_{n}": PASSED for n in range(10)}
    outcomes = fixed | {f"tests/test_b.py::test_one{n}": PASSED for n in range(5)}
    other = fixed | {f"tests/test_b.py::test_other{n}": PASSED for n in range(5)}
    acceptance = compare_runs(make_result(outcomes), make_result(other), FILES[:1])
    assert isinstance(acceptance, BuildAcceptance)
    assert set(acceptance.stable_report.outcomes) == set(fixed)
    rejection = compare_runs(make_result(outcomes), make_result(fixed), FILES[:1])
    assert isinstance(rejection, BuildRejection)
    assert rejection.reason == Reason.UNSTABLE
