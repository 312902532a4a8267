"""Pairs of task and scaffold that are left out: instructions that the scaffold would not give its model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import UsageError
from mergemill.agents.sampling.delivery import leave_out_undelivered
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import SampleRequest, list_pending
from mergemill.agents.sampling.run import sample
from samplers.scaffolds.registry import load_scaffold
from samplers.subjects.task_subject import list_task_sources
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.records.instructions import BoundConstraint, InstructionOracle, InstructionSource
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url

SKILL, MEMORY, SYSTEM = InstructionSource.SKILL, InstructionSource.MEMORY, InstructionSource.SYSTEM


def make_oracle(*sources: InstructionSource) -> InstructionOracle:
    constraints = tuple(
        BoundConstraint(name=f"c-{source}", family="own", source=source, text="Text.", check="read-before-edit")
        for source in sources
    )
    return InstructionOracle(constraints=constraints, dutiful="0" * 64, careless=())


@pytest.fixture
def tasks(tmp_path: Path) -> Sequence[Task]:
    """Three tasks, of which the last two have instructions besides their statements."""
    with Store.open(make_url(tmp_path)) as store:
        plain, instructed, other = (add_lineage(store, number) for number in (1, 2, 3))
    return (
        plain,
        instructed.model_copy(update={"oracle": make_oracle(MEMORY, SKILL, SYSTEM)}),
        other.model_copy(update={"oracle": make_oracle(SYSTEM)}),
    )


def make_request(*names: str) -> SampleRequest:
    scaffolds = tuple(load_scaffold(name) for name in names)
    return SampleRequest(filters=TaskFilters(), scaffolds=scaffolds, model="m", attempts=2)


def leave_out(tasks: Sequence[Task], request: SampleRequest, lines: list[str]) -> frozenset[tuple[str, str]]:
    sources = [(task, list_task_sources(task)) for task in tasks]
    return leave_out_undelivered(sources, request.scaffolds, lines.append)


def test_other_pairs_are_planned_and_a_line_counts_those_that_are_left_out(
    tasks: Sequence[Task], tmp_path: Path
) -> None:
    lines: list[str] = []
    request = make_request("react", "mini-swe-agent", "openhands", "noop")
    left_out = leave_out(tasks, request, lines)
    assert left_out == {(tasks[1].id, "mini-swe-agent"), (tasks[1].id, "openhands")}
    (line,) = lines
    assert line == (
        "2 of 12 pairs of task and scaffold are left out (source-not-delivered): "
        "mini-swe-agent does not deliver skill, memory (1); openhands does not deliver memory (1)"
    )
    with Store.open(make_url(tmp_path)) as store:
        planned, pending = list_pending(store, tasks, request, left_out)
    assert planned == len(pending) == (12 - 2) * 2
    assert not left_out & {(item.plan.task, item.plan.scaffold) for item in pending}


def test_nothing_is_said_where_every_scaffold_delivers_everything(tasks: Sequence[Task]) -> None:
    lines: list[str] = []
    assert leave_out(tasks, make_request("react", "claude-code", "oracle"), lines) == frozenset()
    assert leave_out(tasks[:1], make_request("mini-swe-agent"), lines) == frozenset()
    assert lines == []


def test_a_request_of_which_no_pair_is_left_is_a_mistake_of_one_line(tasks: Sequence[Task]) -> None:
    lines: list[str] = []
    with pytest.raises(UsageError) as caught:
        leave_out(tasks[1:2], make_request("mini-swe-agent"), lines)
    assert caught.value.format_line() == (
        "--scaffold: mini-swe-agent does not deliver skill, memory (source-not-delivered) "
        "(one of react, claude-code, codex, opencode, qwen-code)"
    )
    assert (caught.value.exit_code, lines) == (2, [])


def test_sampling_refuses_before_a_model_or_an_engine_is_asked(
    tasks: Sequence[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mergemill.agents.sampling.run.select_tasks", lambda store, request: tasks[1:2])
    settings = Settings(db=make_url(tmp_path), store=tmp_path / "store", upstream="http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match="mini-swe-agent does not deliver skill, memory"):
        sample(make_request("mini-swe-agent"), settings, SamplingProgress())
