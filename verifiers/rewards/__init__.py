"""Rewards of submissions: by test lists, or by the task's own oracle.

`REWARDS` lists all of them. A reward also returns the submission that must earn 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.services import Services
from core.errors import InputError
from taskdb.records import Score, Task
from verifiers import grade as tests
from verifiers.rewards import instructions, performance, review, simulated, structure, writing

TESTS, WRITING, SIMULATED, INSTRUCTIONS = "tests", "test-writing", "simulated", "instructions"
MAX_SUBMISSION_BYTES = 64 * 1024 * 1024
"""A larger submission earns 0 without being evaluated."""


@dataclass(frozen=True)
class Reward:
    """Grading function of an oracle, and the function that returns the submission that must earn 1."""

    grade: Callable[[Task, Services, bytes], Score]
    make_gold: Callable[[Task, Services], bytes]
    submission: str
    """Option of `mergemill grade` for its submissions: `patch`, `tests`, `review` or `rollout`."""


def load_gold_patch(task: Task, services: Services) -> bytes:
    """Return the change's gold patch."""
    return services.artifacts.get(task.gold_patch)


REWARDS: Mapping[str, Reward] = {
    TESTS: Reward(tests.grade, load_gold_patch, "patch"),
    "review": Reward(review.grade, review.make_gold_review, "review"),
    WRITING: Reward(writing.grade, writing.load_gold_tests, "tests"),
    "performance": Reward(performance.grade, load_gold_patch, "patch"),
    "refactoring": Reward(structure.grade, load_gold_patch, "patch"),
    "dependency-migration": Reward(structure.grade, load_gold_patch, "patch"),
    INSTRUCTIONS: Reward(instructions.grade, instructions.load_dutiful, "rollout"),
    SIMULATED: Reward(simulated.grade, load_gold_patch, "patch"),
}
"""Form of the oracle -> reward; `tests` for test lists, `simulated` for test results simulated by a model."""


def select_reward(task: Task) -> Reward:
    """Return the reward of a task.

    Raises:
        InputError: it is as it was published, and has no environment.
    """
    if task.environment == "imported":
        raise InputError(
            f"{task.name} is imported and was not verified",
            advice=f"mergemill run {task.source} builds and verifies it",
        )
    if task.environment == SIMULATED:
        return REWARDS[SIMULATED]
    return REWARDS[task.oracle.form if task.oracle else TESTS]


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """Return the score of a submission; empty is the no-op. `value` is None after an infrastructure error.

    Raises:
        Transient: engine, disk or network failed.
    """
    if len(submission) > MAX_SUBMISSION_BYTES:
        return Score(
            task=task.name,
            value=0.0,
            resolved=False,
            f2p_rate=0.0,
            p2p_rate=0.0,
            explanation=f"the submission has more than {MAX_SUBMISSION_BYTES} bytes",
        )
    return select_reward(task).grade(task, services, submission)
