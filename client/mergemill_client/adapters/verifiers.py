"""verifiers (0.4) and prime-rl: a set of the tasks of a grading server.

verifiers finds a set by the name of a top-level module, so yours is a file `mergemill_tasks.py` with one line,
`from mergemill_client.adapters.verifiers import MergemillTaskset, __all__`::

    vf-eval mergemill-tasks --env.taskset.filters '{"kind": "bugfix"}'

A task with an image runs in a container of it, and what the agent leaves there is collected as its submission; a review
takes it from the answer. Rewards come from the grading server that the variables of `connection` name. A rollout
without one ends with an error: it is not trained on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf

from mergemill_client.adapters.connection import connect, wait_for
from mergemill_client.answers import extract_submission
from mergemill_client.environment import UnscoredError

__all__ = ["MergemillTaskset"]

COLLECT_SECONDS = 120
MAX_SUBMISSION_BYTES = 8 * 1024 * 1024
"""The largest submission that the grading server takes."""


class MergemillData(vf.TaskData):  # type: ignore[misc]
    """What the agent and the trace may have of a task."""

    kind: str = ""
    submission_path: str = ""
    collect_command: str = ""


class MergemillState(vf.State):  # type: ignore[misc]
    """State of a rollout."""

    submission: str | None = None
    """What the agent handed in, one character per byte; None until it is collected."""


class MergemillTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which tasks to load."""

    filters: dict[str, Any] = {}
    """Filters of tasks, such as `{"kind": "bugfix", "limit": 100}`."""


class MergemillTask(vf.Task[MergemillData, MergemillState]):  # type: ignore[misc]
    """A task in a container of its image."""

    NEEDS_CONTAINER = True

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Collect the agent's work."""
        command = f"mkdir -p /logs/artifacts; {self.data.collect_command}"
        made = await asyncio.wait_for(runtime.run(["bash", "-c", command], {}), COLLECT_SECONDS)
        if made.exit_code:
            raise vf.TaskError(f"the agent's work cannot be collected: {(made.stderr or made.stdout).strip()[-500:]}")
        content = await runtime.read(self.data.submission_path, max_bytes=MAX_SUBMISSION_BYTES)
        trace.state.submission = content.decode("latin-1")

    @vf.reward  # type: ignore[untyped-decorator]
    async def grade_submission(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        """Have the submission graded; the runtime has nothing to do with it."""
        del runtime
        environment = connect()
        content = trace.state.submission.encode("latin-1")
        score = await wait_for(environment.grade, str(self.data.id), self.data.kind, content)
        try:
            return environment.require_reward(score)
        except UnscoredError as error:
            raise vf.TaskError(str(error)) from error


class MergemillReviewTask(MergemillTask):
    """A review: the answer is the submission, so that any runtime will do."""

    NEEDS_CONTAINER = False

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Take the submission from the answer."""
        del runtime
        trace.state.submission = extract_submission(trace.last_reply).encode(errors="replace").decode("latin-1")


class MergemillTaskset(vf.Taskset[MergemillTask, MergemillTasksetConfig]):  # type: ignore[misc]
    """The tasks that the filters select, newest change first."""

    def load(self) -> Iterator[MergemillTask]:
        """Yield the tasks; their prompts are read one at a time."""
        environment = connect()
        for prompt in environment.iterate_prompts(**self.config.filters):
            kind = MergemillTask if prompt["image"] else MergemillReviewTask
            yield kind(build_data(prompt), self.config.task)


def build_data(prompt: dict[str, Any]) -> MergemillData:
    """Return what the agent and the trace may have of a prompt."""
    return MergemillData(
        id=prompt["task"],
        name=prompt["task"],
        prompt=prompt["messages"][0]["content"],
        image=prompt["image"],
        workdir=prompt["workdir"],
        agent_user="mergemill" if prompt["image"] else None,
        kind=prompt["kind"],
        submission_path=prompt["submission_path"],
        collect_command=prompt["collect_command"],
    )
