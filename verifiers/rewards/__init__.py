"""What a submission is worth, by what tells right from wrong in a task: its lists of tests, or an oracle of its own.

Reading REWARDS is reading which there are. A reward also knows the submission that must be worth 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.services import Services
from taskdb.records import Score, Task
from verifiers import grade as tests
from verifiers.rewards import performance, review, simulated, writing

TESTS, SIMULATED = "tests", "simulated"


@dataclass(frozen=True)
class Reward:
    """`grade(task, services, submission)` and `gold(task, services)`, the submission that is worth 1."""

    grade: Callable[[Task, Services, bytes], Score]
    gold: Callable[[Task, Services], bytes]
    submission: str
    """The option of `mergemill grade` that takes one: `patch`, `tests` or `review`."""


def gold_patch(task: Task, services: Services) -> bytes:
    """The change's own patch."""
    return services.artifacts.get(task.gold_patch)


REWARDS: Mapping[str, Reward] = {
    TESTS: Reward(tests.grade, gold_patch, "patch"),
    "review": Reward(review.grade, review.gold, "review"),
    "test-writing": Reward(writing.grade, writing.gold, "tests"),
    "performance": Reward(performance.grade, gold_patch, "patch"),
    SIMULATED: Reward(simulated.grade, gold_patch, "patch"),
}
"""Form of the oracle -> reward; `tests` where the lists of tests are it, `simulated` where a model plays them."""


def reward_of(task: Task) -> Reward:
    """The reward of a task."""
    if task.environment == SIMULATED:
        return REWARDS[SIMULATED]
    return REWARDS[task.oracle.form if task.oracle else TESTS]


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """The score of one submission; empty is the no-op. `value` is None when our own side failed.

    Raises:
        Transient: engine, disk or network failed.
    """
    return reward_of(task).grade(task, services, submission)
