"""Tasks made from merged changes, for Inspect (inspect-ai 0.3).

    inspect eval mergemill_inspect/mergemill --model ...                        # Docker with compose
    inspect eval mergemill_inspect/mergemill -T sandbox=mergemill_engine ...    # a Docker engine without compose
    inspect eval mergemill_inspect/mergemill -T sandbox=none ...                # no tools: the answer is the submission

The content that the agent leaves in its sandbox is collected as the submission and graded in a fresh container of the
same image without network. A review needs neither: its answer is the submission. Without a reward the sample has an
error: its score never becomes 0.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.agent import as_solver, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from inspect_ai.tool import bash
from inspect_ai.util import (
    ComposeConfig,
    ExecResult,
    SandboxEnvironment,
    SandboxEnvironmentSpec,
    sandbox,
    sandboxenv,
    subprocess,
)
from inspect_ai.util._sandbox.compose import ComposeService
from mergemill_inspect.mergemill_reward import extract_submission, require_reward

TASKS = Path(__file__).with_name("tasks.jsonl")
ENGINE = "mergemill_engine"
AGENT_USER = "mergemill"
COMMAND_SECONDS = 180
HIDDEN = ("prompt", "instruction", "verifier", "gold_submission", "collect_command")
"""Columns that a sample's metadata does not have: the prompt is its input, the agent must not see the others."""


@task
def mergemill(split: str | None = None, kinds: str | None = None, sandbox: str = "docker") -> Task:
    """Return the tasks of a split (`train`, `test`; default both) and of some kinds (with commas; default all)."""
    wanted = kinds.split(",") if kinds else None
    samples = [
        build_sample(row, sandbox)
        for row in iterate_rows()
        if split in (None, row["split"]) and (wanted is None or row["kind"] in wanted)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="mergemill"),
        solver=generate() if sandbox == "none" else work_or_answer(),
        scorer=verify_submission(sandbox),
    )


@solver
def work_or_answer() -> Solver:
    """Solve a sample by an agent with a shell in its sandbox; by a single answer where it has none."""
    work, answer = as_solver(react(tools=[bash(timeout=COMMAND_SECONDS, user=AGENT_USER)])), generate()

    async def solve(state: TaskState, generate_answer: Generate) -> TaskState:
        return await (work if state.metadata["image"] else answer)(state, generate_answer)

    return solve


def build_sample(row: dict[str, Any], kind: str) -> Sample:
    """Return the sample of a row with a sandbox of that kind."""
    if not row["image"]:
        spec = None
    elif kind == "docker":
        service = ComposeService(
            image=row["image"], command="tail -f /dev/null", init=True, working_dir=row["workdir"], cpus=row["cpus"]
        )
        spec = SandboxEnvironmentSpec("docker", ComposeConfig(services={"default": service}))
    else:
        spec = None if kind == "none" else SandboxEnvironmentSpec(kind)
    metadata = {name: value for name, value in row.items() if name not in HIDDEN}
    return Sample(id=row["instance_id"], input=row["prompt"], target="1", metadata=metadata, sandbox=spec)


@scorer(metrics=[accuracy(), stderr()])
def verify_submission(kind: str) -> Scorer:
    """Score a sample by its verifier."""

    async def score(state: TaskState, target: Target) -> Score:
        row = read_row(str(state.sample_id))
        is_answer = kind == "none" or not row["image"]
        submission = extract_submission(state.output.completion) if is_answer else await collect_submission(row)
        reward = await asyncio.to_thread(require_reward, row, submission)
        answer = submission if isinstance(submission, str) else submission.decode(errors="replace")
        return Score(value=reward, answer=answer)

    return score


async def collect_submission(row: dict[str, Any]) -> bytes:
    """Return the content that the agent leaves in its sandbox."""
    command = f"mkdir -p /logs/artifacts; {row['collect_command']}"
    made = await sandbox().exec(["bash", "-c", command], user="root", timeout=COMMAND_SECONDS)
    if not made.success:
        raise RuntimeError(f"the agent's work cannot be collected: {made.stderr.strip()[-500:]}")
    there = await sandbox().exec(["test", "-f", row["submission_path"]], user="root")
    return await sandbox().read_file(row["submission_path"], text=False) if there.success else b""


def iterate_rows() -> Iterator[dict[str, Any]]:
    """Yield all rows."""
    with TASKS.open("rb") as file:
        for line in file:
            yield json.loads(line)


def read_row(name: str) -> dict[str, Any]:
    """Return the row of a task."""
    return next(row for row in iterate_rows() if row["instance_id"] == name)


@sandboxenv(name=ENGINE)
class EngineSandbox(SandboxEnvironment):
    """Container of the sample's image on a Docker engine without compose; files are copied, nothing is mounted."""

    def __init__(self, container: str, workdir: str) -> None:
        super().__init__()
        self.container, self.workdir = container, workdir

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Start the container."""
        limits = ["--cpus", str(metadata["cpus"]), "--memory", f"{metadata['memory_mb']}m"]
        options = ["--detach", "--init", *limits, "--shm-size", f"{metadata['memory_mb'] // 2}m"]
        started = await subprocess(
            ["docker", "run", *options, "--entrypoint", "sleep", metadata["image"], "infinity"], timeout=600
        )
        if not started.success:
            raise RuntimeError(started.stderr.strip())
        return {"default": cls(started.stdout.strip().split("\n")[-1], metadata["workdir"])}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        """Remove the container."""
        for environment in environments.values():
            name = environment.as_type(EngineSandbox).container
            await subprocess(["docker", "rm", "--force", "--volumes", name], timeout=120)

    async def exec(  # noqa: PLR0917 - Inspect's signature
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002 - Inspect's name
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a command in the container."""
        return await subprocess(
            [*self._compose_exec(cwd, env, user), *cmd], input=input, timeout=timeout, concurrency=concurrency
        )

    def _compose_exec(
        self, cwd: str | None = None, env: dict[str, str] | None = None, user: str | None = None
    ) -> list[str]:
        folder = str(Path(self.workdir) / (cwd or "."))
        variables = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
        as_user = ["--user", user] if user else []
        return ["docker", "exec", "--interactive", "--workdir", folder, *as_user, *variables, self.container]

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file and its parent folders."""
        script = 'mkdir -p "$(dirname "$1")" && cat > "$1"'
        done = await subprocess([*self._compose_exec(), "sh", "-c", script, "sh", file], input=contents)
        if not done.success:
            raise OSError(done.stderr.strip())

    async def read_file(self, file: str, text: bool = True) -> Any:
        """Return the content of a file."""
        if (await self.exec(["test", "-e", file])).returncode:
            raise FileNotFoundError(file)
        done = await subprocess([*self._compose_exec(), "cat", file], text=False)
        if not done.success:
            raise OSError(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode() if text else done.stdout
