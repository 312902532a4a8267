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
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from backends.sandbox.base import ContainerSession
from backends.sandbox.execution import ExecResult
from samplers.programs.program import Program
from samplers.subjects.subject import Subject
from taskdb.records import Score

PROMPT_FILE = "/run/mergemill/prompt.md"
"""File with the instruction, in the container."""
SYSTEM_FILE = "/run/mergemill/system.md"
"""File with the text that is added to the system prompt, in the container; absent where there is none."""
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

    subject: Subject
    shell: ContainerSession
    """The subject's container, whose working directory is the repository."""
    gateway: GatewayEndpoint
    model: str
    sampling: Mapping[str, Any]
    limits: AgentLimits
    system: str
    """Text to add to the system prompt; empty for none."""
    make_gold: Callable[[], bytes]
    """Returns the submission that must earn 1; for the oracle alone."""
    collect_submission: Callable[[], bytes]
    """Reads the submission from the container."""
    observe_state: Callable[[], None] = field(default=lambda: None)
    """To be called before each request by scaffolds that run in this process; others are observed as they run."""


class SubjectSession(Protocol):
    """Part of a session that all subjects have."""

    @property
    def collect_submission(self) -> Callable[[], bytes]:
        """Reads the submission."""
        ...


SessionT = TypeVar("SessionT", bound=SubjectSession)


class SampledScaffold(Protocol):
    """Scaffold as a plan and its rollout need it, whatever its sessions are."""

    @property
    def name(self) -> str:
        """Name."""
        ...

    @property
    def version(self) -> str:
        """Version of its program or loop; part of a rollout's identity."""
        ...

    @property
    def uses_model(self) -> bool:
        """Whether it uses a model."""
        ...

    @property
    def program(self) -> Program | None:
        """Program in the container; None where nothing of it runs there."""
        ...

    def agent_preprocess(self, session: Any) -> None:
        """See ScaffoldHooks."""
        ...

    def agent_run(self, session: Any) -> AgentEnd:
        """See ScaffoldHooks."""
        ...

    def agent_postprocess(self, session: Any) -> bytes:
        """See ScaffoldHooks."""
        ...

    def calculate_reward(self, subject: Subject, submission: bytes, grade: Callable[[bytes], Score]) -> Score:
        """See ScaffoldHooks."""
        ...


class ScaffoldHooks(ABC, Generic[SessionT]):
    """Hooks of scaffolds of any subjects. An object serves many rollouts at once, so it has no state of a rollout."""

    program: ClassVar[Program | None] = None
    """Installed before the first rollout; None where nothing runs in the container."""

    def agent_preprocess(self, session: SessionT) -> None:
        """Prepare the episode.

        Raises:
            Transient: the engine failed.
        """

    @abstractmethod
    def agent_run(self, session: SessionT) -> AgentEnd:
        """Run the agent until it ends or a limit is reached.

        Raises:
            Transient: the engine failed.
        """

    def agent_postprocess(self, session: SessionT) -> bytes:
        """Return the submission."""
        return session.collect_submission()

    def calculate_reward(self, subject: Subject, submission: bytes, grade: Callable[[bytes], Score]) -> Score:
        """Return the score of the submission, when the container is gone. `grade` uses fresh containers.

        It is not called for subjects whose environment scores the open episode.
        """
        del subject
        return grade(submission)


class Scaffold(ScaffoldHooks[AgentSession]):
    """Base of all scaffolds that work in a container."""

    name: ClassVar[str]
    version: ClassVar[str]
    """Of the program, or of the loop; part of a rollout's identity."""
    uses_model: ClassVar[bool] = True
    takes_system: ClassVar[bool] = False
    """Whether it adds the session's text to its system prompt; a rollout with such a text is refused elsewhere."""


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
        """Write the instruction, the text for the system prompt, and the files."""
        texts = {PROMPT_FILE: session.subject.instruction.encode()}
        if session.system:
            texts[SYSTEM_FILE] = session.system.encode()
        session.shell.write_files({**texts, **self.build_files(session)})

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
