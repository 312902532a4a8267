"""Interface that a scaffold is: four hooks around an agent, and the services that they may use.

The driver calls `agent_preprocess`, `agent_run`, `agent_postprocess` and `calculate_reward` in this order. Whatever can
be pointed at a base URL is a scaffold: requests are recorded by the gateway, not by the agent. `CommandScaffold` is the
base of those that run a program in the task's container; a scaffold of one's own is a subclass in a module of its own,
named on the command line as MODULE:CLASS.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from backends.sandbox.base import ContainerSession
from backends.sandbox.execution import ExecResult
from samplers.instructions.instruction import Instruction
from samplers.programs.program import Program
from taskdb.records import Score, Task

PROMPT_FILE = "/run/mergemill/prompt.md"
"""File with the instruction, in the container."""
AGENT_FOLDER = "/opt/mergemill/agent"
"""Folder of configuration and state of an agent's program, in the container."""
MISSING_COMMAND = 127
"""Exit code of a shell for a command that does not exist."""


@dataclass(frozen=True, kw_only=True)
class GatewayEndpoint:
    """Addresses of the gateway for a rollout, without `/v1` at their end."""

    container_url: str
    """For programs in the container."""
    host_url: str
    """For scaffolds that run in this process."""
    secret: str
    """Sent as the API key, too: programs refuse an empty key."""


@dataclass(frozen=True, kw_only=True)
class AgentLimits:
    """Limits of a rollout: wall time in seconds, and turns, which the gateway counts where the scaffold does not."""

    seconds: float
    turns: int


@dataclass(frozen=True, kw_only=True)
class AgentEnd:
    """How an agent ended. `reason` is None where it ended by itself, else a word such as `time-limit`."""

    reason: str | None = None
    detail: str = ""
    output: str = ""
    """Text that its program printed."""


@dataclass(kw_only=True)
class AgentSession:
    """A rollout as a scaffold sees it."""

    task: Task
    instruction: Instruction
    shell: ContainerSession
    """The task's container, whose working directory is the repository."""
    gateway: GatewayEndpoint
    model: str
    sampling: Mapping[str, Any]
    limits: AgentLimits
    make_gold: Callable[[], bytes]
    """Returns the submission that must earn 1; for the oracle alone."""
    collect_submission: Callable[[], bytes]
    """Reads the submission from the container."""
    note_step: Callable[[], None] = field(default=lambda: None)
    """To be called after each step by scaffolds that run in this process; others are observed."""


class Scaffold(ABC):
    """Base of all scaffolds. An object serves many rollouts at once, so it has no state of a rollout."""

    name: ClassVar[str]
    version: ClassVar[str]
    """Of the program, or of the loop; part of a rollout's identity."""
    program: ClassVar[Program | None] = None
    """Installed before the first rollout; None where nothing runs in the container."""
    uses_model: ClassVar[bool] = True

    def agent_preprocess(self, session: AgentSession) -> None:  # noqa: B027 - most have nothing to prepare
        """Prepare the container.

        Raises:
            Transient: the engine failed.
        """

    @abstractmethod
    def agent_run(self, session: AgentSession) -> AgentEnd:
        """Run the agent until it ends or a limit is reached.

        Raises:
            Transient: the engine failed.
        """

    def agent_postprocess(self, session: AgentSession) -> bytes:
        """Return the submission."""
        return session.collect_submission()

    def calculate_reward(self, task: Task, submission: bytes, grade: Callable[[bytes], Score]) -> Score:
        """Return the score of the submission, when the container is gone. `grade` uses fresh containers."""
        del task
        return grade(submission)


class CommandScaffold(Scaffold):
    """Scaffold that is a command in the task's container, non-interactive."""

    @abstractmethod
    def build_command(self, session: AgentSession) -> str:
        """Return the line of Bash that runs the agent on the instruction in PROMPT_FILE."""

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return environment variables of the command: where the model is, above all."""
        return {"OPENAI_BASE_URL": f"{session.gateway.container_url}/v1", "OPENAI_API_KEY": session.gateway.secret}

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return files to write before: absolute path -> content."""
        del session
        return {}

    def agent_preprocess(self, session: AgentSession) -> None:
        """Write the instruction and the files."""
        session.shell.write_files({PROMPT_FILE: session.instruction.text.encode(), **self.build_files(session)})

    def agent_run(self, session: AgentSession) -> AgentEnd:
        """Run the command."""
        exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in self.build_env(session).items())
        command = f"{exports}{self.build_command(session)}"
        result = session.shell.run(command, seconds=session.limits.seconds)
        if result.killed_by:  # whatever the program printed as it was killed
            return AgentEnd(reason=f"{result.killed_by}-limit", output=result.output)
        return self.describe_end(result)

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how the agent ended, from the result of its command, which no limit ended."""
        if result.exit_code == MISSING_COMMAND:
            return AgentEnd(
                reason="missing-program", detail=" ".join(result.output.split())[-200:], output=result.output
            )
        if result.exit_code:
            last = " ".join(result.output.split())[-200:]
            return AgentEnd(reason="agent-failed", detail=f"exit code {result.exit_code}: {last}", output=result.output)
        return AgentEnd(output=result.output)
