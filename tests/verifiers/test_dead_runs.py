"""Test-only runs whose runner dies: which tests died, and which merely did not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.sandbox.execution import ExecResult
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.run import EvaluationResult
from taskdb.records import FailureKind, RunVariant, Verification
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.no_controls import no_controls
from tests.verifiers.shop import HIDDEN, PYPROJECT, SHOP_RIGHT, TESTS
from verifiers.dead_runs import TestTexts, find_unfinished_tests, has_died, has_lost_tests
from verifiers.verify import verify

__all__ = ["no_controls"]
PASSED = Outcome(status=OutcomeStatus.PASSED)
GOLD = EvaluationReport(
    outcomes=dict.fromkeys(("t/test_a.py::test_x", "t/test_b.py::test_x[a b]", "t/test_b.py::test_y"), PASSED),
    uncollected={},
)
TRACEBACK = """t/test_b.py .Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/opt/lib/ctypes/__init__.py", line 9 in string_at
  File "/testbed/t/test_a.py", line 4 in test_x
  File "/opt/lib/pytest.py", line 1 in pytest_pyfunc_call
"""


def make_result(code: int, report: EvaluationReport | None = None, killed_by: str | None = None) -> EvaluationResult:
    return EvaluationResult(
        exec_result=ExecResult(exit_code=code, output="", seconds=1.0, killed_by=killed_by, files={}),  # type: ignore[arg-type]
        report=report,
        test_seconds=1.0,
        script_sha256="",
        log="",
        is_applied=True,
        canary_status="none",
    )


@pytest.mark.parametrize(
    ("result", "framework", "died"),
    [
        (make_result(139), "pytest", True),
        (make_result(0), "pytest", True),
        (make_result(0), "unittest", True),
        (make_result(134), "cargo", True),
        (make_result(137, killed_by="memory"), "mocha", True),
        (make_result(137, killed_by="time"), "pytest", False),
        (make_result(4), "pytest", False),
        (make_result(101), "cargo", False),
        (make_result(1), "mocha", False),
        (make_result(1, GOLD), "pytest", False),
        (make_result(2, GOLD), "pytest", True),
        (make_result(2, GOLD), "cargo", False),
        (make_result(2, EvaluationReport(outcomes={}, uncollected={"t.py": "error"})), "pytest", False),
    ],
)
def test_a_dead_runner_is_told_from_tests_that_do_not_compile(
    result: EvaluationResult, framework: str, died: bool
) -> None:
    assert has_died(result, framework) is died


@pytest.mark.parametrize(
    ("log", "tests"),
    [
        ("t/test_a.py .         [ 33%]\nt/test_b.py .", ["t/test_b.py::test_y"]),
        ("t/test_a.py .         [ 33%]\nt/test_b.py ", ["t/test_b.py::test_x[a b]"]),
        ("t/test_b.py .[ 33%]\n.                [ 99%]", []),
        ("t/test_a.py::test_x PASSED [ 33%]\nt/test_b.py::test_x[a b] ", ["t/test_b.py::test_x[a b]"]),
        ("t/test_b.py::test_y Fatal Python error: Aborted", ["t/test_b.py::test_y"]),
        ("t/test_b.py::test_y FAILED [ 99%]\n", []),
        ("t/test_b.py .Fatal Python error: Aborted", ["t/test_b.py::test_y"]),
        ("collecting ... ", []),
        (TRACEBACK.replace("t/test_b.py .", ""), ["t/test_a.py::test_x"]),
    ],
)
def test_the_test_in_which_pytest_died_is_found(log: str, tests: list[str]) -> None:
    assert find_unfinished_tests(log, GOLD) == tests


def test_a_test_is_new_unless_its_text_stands_in_the_base_tree(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    base = repo.commit("Start", {"test_a.py": "def test_a():\n    x = 1\n\ndef test_ab():\n    pass\n", "b.py": "1"})
    merge = repo.commit("More", {"test_a.py": "def test_a():\n    x = 2\n\n@f\ndef test_ab():\n    pass\n"})
    later = repo.commit("Moved", {"test_a.py": "import b\n\ndef test_ab():\n    pass\n\ndef test_c():\n    pass\n"})

    def list_new(commit: str) -> list[str]:
        patch = GitRepository(tmp_path).run_git("diff-tree", "-p", base, commit)
        texts = TestTexts(repository=GitRepository(tmp_path), base=base, patch=patch)
        tests = ("test_a.py::test_a", "test_a.py::test_ab[1]", "test_a.py::test_c", "test_b.py::test_a")
        return [test for test in tests if texts.is_new(test)]

    assert list_new(merge) == ["test_a.py::test_a", "test_a.py::test_ab[1]", "test_a.py::test_c"]
    assert list_new(later) == ["test_a.py::test_a", "test_a.py::test_c"]


def test_tests_are_lost_only_where_all_files_were_loaded(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    texts = TestTexts(repository=GitRepository(tmp_path), base=repo.commit("Start", {"a": ""}), patch=b"")
    part = dict.fromkeys(list(GOLD.outcomes)[:1], PASSED)
    assert has_lost_tests(EvaluationReport(outcomes=part, uncollected={}), GOLD, texts)
    assert not has_lost_tests(EvaluationReport(outcomes=part, uncollected={"t/test_b.py": "error"}), GOLD, texts)
    assert not has_lost_tests(GOLD, GOLD, texts)
    assert not has_lost_tests(None, GOLD, texts)


DYING = """import os


