"""The table of task kinds: every kind has prerequisites, a deriver and a reward; formats explain their exclusions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import exporters
import verifiers
from backends.clones import CloneStore
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from core.config import Settings
from derivers.base import KindRejection
from mergemill.pipeline import kinds
from mergemill.pipeline.kinds import DEFAULT_KINDS, TASK_KINDS, TaskKind, get_prerequisites, list_stages
from taskdb.artifacts import Artifacts
from taskdb.records import Kind, Rejection, Stage, Task
from taskdb.records.instructions import InstructionOracle
from taskdb.records.kinds import ENVIRONMENT_KINDS, LIST_KINDS, Prerequisites, Requirement
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import (
    MigrationOracle,
    Oracle,
    PerformanceOracle,
    RefactoringOracle,
    ReviewOracle,
    TestWritingOracle,
)
from tests import records
from verifiers.rewards import REWARDS, TESTS

HASH = "0" * 64
ORACLES: dict[Kind, Oracle] = {
    Kind.PERFORMANCE: PerformanceOracle(workload=HASH, tests=("t.py::test_a",), clock="cpu", ratio=2, threshold=1.5),
    Kind.TEST_WRITING: TestWritingOracle(mutants=(), variants=(), gold_spans=()),
    Kind.REVIEW: ReviewOracle(target="clean", files=HASH, diff=None, defects=()),
    Kind.REFACTORING: RefactoringOracle(moved=(), gone=(), kept=()),
    Kind.DEPENDENCY_MIGRATION: MigrationOracle(old_modules=("six",), new_modules=("io",)),
    Kind.INSTRUCTIONS: InstructionOracle(constraints=(), dutiful=HASH, careless=()),
}


def make_task(kind: Kind) -> Task:
    candidate = records.make_candidate(records.make_pull_request())
    task = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    fields: dict[str, Any] = {"kind": kind, "oracle": ORACLES.get(kind)}
    if kind in (Kind.REVIEW, Kind.SIMULATED):
        fields |= {"image": "", "environment": "simulated" if kind is Kind.SIMULATED else "none"}
    return Task(**task.model_dump() | fields)


def test_kinds_that_lists_of_tests_decide_need_controls() -> None:
    assert {kind for kind, row in TASK_KINDS.items() if row.reward is REWARDS[TESTS]} == set(LIST_KINDS)


def test_kinds_of_environments_are_those_that_require_nothing_else() -> None:
    rows = {kind: row.prerequisites for kind, row in TASK_KINDS.items()}
    assert {kind for kind, it in rows.items() if it.requirement is Requirement.ENVIRONMENT} == set(ENVIRONMENT_KINDS)
    assert not any(rows[kind].needs_new_tests for kind in ENVIRONMENT_KINDS)


def test_every_kind_has_exactly_one_row() -> None:
    assert set(TASK_KINDS) == set(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_every_row_has_prerequisites_a_deriver_and_a_reward(kind: Kind) -> None:
    row = TASK_KINDS[kind]
    assert isinstance(row.prerequisites.requirement, Requirement)
    assert callable(row.derive)
    assert row.reward in verifiers.rewards.REWARDS.values()


@pytest.mark.parametrize("kind", Kind)
def test_the_reward_of_a_task_is_that_of_its_row(kind: Kind) -> None:
    assert verifiers.select_reward(make_task(kind)) is TASK_KINDS[kind].reward


@pytest.mark.parametrize("kind", Kind)
def test_every_format_carries_a_task_or_explains_why_it_cannot(kind: Kind) -> None:
    reasons = {name: row.explain_exclusion(make_task(kind)) for name, row in exporters.FORMATS.items()}
    assert all(reason is None or reason.strip() for reason in reasons.values())
    if kind in (Kind.BUGFIX, Kind.FEATURE, Kind.INJECTED, Kind.REBUILD, Kind.COMBINED, Kind.MIRRORED):
        assert (reasons["swebench"], reasons["harbor"]) == (None, None)


def test_removed_code_is_carried_by_the_formats_of_injected_bugs() -> None:
    injected, rebuild = (
        {name for name, row in exporters.FORMATS.items() if row.explain_exclusion(make_task(kind)) is None}
        for kind in (Kind.INJECTED, Kind.REBUILD)
    )
    assert injected == rebuild == set(exporters.FORMATS)


@pytest.mark.parametrize(
    ("rejected", "outcome"), [((), ["a", "b"]), (("a",), ["b"]), (("a", "b"), "not-stated"), (("b",), ["a"])]
)
def test_tasks_that_a_check_rejects_are_left_out(
    rejected: tuple[str, ...], outcome: list[str] | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [make_task(Kind.REBUILD).model_copy(update={"name": name}) for name in ("a", "b")]

    def check(_lineage: Lineage, task: Task, _services: Services) -> KindRejection | None:
        return KindRejection("not-stated", f"of {task.name}") if task.name in rejected else None

    prerequisites = Prerequisites(requirement=Requirement.CANDIDATE)
    row = TaskKind(
        prerequisites=prerequisites, derive=lambda _lineage, _services: tasks, reward=REWARDS[TESTS], check=check
    )
    monkeypatch.setattr(kinds, "TASK_KINDS", {Kind.REBUILD: row})
    monkeypatch.setattr(kinds, "keep_tree", lambda _task, _services: True)
    lineage = Lineage(candidate=records.make_candidate(records.make_pull_request()), kinds=(Kind.REBUILD,))
    services = Services(
        settings=Settings.model_validate({"store": tmp_path / "store"}),
        sandbox=DockerSandbox(),
        clones=CloneStore(tmp_path / "clones"),
        artifacts=Artifacts(tmp_path / "artifacts"),
    )
    result = kinds.derive(lineage, services)
    if isinstance(result, Rejection):
        assert (result.reason, result.detail, result.kind) == (outcome, "of a", Kind.REBUILD)
    else:
        assert [task.name for task in result] == outcome


def test_a_feature_is_replaced_by_a_bug_fix_and_both_are_the_default() -> None:
    assert DEFAULT_KINDS == (Kind.BUGFIX, Kind.FEATURE)
    assert get_prerequisites((Kind.FEATURE,))[Kind.FEATURE].replaced_by is Kind.BUGFIX


def test_kinds_that_need_only_a_candidate_skip_the_stages_of_environments() -> None:
    assert list_stages((Kind.REVIEW,)) == (Stage.MINE, Stage.DERIVE, Stage.CERTIFY)
    assert list_stages((Kind.REVIEW, Kind.SIMULATED)) == tuple(Stage)
