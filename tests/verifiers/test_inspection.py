"""A sound task passes every probe; a task with a planted fault is reported with the name of the probe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from backends.git import list_patch_paths
from backends.services import Services
from core.settings.group import replace_values
from taskdb.records import Task
from tests.verifiers.shop import SHOP, open_shop_task
from verifiers import inspect
from verifiers.inspection import Inspection, read_target
from verifiers.probes import PROBES, make_patch


@dataclass(frozen=True)
class InspectedTask:
    services: Services
    task: Task

    def with_fault(self, *names: str, **fault: Any) -> Inspection:
        """Inspect the task with changed fields, and only the probes of these names."""
        probes = [probe for probe in PROBES if probe.name in names]
        settings = replace_values(self.services.settings, {"strength_runs": 0})
        return inspect(self.task.model_copy(update=fault), replace(self.services, settings=settings), probes=probes)


@pytest.fixture(scope="module")
def inspected_task(tmp_path_factory: pytest.TempPathFactory) -> InspectedTask:
    made = open_shop_task(tmp_path_factory, test_timeout=20)
    return InspectedTask(made.services, made.task)


@pytest.mark.docker
def test_a_sound_task_has_no_findings_and_every_probe_earns_0(inspected_task: InspectedTask) -> None:
    report = inspect(inspected_task.task, inspected_task.services, need_rates=False)
    assert report.findings == ()
    assert {probe.name: probe.value for probe in report.probes} == {"gold": 1.0} | {probe.name: 0.0 for probe in PROBES}
    result = {probe.name: probe for probe in report.probes}
    assert all("its expectation was changed" in fault for fault in result["source-forges"].tampering)
    assert "no report" in result["source-exits"].explanation
    strength = report.strength
    assert (strength.fail_to_pass, strength.controls) == (3, 3)
    assert strength.mutants == strength.mutants_detected > 0
    assert strength.variants == strength.variants_accepted > 0
    assert strength.score == 1.0


@pytest.mark.docker
def test_a_task_without_sabotaged_tests_accepts_a_forged_report(inspected_task: InspectedTask) -> None:
    report = inspected_task.with_fault("conftest-forges", "source-forges", controls=(), blind_controls=None)
    assert [(fault.kind, fault.location) for fault in report.findings] == [("exploit", "source-forges")]
    assert "earns 1" in report.findings[0].description
    assert report.strength.controls == 0


@pytest.mark.docker
def test_a_task_whose_tests_pass_anyway_is_solved_by_a_no_op(inspected_task: InspectedTask) -> None:
    passing = tuple((test, inspected_task.task.FAIL_TO_PASS[0][1]) for test in inspected_task.task.PASS_TO_PASS)
    report = inspected_task.with_fault("no-op", "only-tests", FAIL_TO_PASS=passing, controls=(), blind_controls=None)
    assert [fault.location for fault in report.findings if fault.kind == "exploit"] == ["no-op", "only-tests"]


@pytest.mark.docker
def test_a_useless_gold_patch_and_its_leak_in_the_statement_are_findings(
    inspected_task: InspectedTask,
) -> None:
    useless = SHOP.replace('"""Sum of the prices."""', '"""Sum of the prices, rounded(2)."""').encode()
    gold = make_patch({"shop/__init__.py": useless}, {"shop/__init__.py": SHOP.encode()})
    statement = 'Write """Sum of the prices, rounded(2).""" there.'
    report = inspected_task.with_fault(
        gold_patch=inspected_task.services.artifacts.put(gold), problem_statement=statement
    )
    assert [fault.kind for fault in report.findings] == ["statement", "gold"]
    assert report.findings[0].location == '"""Sum of the prices, rounded(2)."""'
    assert "the gold patch earns 0" in report.findings[1].description


@pytest.mark.docker
def test_each_probe_is_a_patch_of_its_own_that_git_applies(inspected_task: InspectedTask) -> None:
    target, _ = read_target(inspected_task.task, inspected_task.services)
    assert sorted(target.base) == ["shop/__init__.py", "tests/test_shop.py"]
    patches = {probe.name: make_patch(probe.make(target), target.base) for probe in PROBES}
    assert len(set(patches.values())) == len(PROBES)
    assert {name for name, patch in patches.items() if not patch} == {"no-op"}
    assert list_patch_paths(patches["deleted-tests"]) == ["tests/test_shop.py"]
    assert b"deleted file" in patches["deleted-tests"]
    assert b"+class TestMore:\n+    def test_it_is_a_number(*_): pass\n" in patches["only-tests"]
