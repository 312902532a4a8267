"""Verification of small real changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.controls.planning import BOUND
from mergemill.pipeline.kinds import derive
from taskdb.records import FailureKind, PublishedLists, Rejection, RunVariant, Verification, Weakness
from tests.containers import make_lineage, make_services, record_containers
from tests.helpers import TinyRepo
from tests.verifiers.no_controls import no_controls
from tests.verifiers.shop import SHOP, SHOP_RIGHT, TESTS, make_shop, open_shop_task
from verifiers.certify import compute_guess_bound
from verifiers.grade import grade
from verifiers.verify import Reason, verify

__all__ = ["no_controls"]
pytestmark = pytest.mark.docker

F2P = (
    "tests/test_shop.py::TestMore::test_it_is_a_number",
    "tests/test_shop.py::test_one",
    "tests/test_shop.py::test_two",
)
FLAKY_TEST = """
import datetime, os, signal
import pytest
import shop

def test_signals_have_their_default_actions():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGQUIT) is signal.SIG_DFL

def test_a_child_runs_to_the_end_of_the_session():
    if child := os.fork():
        assert os.waitpid(child, 0)[1] >= 0

@pytest.mark.parametrize("day", [datetime.date.today()], ids=str)
def test_today(day):
    assert day

def test_sometimes():
    assert os.environ["PYTHONHASHSEED"] != "1" or not shop.total([1])
"""
CLOSED = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.path.name == "test_shop.py"]
"""
FORGIVING = """
def pytest_runtest_makereport(item, call):
    from _pytest.reports import TestReport
    report = TestReport.from_item_and_call(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
"""


def test_a_change_is_verified_and_derived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = make_services(tmp_path)
    repo = TinyRepo(tmp_path / "repo")
    base, _ = make_shop(repo)
    merge = repo.commit("Note it", {"CHANGELOG.md": "# Fixed\n"})
    lineage = make_lineage(repo, services, base, merge)
    candidate = lineage.candidate.model_copy(update={"incidental_files": ("CHANGELOG.md",)})
    lineage = replace(lineage, candidate=candidate)
    created = record_containers(monkeypatch)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    assert len(created) == 2 + 2 + 1, "the first pair has a container for each run, a repeat one, and controls one"
    assert tuple(test for test, _ in verification.FAIL_TO_PASS) == F2P
    assert {kind for _, kind in verification.FAIL_TO_PASS} == {FailureKind.ASSERTION}
    assert verification.PASS_TO_PASS == (
        "tests/test_shop.py::test_label",
        "tests/test_shop.py::test_nothing_costs_nothing",
    )
    assert verification.controls == F2P
    assert [run.variant for run in verification.runs].count(RunVariant.GOLD) == 3
    lineage = lineage.with_record(verification)
    made = derive(lineage, services)
    assert not isinstance(made, Rejection)
    (task,) = made
    gold = services.artifacts.get_text(task.gold_patch)
    assert "CHANGELOG.md" not in gold
    assert task.changed_code is not None
    assert (task.changed_code.functions, task.changed_code.files) == (("shop/__init__.py::total",), 1)
    assert compute_guess_bound(task, services) <= BOUND
    assert (task.control_bound or 1) <= BOUND
    assert task.evaluations == json.loads(services.artifacts.get(task.blind_controls or ""))["evaluations"] == 1


@pytest.mark.usefixtures("no_controls")
def test_a_change_of_configuration_is_made_once_in_a_container_of_two_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, repo = make_services(tmp_path, repeats=2), TinyRepo(tmp_path / "repo")
    base, _ = make_shop(repo)
    merge = repo.commit("Name it", {"pyproject.toml": '[project]\nname = "shop"\n'})
    lineage = make_lineage(repo, services, base, merge)
    containers = record_containers(monkeypatch)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    assert len(verification.runs) == 4
    assert len(containers) == 3


def test_a_verification_made_again_is_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    shop = open_shop_task(tmp_path_factory)
    again = verify(replace(shop.lineage, verification=None), shop.services)
    assert isinstance(again, Verification), again
    assert again.id == shop.lineage.require_verification().id