def total(prices):
    if prices:
        {death}
    return 0


def label(price):
    return "EUR %s" % price
"""


@pytest.mark.usefixtures("no_controls")
@pytest.mark.docker
@pytest.mark.parametrize(
    "death",
    [
        "os._exit(0)",
        pytest.param("os.abort()", marks=pytest.mark.slow),
        pytest.param("return [b'x' * 10**8 for _ in range(99)]", marks=pytest.mark.slow),
        "raise KeyboardInterrupt",
    ],
)
def test_the_other_tests_of_a_runner_that_dies_before_the_fix_pass(death: str, tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=2)
    repo = TinyRepo(tmp_path / "repo")
    other = "def test_other():\n    pass\n"
    files = {"tests/test_shop.py": TESTS, "tests/test_zoo.py": other, "pyproject.toml": PYPROJECT}
    base = repo.commit("Start", {"shop/__init__.py": DYING.format(death=death), **files})
    merge = repo.commit("Live", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": HIDDEN})
    verification = verify(make_lineage(repo, services, base, merge), services)
    assert isinstance(verification, Verification), verification
    assert dict(verification.FAIL_TO_PASS) == {
        "tests/test_shop.py::TestMore::test_it_is_a_number": FailureKind.ABSENT,
        "tests/test_shop.py::test_one": FailureKind.ERROR,
        "tests/test_shop.py::test_two": FailureKind.ABSENT,
    }
    assert verification.PASS_TO_PASS == (
        "tests/test_shop.py::test_label",
        "tests/test_shop.py::test_nothing_costs_nothing",
        "tests/test_zoo.py::test_other",
    )
    assert verification.flaky_tests == ()
    base_runs = [run for run in verification.runs if run.variant is RunVariant.BASE]
    assert [(run.seed, run.counts.passed) for run in base_runs] == [(0, 3), (1, 3)]


@pytest.mark.usefixtures("no_controls")
@pytest.mark.docker
def test_a_runner_that_dies_in_collection_and_in_the_base_run(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    extra = "from shop import extra\n\n\ndef test_extra():\n    assert extra.x == 1\n"
    files = {"shop/__init__.py": SHOP_RIGHT, "shop/extra.py": "import os\nos._exit(0)\n", "tests/test_shop.py": TESTS}
    base = repo.commit("Start", files | {"pyproject.toml": PYPROJECT})
    merge = repo.commit("Live", {"shop/extra.py": "x = 1\n", "tests/test_extra.py": extra})
    verification = verify(make_lineage(repo, services, base, merge), services)
    assert isinstance(verification, Verification), verification
    assert verification.FAIL_TO_PASS == (("tests/test_extra.py::test_extra", FailureKind.ABSENT),)
    assert len(verification.PASS_TO_PASS) == 2
    dead = repo.commit("Dead", {"shop/extra.py": "import os\nos._exit(0)\n"})
    rejection = verify(
        make_lineage(repo, services, dead, repo.commit("Live again", {"shop/extra.py": "x = 1\n"})), services
    )
    assert not isinstance(rejection, Verification)
    assert (rejection.reason, "in the base run" in rejection.detail) == ("no-report", True)


@pytest.mark.usefixtures("no_controls")
@pytest.mark.docker
def test_tests_that_cannot_be_loaded_before_the_fix_stay_absent(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": TESTS})
    merge = repo.commit("Extra", {"shop/extra.py": "x = 1\n", "tests/conftest.py": "from shop import extra\n"})
    verification = verify(make_lineage(repo, services, base, merge), services)
    assert isinstance(verification, Verification), verification
    assert verification.FAIL_TO_PASS == (
        ("tests/test_shop.py::test_label", FailureKind.ABSENT),
        ("tests/test_shop.py::test_nothing_costs_nothing", FailureKind.ABSENT),
    )
    assert RunVariant.BASE not in [run.variant for run in verification.runs]
