"""Which rollout runs next, and when none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergemill.agents.sampling.queue import MIN_STREAK, RolloutQueue
from mergemill.agents.sampling.request import PendingRollout
from taskdb.records import Task
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url


@pytest.fixture
def task(tmp_path: Path) -> Task:
    with Store.open(make_url(tmp_path)) as store:
        return add_lineage(store, 1)


def make_pending(task: Task, number: int) -> list[PendingRollout]:
    return [
        PendingRollout(
            plan=RolloutPlan(
                task=task.id, name=task.name, scaffold="noop", scaffold_version="1", model="", attempt=attempt
            ),
            retry=0,
        )
        for attempt in range(1, number + 1)
    ]


def end(pending: PendingRollout, status: RolloutStatus) -> Rollout:
    plan = pending.plan
    return Rollout(
        parent=plan.task,
        name=plan.name,
        plan=plan.key,
        scaffold=plan.scaffold,
        scaffold_version=plan.scaffold_version,
        model=plan.model,
        attempt=plan.attempt,
        status=status,
    )


def take_all(queue: RolloutQueue, *failing: int) -> list[tuple[int, int]]:
    """Run all that the queue gives, one after the other, and return attempt and number of the retry of each."""
    rollouts = []
    while (pending := queue.take()) is not None:
        rollouts.append((pending.plan.attempt, pending.retry))
        fails = pending.plan.attempt in failing
        queue.settle(pending, end(pending, RolloutStatus.INFRASTRUCTURE if fails else RolloutStatus.DONE))
    return rollouts


def test_what_failed_is_tried_again_after_all_others_as_often_as_it_may(task: Task) -> None:
    queue = RolloutQueue(make_pending(task, 4), retries=2, workers=1)
    assert take_all(queue, 1, 3) == [(1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (3, 1), (1, 2), (3, 2)]
    assert (queue.n_finished, queue.is_outage) == (2, False)


def test_a_rollout_without_a_record_is_not_tried_again(task: Task) -> None:
    queue = RolloutQueue(make_pending(task, 1), retries=2, workers=1)
    pending = queue.take()
    assert pending is not None
    queue.settle(pending, None)
    assert queue.take() is None
    assert queue.n_finished == 0


@pytest.mark.parametrize(("workers", "streak"), [(1, MIN_STREAK), (16, 32)])
def test_a_queue_of_thousands_gives_nothing_more_in_an_outage(task: Task, workers: int, streak: int) -> None:
    queue = RolloutQueue(make_pending(task, 5_000), retries=2, workers=workers)
    assert len(take_all(queue, *range(1, 5_001))) == streak
    assert (queue.is_outage, queue.n_failed_in_row, queue.n_finished) == (True, streak, 0)


def test_a_result_ends_a_streak_and_one_that_fails_again_and_again_is_none(task: Task) -> None:
    queue = RolloutQueue(make_pending(task, 40), retries=2, workers=1)
    failing = [attempt for attempt in range(1, 41) if attempt % MIN_STREAK]
    assert len(take_all(queue, *failing)) > 40  # 36 fail, never more than 9 in a row before all were tried once
    alone = RolloutQueue(make_pending(task, 1), retries=3 * MIN_STREAK, workers=1)
    assert len(take_all(alone, 1)) == 3 * MIN_STREAK + 1
