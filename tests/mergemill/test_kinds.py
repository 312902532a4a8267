"""The table of task kinds: every kind has prerequisites, a deriver, a reward, and formats or a reason for none."""

from __future__ import annotations

from typing import Any

import pytest

import exporters
import verifiers
from mergemill.kinds import DEFAULT_KINDS, TASK_KINDS, get_prerequisites, list_stages
from taskdb.kinds import Requirement
from taskdb.oracles import Oracle, PerformanceOracle, ReviewOracle, TestWritingOracle
from taskdb.records import Kind, Stage, Task
from tests import records

HASH = "0" * 64
ORACLES: dict[Kind, Oracle] = {
    Kind.PERFORMANCE: PerformanceOracle(workload=HASH, tests=("t.py::test_a",), clock="cpu", ratio=2, threshold=1.5),
    Kind.TEST_WRITING: TestWritingOracle(mutants=(), variants=(), gold_spans=()),
    Kind.REVIEW: ReviewOracle(target="clean", files=HASH, diff=None, defects=()),
}


def make_task(kind: Kind) -> Task:
    candidate = records.make_candidate(records.make_pull_request())
    task = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    fields: dict[str, Any] = {"kind": kind, "oracle": ORACLES.get(kind)}
    if kind in (Kind.REVIEW, Kind.SIMULATED):
        fields |= {"image": "", "environment": "simulated" if kind is Kind.SIMULATED else "none"}
    return Task(**task.model_dump() | fields)


def test_every_kind_has_exactly_one_row() -> None:
    assert set(TASK_KINDS) == set(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_every_row_has_prerequisites_a_deriver_a_reward_and_formats_or_a_reason(kind: Kind) -> None:
    row = TASK_KINDS[kind]
    assert isinstance(row.prerequisites.requirement, Requirement)
    assert callable(row.derive)
    assert row.reward in verifiers.rewards.REWARDS.values()
    assert bool(row.export_formats) != bool(row.not_exported)
    assert set(row.export_formats) <= set(exporters.FORMATS)


@pytest.mark.parametrize("kind", Kind)
def test_the_reward_of_a_task_is_that_of_its_row(kind: Kind) -> None:
    assert verifiers.select_reward(make_task(kind)) is TASK_KINDS[kind].reward


@pytest.mark.parametrize("kind", Kind)
def test_a_task_is_exportable_exactly_when_its_row_names_formats(kind: Kind) -> None:
    assert exporters.is_exportable(make_task(kind)) == bool(TASK_KINDS[kind].export_formats)


def test_a_feature_is_replaced_by_a_bug_fix_and_both_are_the_default() -> None:
    assert DEFAULT_KINDS == (Kind.BUGFIX, Kind.FEATURE)
    assert get_prerequisites((Kind.FEATURE,))[Kind.FEATURE].replaced_by is Kind.BUGFIX


def test_kinds_that_need_only_a_candidate_skip_the_stages_of_environments() -> None:
    assert list_stages((Kind.REVIEW,)) == (Stage.MINE, Stage.DERIVE, Stage.CERTIFY)
    assert list_stages((Kind.REVIEW, Kind.SIMULATED)) == tuple(Stage)
