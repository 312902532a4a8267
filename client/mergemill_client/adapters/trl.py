"""TRL: a reward function and a data set for GRPOTrainer, and an environment for its `environment_factory`.

::

    trainer = GRPOTrainer(model, reward_funcs=compute_rewards, train_dataset=Dataset.from_list(list(iterate_rows(...))))
    trainer = GRPOTrainer(model, environment_factory=MergemillEnvironment, train_dataset=...)

A completion without a score has the reward None. TRL (1.16) leaves it out of its group's mean and gives it the
advantage 0. TRL's own Harbor environments read the bundles of `mergemill export --format harbor`, but run the verifier
in the agent's container; here the submission is graded in containers of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from mergemill_client.adapters.connection import build_row_facts, connect, wait_for
from mergemill_client.adapters.containers import TaskContainer
from mergemill_client.answers import extract_submission
from mergemill_client.environment import TaskEnvironment


async def compute_rewards(
    prompts: Sequence[Any], completions: Sequence[Any], task: Sequence[str], kind: Sequence[str], **_: Any
) -> list[float | None]:
    """Return the reward of each completion, in its last fenced block; None for an unscored one.

    Args:
        prompts: of the trainer; not read.
        completions: texts, or conversations that end with the answer.
        task: column of the data set, as is `kind`.
        kind: of the task.
    """
    del prompts
    environment = connect()
    scores = await asyncio.gather(
        *(
            wait_for(environment.grade_answer, name, form, _get_text(completion))
            for name, form, completion in zip(task, kind, completions)
        )
    )
    return [environment.compute_reward(score) for score in scores]


def _get_text(completion: Any) -> str:
    return completion if isinstance(completion, str) else str(completion[-1].get("content") or "")


def iterate_rows(environment: TaskEnvironment, **filters: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a data set for the tasks that filters select. TRL takes a column `image` for a picture."""
    for prompt in environment.iterate_prompts(**filters):
        facts = build_row_facts(prompt)
        yield {"prompt": prompt["messages"], "task_image": facts.pop("image"), **facts}


class MergemillEnvironment:
    """One rollout: a container of the task's image with a tool `bash`, or a review that is handed in with `submit`."""

    def __init__(self) -> None:
        self._environment = connect()
        self._facts: dict[str, Any] = {}
        self._container: TaskContainer | None = None
        self._submission: str | None = None

    def reset(self, **row: Any) -> str | None:
        """Begin a rollout of a row of `iterate_rows`."""
        self._close()
        self._facts, self._submission = row, None
        if row.get("task_image"):
            self._container = TaskContainer(row["task_image"], row["workdir"])
        return None

    def bash(self, command: str) -> str:
        """Run a command in the repository and return its output.

        Args:
            command: The command for bash.

        Returns:
            Standard output and standard error.
        """
        if self._container is None:
            return "This task has no container: hand in the answer with submit."
        return self._container.run(command)

    def submit(self, answer: str) -> str:
        """Hand in the answer of a task without a container.

        Args:
            answer: The answer in the form that the task describes.

        Returns:
            That it was handed in.
        """
        self._submission = answer
        return "The answer is handed in."

    def get_reward(self) -> float | None:
        """Return the reward of what was handed in; None for an unscored submission."""
        submission = self._collect()
        self._close()
        score = self._environment.grade(self._facts["task"], self._facts["kind"], submission)
        return self._environment.compute_reward(score)

    def _collect(self) -> bytes | str:
        if self._container is None:
            answer = self._submission or ""
            return extract_submission(answer) or answer
        return self._container.collect(self._facts["collect_command"], self._facts["submission_path"])

    def _close(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None
