from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import Repository
from backends.sandbox.base import Ran
from backends.testing.outcomes import Outcome, Report, Status
from backends.testing.run import TestResult
from backends.tree import Tree
from builders.accept import (
    Accepted,
    Reason,
    Refused,
    accept,
    best_line,
    collected_share,
    judge_both,
    judge_one,
    own_test_files,
)
from languages import python
from tests import records
from tests.boxes import make_box, make_services
from tests.helpers import TinyRepo

FILES = ["tests/test_a.py", "tests/test_b.py"]


def result(
    outcomes: dict[str, Status], uncollected: dict[str, str] | None = None, killed_by: str | None = None
) -> TestResult:
    report = Report(outcomes={t: Outcome(status=s) for t, s in outcomes.items()}, uncollected=uncollected or {})
    ran = Ran(exit_code=0, output="", files={}, seconds=1.0, killed_by=killed_by)
    return TestResult(
        ran=ran, report=report, test_seconds=0.5, script_sha="",
        log="collecting\nE   ModuleNotFoundError: No module named 'x'\nbye",
        applied=True, canaries="none",
    )  # fmt: skip


PASSED, FAILED, SKIPPED = Status.PASSED, Status.FAILED, Status.SKIPPED
GOOD = {"tests/test_a.py::test_1": PASSED, "tests/test_b.py::test_2": PASSED}


def test_two_equal_runs_of_all_files_are_accepted() -> None:
    assert judge_one(result(GOOD), FILES) is None
    accepted = judge_both(result(GOOD), result(GOOD), FILES)
    assert isinstance(accepted, Accepted)
    assert accepted.share == 1.0
    assert accepted.counts.passed == 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (result({}), Reason.NO_TESTS_COLLECTED),
        (result({"tests/test_a.py::test_1": PASSED}), Reason.FEW_COLLECTED),
        (result(dict.fromkeys(GOOD, FAILED)), Reason.MOSTLY_FAILING),
        (result(dict.fromkeys(GOOD, SKIPPED)), Reason.MOSTLY_FAILING),
        (result(GOOD, killed_by="time"), Reason.TIMEOUT),
        (result(GOOD, killed_by="memory"), Reason.OUT_OF_MEMORY),
    ],
)
def test_a_box_that_does_not_run_the_tests_is_refused(given: TestResult, reason: Reason) -> None:
    refused = judge_one(given, FILES)
    assert refused is not None
    assert refused.reason is reason


def test_the_missing_module_is_named_in_the_detail() -> None:
    refused = judge_one(result({"tests/test_a.py::test_1": PASSED}), FILES)
    assert refused is not None
    assert "No module named 'x'" in refused.detail


def test_a_file_that_skips_itself_counts_as_collected() -> None:
    report = result({"tests/test_a.py::test_1": PASSED}, {"tests/test_b.py": "collection skipped"}).report
    assert report is not None
    assert collected_share(report, FILES) == 1.0


def test_statuses_that_vary_are_left_out_and_too_many_refuse_the_box() -> None:
    many = {f"tests/test_a.py::test_{n}": PASSED for n in range(100)}
    one_flaky = judge_both(result(many), result(many | {"tests/test_a.py::test_7": FAILED}), FILES[:1])
    assert isinstance(one_flaky, Accepted)
    assert len(one_flaky.stable.outcomes) == 99
    ten = {f"tests/test_a.py::test_{n}": FAILED for n in range(10)}
    refused = judge_both(result(many), result(many | ten), FILES[:1])
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.UNSTABLE


def tree(tmp_path: Path, *paths: str, **contents: str) -> Tree:
    repo = TinyRepo(tmp_path / "repo")
    commit = repo.commit("base", dict.fromkeys(paths, "def test_one():\n    pass\n") | contents)
    return Tree(Repository(repo.path), commit)


def test_the_changes_own_test_files_are_those_that_exist_at_base(tmp_path: Path) -> None:
    candidate = records.candidate(records.pull_request(), test_files=("t/test_a.py", "t/test_new.py", "t/data.json"))
    assert own_test_files(tree(tmp_path, "t/test_a.py", "t/test_b.py"), candidate) == ["t/test_a.py"]


def test_a_change_that_only_adds_test_files_is_tried_with_their_neighbours(tmp_path: Path) -> None:
    candidate = records.candidate(records.pull_request(), test_files=("t/test_new.py",))
    made = tree(tmp_path, "t/test_a.py", "t/test_b.py", "u/test_c.py")
    assert own_test_files(made, candidate) == ["t/test_a.py", "t/test_b.py"]


def test_files_without_tests_and_with_other_names_are_not_expected(tmp_path: Path) -> None:
    made = tree(tmp_path, "tests/test_a.py", "tests/tests.py", **{"tests/test_helpers.py": "X = 1\n"})
    assert python.defining_files(made, records.PLAN) == ["tests/test_a.py"]


FORGER = """#!/opt/venv/bin/python
import sys
report = next(word.partition("=")[2] for word in sys.argv if word.startswith("--junitxml"))
open(report, "w").write('<testsuites><testsuite name="pytest" tests="1"><testcase classname="tests.test_a" '
    'name="test_one" file="tests/test_a.py" line="1" time="0.1"/></testsuite></testsuites>')
print("1 passed")
"""


@pytest.mark.docker
@pytest.mark.parametrize("forged", [False, True])
def test_a_runner_that_prints_a_report_of_its_own_is_found_out_where_it_is_doubted(
    tmp_path: Path, forged: bool
) -> None:
    services, body = make_services(tmp_path), "def test_one():\n    pass\n"
    image = make_box(services, {"tests/test_a.py": body})
    if forged:
        files = {"/run/mergemill/forger.py": FORGER.encode()}
        copy = ["/bin/sh", "-c", "cp /run/mergemill/forger.py /opt/venv/bin/pytest"]
        _, made = services.sandbox.build(
            image, copy, "mergemill-test/forger:1", limits=services.build_limits(), files=files, workdir="/testbed"
        )
        assert made is not None
        image = made.name
    given, candidate = tree(tmp_path, "tests/test_a.py"), records.candidate(records.pull_request())
    assert isinstance(accept(records.PLAN, given, candidate, image, services), Accepted)
    doubted = accept(records.PLAN, given, candidate, image, services, doubted=True)
    assert isinstance(doubted, Refused) == forged
    if isinstance(doubted, Refused):
        assert doubted.reason is Reason.FAKE_REPORT
        services.sandbox.remove_image(image)


def test_the_best_line_of_a_log_is_the_last_that_tells_of_an_error() -> None:
    assert best_line("Resolved\nerror: no such package\nbye\n") == "error: no such package"
    assert best_line("") == "no output"


def test_tests_with_random_words_in_their_names_do_not_make_a_box_unstable() -> None:
    fixed = {f"tests/test_a.py::test_{n}": PASSED for n in range(10)}
    one = fixed | {f"tests/test_b.py::test_one{n}": PASSED for n in range(5)}
    other = fixed | {f"tests/test_b.py::test_other{n}": PASSED for n in range(5)}
    accepted = judge_both(result(one), result(other), FILES[:1])
    assert isinstance(accepted, Accepted)
    assert set(accepted.stable.outcomes) == set(fixed)
    refused = judge_both(result(one), result(fixed), FILES[:1])
    assert isinstance(refused, Refused)
    assert refused.reason == Reason.UNSTABLE