def test_a_long_suite_runs_once_as_a_whole_and_then_with_the_files_that_matter(tmp_path: Path) -> None:
    services = make_services(tmp_path, whole_suite_seconds=0.01)
    repo = TinyRepo(tmp_path / "repo")
    repo.commit(
        "Count",
        {
            "basket.py": "from shop import total\n",
            "tests/test_basket.py": "from basket import total\n\n\ndef test_five():\n    assert total([5]) == 5\n",
            "tests/test_numbers.py": "def test_sum():\n    assert 1 + 1 == 2\n",
        },
    )
    lineage = make_lineage(repo, services, *make_shop(repo))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    assert verification.eval_files == ("tests/test_basket.py", "tests/test_shop.py")
    assert tuple(test for test, _ in verification.FAIL_TO_PASS) == ("tests/test_basket.py::test_five", *F2P)
    assert verification.PASS_TO_PASS == (
        "tests/test_shop.py::test_label",
        "tests/test_shop.py::test_nothing_costs_nothing",
    )
    counted = [
        (run.variant, run.counts.passed, run.script == verification.eval_script)
        for run in verification.runs
        if run.variant is not RunVariant.CONTROL
    ]
    assert sorted(counted) == sorted(
        (variant, passed + (not is_final), is_final)
        for variant, passed in ((RunVariant.TEST_ONLY, 2), (RunVariant.GOLD, 6))
        for is_final in (False, True, True)
    )
    assert len(verification.list_gold_seconds()) == 2
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection)
    assert grade(made[0], services, services.artifacts.get(lineage.candidate.gold_patch)).value == 1.0


