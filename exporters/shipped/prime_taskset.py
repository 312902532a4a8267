"""Tasks made from merged changes, for verifiers (0.4) and prime-rl.

    vf-validate mergemill-tasks --runtime.type docker

The agent works in a container of the task's image. The content that it leaves is collected as the submission and graded
in a fresh container of the same image without network; `tasks.jsonl` holds the verifiers, which never reach a trace.
Without a reward the rollout fails: it never becomes 0.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from mergemill_tasks.mergemill_reward import extract_submission, read_gold, require_reward
from verifiers.v1.utils import loaders

TASKS = Path(__file__).with_name("tasks.jsonl")
TASKSET_ID = "mergemill-tasks"
COLLECT_SECONDS = 120
MAX_SUBMISSION_BYTES = 64 * 1024 * 1024
HIDDEN = ("verifier", "gold_submission")
"""Columns that neither the agent nor a trace may have."""


class MergemillData(vf.TaskData):
    """A row of `tasks.jsonl` without its verifier."""

    facts: dict[str, Any] = {}
    """Repository, kind, licence, strength and the other facts of the row."""


class MergemillState(vf.State):
    """State of a rollout."""

    submission: str | None = None
    """Content that the agent handed in, a character per byte; None until it is collected."""


class MergemillTasksetConfig(vf.TasksetConfig):
    """Which tasks to load."""

    split: str | None = None
    """`train` or `test`; None: both."""
    kinds: list[str] = []
    """Kinds of tasks; empty: all."""


class MergemillTask(vf.Task[MergemillData, MergemillState]):
    """A task in a container of its image."""

    NEEDS_CONTAINER = True

    @property
    def key(self) -> str:
        """Return the task's name."""
        return str(self.data.id)

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Collect the agent's work."""
        row = read_row(str(self.data.id))
        trace.state.submission = (await self._collect(row, runtime)).decode("latin-1")

    async def _collect(self, row: dict[str, Any], runtime: vf.Runtime) -> bytes:
        made = await asyncio.wait_for(
            runtime.run(["bash", "-c", f"mkdir -p /logs/artifacts; {row['collect_command']}"], {}), COLLECT_SECONDS
        )
        if made.exit_code:
            raise vf.TaskError(f"the agent's work cannot be collected: {(made.stderr or made.stdout).strip()[-500:]}")
        there = await runtime.run(["test", "-f", row["submission_path"]], {})
        return b"" if there.exit_code else await runtime.read(row["submission_path"], max_bytes=MAX_SUBMISSION_BYTES)

    @vf.reward
    async def grade_submission(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        """Grade the submission in a fresh container."""
        return await grade(read_row(str(self.data.id)), trace.state.submission.encode("latin-1"), runtime)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Hand in the gold submission and return whether it earns 1."""
        row = read_row(str(self.data.id))
        gold = read_gold(row)
        if row["submission_path"].endswith(".patch"):
            await runtime.write("/tmp/gold.patch", gold)
            applied = await runtime.run(
                ["git", "-C", row["workdir"], "apply", "--whitespace=nowarn", "/tmp/gold.patch"], {}
            )
            if applied.exit_code:
                raise vf.TaskError(f"the gold patch does not apply: {applied.stderr.strip()[-500:]}")
        else:
            await runtime.run(["mkdir", "-p", str(Path(row["submission_path"]).parent)], {})
            await runtime.write(row["submission_path"], gold)
        return await grade(row, await self._collect(row, runtime), runtime) == 1


class MergemillReviewTask(MergemillTask):
    """A review: the answer is the submission, and it is graded here, so that any runtime will do."""

    NEEDS_CONTAINER = False

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Take the submission from the answer."""
        trace.state.submission = extract_submission(trace.last_reply).encode(errors="replace").decode("latin-1")

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Hand in the known defects and return whether they earn 1."""
        row = read_row(str(self.data.id))
        return await grade(row, read_gold(row), runtime) == 1


class MergemillTaskset(vf.Taskset[MergemillTask, MergemillTasksetConfig]):
    """The tasks of this package in the order of their names."""

    def load(self) -> Iterator[MergemillTask]:
        """Yield the tasks; their rows are read one at a time."""
        for row in iterate_rows():
            is_wanted = self.config.split in (None, row["split"])
            if is_wanted and (not self.config.kinds or row["kind"] in self.config.kinds):
                kind = MergemillTask if row["image"] else MergemillReviewTask
                yield kind(build_data(row), self.config.task)


def load_environment(config: vf.EnvConfig | None = None) -> vf.Env:
    """Return the environment of these tasks, with an agent; `config` replaces its settings."""
    chosen = config if config is not None else {"taskset": {"id": TASKSET_ID}}
    return loaders.load_environment(loaders.resolve_env_config(chosen))


def build_data(row: dict[str, Any]) -> MergemillData:
    """Return the columns that the agent and the trace may have of a row."""
    columns = ("prompt", "instruction", "problem_statement", *HIDDEN)
    return MergemillData(
        id=row["instance_id"],
        name=row["instance_id"],
        prompt=row["prompt"],
        image=row["image"] or None,
        workdir=row["workdir"] or None,
        agent_user="mergemill" if row["image"] else None,
        resources=vf.TaskResources(cpu=row["cpus"], memory=row["memory_mb"] / 1024),
        timeout=vf.TaskTimeout(finalize=COLLECT_SECONDS + 60, scoring=3 * (row["verifier_seconds"] + 60)),
        facts={name: value for name, value in row.items() if name not in columns},
    )


async def grade(row: dict[str, Any], submission: bytes, runtime: vf.Runtime) -> float:
    """Return the reward of a submission, from a fresh container of the agent's kind; a review needs none."""
    if not row["image"]:
        return await asyncio.to_thread(require_reward, row, submission)
    if runtime.type in ("docker", "podman"):
        return await asyncio.to_thread(require_reward, row, submission, runtime.type)
    raise vf.TaskError(f"{runtime.type}: submissions are graded by docker or podman only")


def iterate_rows() -> Iterator[dict[str, Any]]:
    """Yield all rows."""
    with TASKS.open("rb") as file:
        for line in file:
            yield json.loads(line)


@cache
def _find_offsets() -> dict[str, int]:
    """Return task name -> offset of its line."""
    offsets, start = {}, 0
    with TASKS.open("rb") as file:
        for line in file:
            offsets[json.loads(line)["instance_id"]] = start
            start += len(line)
    return offsets


def read_row(name: str) -> dict[str, Any]:
    """Return the row of a task."""
    with TASKS.open("rb") as file:
        file.seek(_find_offsets()[name])
        return json.loads(file.readline())
