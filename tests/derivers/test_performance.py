"""Performance tasks, the scores of submissions to them, and changes that give none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backends.services import Services
from derivers.base import KindRejection
from derivers.performance import derive_performance
from taskdb.records import Rejection, Verification
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import PerformanceOracle
from taskdb.records.tags import ChangeKind
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.slow_rows import FAST, MANY, MORE_TESTS, SLOW, TESTS, WRONG, make_module_patch, make_slow_rows
from verifiers.rewards import grade
from verifiers.verify import verify

pytestmark = pytest.mark.docker


def verified(
    repo: TinyRepo, services: Services, base: str, merge: str, change_kind: ChangeKind = ChangeKind.PERFORMANCE
) -> Lineage:
    lineage = make_lineage(repo, services, base, merge)
    lineage = replace(lineage, candidate=lineage.candidate.model_copy(update={"change_kind": change_kind}))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    return lineage.with_record(verification)


@pytest.mark.slow
def test_a_performance_change_is_a_task_and_only_faster_submissions_score(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1, test_timeout=300)
    repo = TinyRepo(tmp_path / "repo")
    base, _ = make_slow_rows(repo)
    named = MORE_TESTS + '\n\ndef test_named():\n    import rows\n\n    assert rows.NAME == "rows"\n'
    merge = repo.commit("Has a name", {"rows/__init__.py": FAST + '\nNAME = "rows"\n', "tests/test_rows.py": named})
    lineage = verified(repo, services, base, merge)
    assert lineage.require_verification().FAIL_TO_PASS
    made = derive_performance(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert isinstance(task.oracle, PerformanceOracle)
    assert task.oracle.tests == (MANY,)
    assert task.FAIL_TO_PASS == ()
    assert 1 < task.oracle.threshold < task.oracle.ratio
    assert MANY in task.controls
    assert task.problem_statement.startswith(lineage.candidate.problem_statement)
    worth = {
        name: grade(task, services, patch)
        for name, patch in {
            "gold": services.artifacts.get(task.gold_patch),
            "nothing": b"",
            "work left out": make_module_patch(repo, base, WRONG),
        }.items()
    }
    values = {name: score.value for name, score in worth.items()}
    assert values == {
        "gold": 1.0,
        "nothing": 0.0,
        "work left out": 0.0,
    }, worth
    assert worth["gold"].parts.keys() == {"ratio", "expert_ratio", "p"}
    assert worth["gold"].parts["ratio"] >= task.oracle.threshold


@pytest.mark.slow
def test_existing_tests_measure_a_change_without_tests(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1, test_timeout=300)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"rows/__init__.py": SLOW, "tests/test_rows.py": MORE_TESTS})
    merge = repo.commit("Faster", {"rows/__init__.py": FAST})
    lineage = verified(repo, services, base, merge)
    assert lineage.candidate.test_files == ()
    assert "$report/canaries" in services.artifacts.get_text(lineage.require_verification().eval_script)
    made = derive_performance(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert isinstance(task.oracle, PerformanceOracle)
    assert task.oracle.tests == (MANY,)
    assert MANY in task.controls
    gold, wrong = services.artifacts.get(task.gold_patch), make_module_patch(repo, base, WRONG)
    assert [grade(task, services, patch).value for patch in (gold, b"", wrong)] == [1.0, 0.0, 0.0]


def test_a_change_without_a_speedup_is_no_performance_task(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"rows/__init__.py": SLOW, "tests/test_rows.py": TESTS})
    merge = repo.commit("Not faster", {"rows/__init__.py": SLOW + "\n", "tests/test_rows.py": TESTS + "\n"})
    lineage = verified(repo, services, base, merge)
    derived = derive_performance(lineage, services)
    assert isinstance(derived, KindRejection)
    assert derived.reason == "no-stable-gain", derived.detail


def test_other_kinds_of_change_give_no_performance_task_and_need_a_failing_test(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    lineage = make_lineage(repo, services, *make_slow_rows(repo))
    derived = derive_performance(lineage, services)
    assert isinstance(derived, KindRejection)
    assert derived.reason == "not-a-performance-change"
    rejection = verify(lineage, services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "no-fail-to-pass"