@pytest.mark.usefixtures("no_controls")
def test_a_flaky_test_is_left_out_and_a_flaky_f2p_alone_rejects(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    repo = TinyRepo(tmp_path / "repo")
    base, _ = make_shop(repo)
    repo.git("checkout", "-q", "-b", "flaky")
    with_flaky = repo.commit("A flaky test", {"tests/test_flaky.py": FLAKY_TEST})
    verification = verify(make_lineage(repo, services, base, with_flaky), services)
    assert isinstance(verification, Verification), verification
    assert {
        "tests/test_flaky.py::test_signals_have_their_default_actions",
        "tests/test_flaky.py::test_a_child_runs_to_the_end_of_the_session",
    } < set(verification.PASS_TO_PASS)
    excluded, dated = verification.flaky_tests
    assert (dated.test, excluded.date) == (f"tests/test_flaky.py::test_today[{dated.date}]", "")
    assert excluded.test == "tests/test_flaky.py::test_sometimes"
    assert excluded.counts == {RunVariant.TEST_ONLY: {"passed": 3}, RunVariant.GOLD: {"passed": 2, "failed": 1}}
    repo.git("checkout", "-q", "-b", "alone", base)
    flaky = FLAKY_TEST.replace('"1" or not shop.total([1])', '"1" and shop.total([1])')
    alone = repo.commit("Only flaky", {"shop/__init__.py": SHOP_RIGHT, "tests/test_flaky.py": flaky})
    rejection = verify(make_lineage(repo, services, base, alone), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "flaky", rejection.detail


@pytest.mark.usefixtures("no_controls")
@pytest.mark.parametrize(
    ("source", "test", "reason"),
    [
        (SHOP + "\n", TESTS.replace("== 0", "== 1"), "gold-fails"),
        (SHOP + "\n", TESTS + "\n\ndef test_new():\n    assert total([]) == 0\n", "no-fail-to-pass"),
        (SHOP_RIGHT, TESTS + "\n\ndef test_new():\n    while total([1]):\n        pass\n", "killed-by-time"),
        (
            SHOP_RIGHT,
            TESTS + "\n\ndef test_new():\n    [b'x' * 10**8 for _ in range(total([99]))]\n",
            "killed-by-memory",
        ),
        (SHOP_RIGHT, TESTS + "\n\ndef test_new():\n    import os\n    os._exit(total([1]))\n", "no-report"),
        (
            SHOP_RIGHT,
            TESTS + "\n\ndef test_new():\n    import shutil\n    shutil.rmtree('tests')\n    assert total([1])\n",
            None,
        ),
    ],
    ids=["gold-fails", "nothing-fixed", "never-ends", "eats-memory", "dies", "removes-its-tests"],
)
def test_every_failed_verification_has_its_reason(source: str, test: str, reason: str | None, tmp_path: Path) -> None:
    seconds = 4 if reason == "killed-by-time" else 12
    services = make_services(tmp_path, test_timeout=seconds, memory_mb=512, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base, _ = make_shop(repo)
    repo.git("checkout", "-q", "-b", "other", base)
    merge = repo.commit("Other", {"shop/__init__.py": source, "tests/test_shop.py": test})
    result = verify(make_lineage(repo, services, base, merge), services)
    if reason is None:
        assert isinstance(result, Verification), result
    else:
        assert isinstance(result, Rejection), result
        assert result.reason == reason, result.detail


@pytest.mark.usefixtures("no_controls")
def test_a_thread_that_outlives_the_tests_does_not_cost_their_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.script.render.LINGER_SECONDS", 1)
    services = make_services(tmp_path, test_timeout=20, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base, _ = make_shop(repo)
    repo.git("checkout", "-q", "-b", "thread", base)
    lingering = (
        "\n\ndef test_new():\n    import threading, time\n"
        "    threading.Thread(target=time.sleep, args=(900,)).start()\n"
        "    assert total([1]) == 1\n"
    )
    merge = repo.commit("Thread", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": TESTS + lingering})
    verification = verify(make_lineage(repo, services, base, merge), services)
    assert isinstance(verification, Verification), verification
    assert "tests/test_shop.py::test_new" in [test for test, _ in verification.FAIL_TO_PASS]


def test_a_published_task_is_compared_even_when_it_is_rejected(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base, _ = make_shop(repo)
    repo.git("checkout", "-q", "-b", "other", base)
    merge = repo.commit("Nothing", {"shop/__init__.py": SHOP + "\n", "tests/test_shop.py": TESTS + "\n"})
    published = PublishedLists(
        FAIL_TO_PASS=("tests/test_shop.py::test_one",), PASS_TO_PASS=("tests/test_shop.py::test_label",)
    )
    result = verify(make_lineage(repo, services, base, merge, published=published), services)
    assert isinstance(result, Rejection)
    assert result.published is not None
    assert result.published.fail_to_pass.missing == ("tests/test_shop.py::test_one",)
    assert result.published.pass_to_pass.missing == ()
    causes = {(cause.side, cause.test): (cause.cause, cause.detail) for cause in result.published.causes}
    assert causes["missing", "tests/test_shop.py::test_one"] == (
        "unknown",
        "tests/test_shop.py was run and reports no such test",
    )


def test_a_unittest_project_is_verified(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    case = "import unittest\nfrom shop import total\n\n\nclass TotalTest(unittest.TestCase):\n"
    case += "    def test_none(self):\n        self.assertEqual(total([]), 0)\n"
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/__init__.py": "", "tests/test_shop.py": case})
    more = case + "\n    def test_one(self):\n        self.assertEqual(total([5]), 5)\n"
    merge = repo.commit("Fix", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": more})
    lineage = make_lineage(
        repo, services, base, merge, framework="unittest", argv=("python", "-m", "unittest", "discover")
    )
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    assert verification.FAIL_TO_PASS == (("tests/test_shop.py::TotalTest::test_one", FailureKind.ASSERTION),)
    assert verification.PASS_TO_PASS == ("tests/test_shop.py::TotalTest::test_none",)
    assert verification.controls == ("tests/test_shop.py::TotalTest::test_one",)


def test_a_suite_that_does_not_collect_added_test_files_is_verified_without_canaries(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    repo.write({"conftest.py": CLOSED})
    lineage = make_lineage(repo, services, *make_shop(repo))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    assert tuple(test for test, _ in verification.FAIL_TO_PASS) == F2P
    assert {run.script for run in verification.runs} == {verification.eval_script}
    assert verification.dropped_canaries
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection)
    assert grade(made[0], services, services.artifacts.get(lineage.candidate.gold_patch)).value == 1.0


def test_a_suite_that_reports_no_failures_is_rejected(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    repo.write({"conftest.py": FORGIVING})
    result = verify(make_lineage(repo, services, *make_shop(repo)), services)
    assert isinstance(result, Rejection)
    assert result.reason == Reason.CANARY_PASSES


WEAK = """
import pytest
import shop

def test_with_json():
    json = pytest.importorskip("json")
    assert shop.total([json.loads("4")]) == 4
"""
SILENT = """
import shop

def test_it_runs():
    shop.total([1, 2])
"""
SKIPPED = """
import pytest

pytest.importorskip("a_package_that_nobody_has")

def test_never():
    assert 0
"""


@pytest.mark.usefixtures("no_controls")
def test_weak_tests_are_named_in_the_verification_and_the_task(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_silent.py": SILENT})
    tests = {"tests/test_weak.py": WEAK, "tests/test_never.py": SKIPPED}
    merge = repo.commit("Count the first price", {"shop/__init__.py": SHOP_RIGHT, **tests})
    lineage = make_lineage(repo, services, base, merge)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    named = {weak.test: weak.weakness for weak in verification.weak_tests}
    assert named == {
        "tests/test_never.py": Weakness.SKIPPED,
        "tests/test_silent.py::test_it_runs": Weakness.ASSERTS_NOTHING,
        "tests/test_weak.py::test_with_json": Weakness.SKIPS,
    }
    assert "a_package_that_nobody_has" in verification.weak_tests[0].evidence
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection)
    assert [weak.test for weak in made[0].weak_tests] == list(named)[1:]


def test_a_change_whose_tests_are_all_skipped_is_rejected_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_silent.py": SILENT})
    merge = repo.commit("Count the first price", {"shop/__init__.py": SHOP_RIGHT, "tests/test_never.py": SKIPPED})
    lineage = make_lineage(repo, services, base, merge)
    containers = record_containers(monkeypatch)
    rejection = verify(lineage, services)
    assert isinstance(rejection, Rejection)
    assert len(containers) == 2, "none is prepared for a repeat"
    assert "1 of 2 tests and files are skipped, 1 of them for: collection skipped" in rejection.detail
    assert "a_package_that_nobody_has" in rejection.detail
