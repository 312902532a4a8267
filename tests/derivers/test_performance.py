"""Changes for speed as tasks, what submissions to them are worth, and changes that give none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backends.services import Services
from derivers.base import Refusal
from derivers.performance import performance
from taskdb.lineage import Lineage
from taskdb.oracles import Performance
from taskdb.records import Rejection, Verification
from taskdb.tags import ChangeKind
from tests.boxes import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.rows import FAST, MANY, MORE_TESTS, SLOW, TESTS, WRONG, make_rows, patch_to
from verifiers.rewards import grade
from verifiers.verify import verify

pytestmark = pytest.mark.docker


def verified(
    repo: TinyRepo, services: Services, base: str, merge: str, kind: ChangeKind = ChangeKind.PERFORMANCE
) -> Lineage:
    lineage = make_lineage(repo, services, base, merge)
    lineage = replace(lineage, candidate=lineage.candidate.model_copy(update={"kind": kind}))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    return lineage.then(verification)


@pytest.mark.slow
def test_a_change_for_speed_is_a_task_and_only_speed_is_worth_anything(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1, test_timeout=300)
    repo = TinyRepo(tmp_path / "repo")
    base, _ = make_rows(repo)
    named = MORE_TESTS + '\n\ndef test_named():\n    import rows\n\n    assert rows.NAME == "rows"\n'
    merge = repo.commit("Has a name", {"rows/__init__.py": FAST + '\nNAME = "rows"\n', "tests/test_rows.py": named})
    lineage = verified(repo, services, base, merge)
    assert lineage.the_verification.FAIL_TO_PASS
    made = performance(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert isinstance(task.oracle, Performance)
    assert task.oracle.tests == (MANY,)
    assert task.FAIL_TO_PASS == ()
    assert 1 < task.oracle.threshold < task.oracle.ratio
    assert MANY in task.twins
    assert task.problem_statement.startswith(lineage.candidate.problem_statement)
    worth = {
        name: grade(task, services, patch)
        for name, patch in {
            "gold": services.artifacts.get(task.gold_patch), "nothing": b"",
            "work left out": patch_to(repo, base, WRONG),
        }.items()
    }  # fmt: skip
    values = {name: score.value for name, score in worth.items()}
    assert values == {
        "gold": 1.0, "nothing": 0.0, "work left out": 0.0,
    }, worth  # fmt: skip
    assert worth["gold"].parts.keys() == {"ratio", "expert_ratio", "p"}
    assert worth["gold"].parts["ratio"] >= task.oracle.threshold


@pytest.mark.slow
def test_tests_that_were_there_before_show_the_gain_of_a_change_without_tests(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1, test_timeout=300)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"rows/__init__.py": SLOW, "tests/test_rows.py": MORE_TESTS})
    merge = repo.commit("Faster", {"rows/__init__.py": FAST})
    lineage = verified(repo, services, base, merge)
    assert lineage.candidate.test_files == ()
    assert "$report/canaries" in services.artifacts.text(lineage.the_verification.eval_script)
    made = performance(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert isinstance(task.oracle, Performance)
    assert task.oracle.tests == (MANY,)
    assert MANY in task.twins
    gold, wrong = services.artifacts.get(task.gold_patch), patch_to(repo, base, WRONG)
    assert [grade(task, services, patch).value for patch in (gold, b"", wrong)] == [1.0, 0.0, 0.0]


def test_a_change_that_gains_nothing_is_no_performance_task(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"rows/__init__.py": SLOW, "tests/test_rows.py": TESTS})
    merge = repo.commit("Not faster", {"rows/__init__.py": SLOW + "\n", "tests/test_rows.py": TESTS + "\n"})
    lineage = verified(repo, services, base, merge)
    found = performance(lineage, services)
    assert isinstance(found, Refusal)
    assert found.reason == "no-stable-gain", found.detail


def test_of_other_kinds_of_change_none_is_made_and_they_need_a_failing_test(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    lineage = make_lineage(repo, services, *make_rows(repo))
    found = performance(lineage, services)
    assert isinstance(found, Refusal)
    assert found.reason == "not-a-performance-change"
    rejection = verify(lineage, services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "no-fail-to-pass"
