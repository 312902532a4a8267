"""OpenEnv: an environment whose actions are shell commands and submissions, and its HTTP server.

::

    uvicorn --factory mergemill_client.adapters.openenv:create_application --port 8000

`reset(task=NAME)` gives the prompt. An action with `command` runs it in a container of the task's image; one with
`submit` ends the episode: what the container holds, or the `answer` of a review, is graded. `reward` is None where
there is none; OpenEnv hands it on as null.
"""

from __future__ import annotations

import contextlib
from typing import Any

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from mergemill_client.adapters.connection import connect
from mergemill_client.adapters.containers import TaskContainer
from mergemill_client.answers import Content, extract_submission
from mergemill_client.errors import ClientError

MAX_EPISODES = 64


class MergemillAction(Action):  # type: ignore[misc]
    """A command, or the end of the episode."""

    command: str = ""
    submit: bool = False
    answer: str = ""
    """Submission to a task without a container."""


class MergemillObservation(Observation):  # type: ignore[misc]
    """Prompt after a reset, output after a command, explanation of the score at the end."""

    messages: list[dict[str, str]] = []
    output: str = ""
    resolved: bool = False
    infrastructure_error: str | None = None
    """Why there is no reward."""


class MergemillOpenEnvironment(Environment):  # type: ignore[misc]
    """One episode at a time, with a container of its own."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._environment = connect()
        self._prompt: dict[str, Any] = {}
        self._container: TaskContainer | None = None
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, task: str = "", **_: Any
    ) -> MergemillObservation:
        """Begin an episode of a task; there is nothing that a seed could change."""
        del seed
        self.close()
        if not task:
            raise ClientError("reset needs the name of a task")
        self._prompt = self._environment.load_prompt(task)
        self._state = State(episode_id=episode_id, step_count=0, task=self._prompt["task"])
        if self._prompt["image"]:
            self._container = TaskContainer(self._prompt["image"], self._prompt["workdir"])
        return MergemillObservation(messages=self._prompt["messages"])

    def step(self, action: MergemillAction, timeout_s: float | None = None, **_: Any) -> MergemillObservation:
        """Run a command, or grade what was done and end the episode."""
        if not self._prompt:
            raise ClientError("step comes after reset")
        self._state.step_count += 1
        if not action.submit:
            return MergemillObservation(output=self._run(action.command, timeout_s or 300.0))
        score = self._environment.grade(self._prompt["task"], self._prompt["kind"], self._collect(action.answer))
        self.close()
        return MergemillObservation(
            done=True,
            reward=self._environment.compute_reward(score),
            output=score.explanation,
            resolved=score.resolved,
            infrastructure_error=score.infrastructure_error,
        )

    def _run(self, command: str, seconds: float) -> str:
        if self._container is None:
            return "This task has no container: submit the answer."
        return self._container.run(command, seconds=seconds)

    def _collect(self, answer: str) -> Content:
        if self._container is None:
            return extract_submission(answer) or answer
        return self._container.collect(self._prompt["collect_command"], self._prompt["submission_path"])

    @property
    def state(self) -> State:
        """Episode, its task and the number of steps."""
        return self._state

    def close(self) -> None:
        """Remove the container."""
        if self._container is not None:
            with contextlib.suppress(RuntimeError):
                self._container.close()
            self._container = None


def create_application() -> Any:
    """Return the HTTP application of the environment; the grading server as in `connection.connect`."""
    return create_fastapi_app(
        MergemillOpenEnvironment, MergemillAction, MergemillObservation, max_concurrent_envs=MAX_EPISODES
    )
