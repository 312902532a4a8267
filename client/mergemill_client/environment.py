"""Tasks and their rewards together: what an environment of a trainer needs of a grading server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from mergemill_client.answers import Content, choose_form, extract_submission
from mergemill_client.errors import ClientError
from mergemill_client.grader import Grader, UnreachableError
from mergemill_client.scores import GRADED, SHAPES, Score, compute_reward
from mergemill_client.tasks import open_database

log = logging.getLogger(__name__)


class UnscoredError(RuntimeError):
    """A submission that has no score after all attempts, for trainers that can only drop what raises."""


class TaskEnvironment:
    """Tasks of a server with their prompts, and rewards of what agents hand in. Threads may share it.

    Args:
        url: address of `mergemill serve`.
        token: its token.
        shape: how rewards are computed; see `compute_reward`.
        options: those of `Grader`.

    Raises:
        ClientError: there is no such shape.
    """

    def __init__(self, url: str, token: str | None = None, *, shape: str = GRADED, **options: Any) -> None:
        if shape not in SHAPES:
            raise ClientError(f"there is no reward {shape!r}; rewards: {', '.join(SHAPES)}")
        self.url, self.shape = url, shape
        self._token = token
        self.grader = Grader(url, token, **options)

    def iterate_prompts(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield what an agent is given for each task that filters select: see `load_prompt`.

        Args:
            filters: those of `TaskDatabase.tasks`, such as `kind="bugfix"`, `limit=100`; without `status` certified
                tasks are selected.

        Raises:
            ClientError: there is no such filter, or the server does not answer.
        """
        with open_database(self.url, token=self._token) as database:
            tasks = database.tasks(**{"columns": ["id"], "status": "certified", **filters})
            ids = [str(row["id"]) for row in tasks]
        for key in ids:
            yield self.load_prompt(key)

    def load_prompt(self, task: str) -> dict[str, Any]:
        """Return task, id, kind, submission, messages, image, workdir, submission_path, collect_command of one task.

        `messages` is the prompt in OpenAI's form. A task without an image holds all material in its prompt.

        Raises:
            TaskNotFoundError: there is no such task.
            ClientError: the server does not answer.
        """
        try:
            return dict(self.grader.request(f"/prompts/{quote(task, safe='')}"))
        except UnreachableError as error:
            raise ClientError(f"{self.url}: {error}") from error

    def grade(self, task: str, kind: str, submission: Content) -> Score:
        """Return the score of a submission to a task of a kind; errors as in `Grader.grade`."""
        return self.grader.grade(task, **{choose_form(kind): submission})

    def grade_answer(self, task: str, kind: str, answer: str) -> Score:
        """Return the score of the submission in a model's answer: see `extract_submission`."""
        return self.grade(task, kind, extract_submission(answer))

    def compute_reward(self, score: Score) -> float | None:
        """Return the reward of a score; None for an unscored submission."""
        return compute_reward(score, self.shape)

    def require_reward(self, score: Score) -> float:
        """Return the reward of a score, for trainers that need a number.

        Raises:
            UnscoredError: there is none; it must not become 0.
        """
        reward = self.compute_reward(score)
        if reward is None:
            raise UnscoredError(f"{score.task} is unscored: {score.infrastructure_error or score.error}")
        return reward
