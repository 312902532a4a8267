"""Interface that a scaffold is: four hooks around an agent, and the services that they may use.

The driver calls `agent_preprocess`, `agent_run`, `agent_postprocess` and `calculate_reward` in this order. Whatever can
be pointed at a base URL is a scaffold: requests are recorded by the gateway, not by the agent. `CommandScaffold` is the
base of those that run a program in the task's container; a scaffold of one's own is a subclass in a module of its own,
named on the command line as MODULE:CLASS.
"""

from __future__ import annotations

import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from backends.sandbox.base import ContainerSession
from backends.sandbox.execution import ExecResult
from evaluation.instructions.submission import BrokenInstruction
from samplers.context.rules import ContextRule
from samplers.programs.program import Program
from samplers.subjects.guidance import Guidance
from samplers.subjects.subject import Subject
from taskdb.records import Score
from taskdb.records.instructions import InstructionSource

PROMPT_FILE = "/run/mergemill/prompt.md"
"""File with the instruction, in the container."""
SYSTEM_FILE = "/run/mergemill/system.md"
"""File with the text that is added to the system prompt, in the container; absent where there is none."""
REMINDER_FILE = "/run/mergemill/reminder.md"
"""File with the text that is added to each message of the user, in the container; absent where there is none."""
TURN_FILE = "/run/mergemill/turn-{number}.md"
"""Files with the messages of the user after the first, in the container, from number 2."""
AGENT_FOLDER = "/opt/mergemill/agent"
"""Folder of configuration and state of an agent's program, in the container."""
Places = Mapping[InstructionSource, str]
"""Source that a scaffold delivers -> where its text goes, in Markdown."""
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
    guidance: Guidance
    """Instructions of the subject besides its statement, and the text that the plan adds to the system prompt."""
    add_repository_text: Callable[[str, str], str]
    """Appends a text to a file of the repository, named by its path in the working directory, and returns what the file
    has then; see RolloutContainer."""
    make_gold: Callable[[], bytes]
    """Returns the submission that must earn 1; for the oracle alone."""
    collect_submission: Callable[[], bytes]
    """Reads the submission from the container."""
    observe_state: Callable[[], None] = field(default=lambda: None)
    """To be called before each request by scaffolds that run in this process; others are observed as they run."""
    list_broken: Callable[[bytes], Sequence[BrokenInstruction]] = field(default=lambda _submission: ())
    """Returns the instructions that a submission broke."""
    may_continue: bool = False
    """Whether a further message of the user may follow after the agent has ended."""
    conversation: Any = None
    """Conversation that a scaffold in this process keeps for that."""


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
    def delivers(self) -> frozenset[InstructionSource]:
        """Sources from which it gives instructions to its model."""
        ...

    @property
    def continues(self) -> bool:
        """Whether it can go on with its conversation after it has ended."""
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

    def agent_continue(self, session: Any, message: str) -> AgentEnd:
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
    delivers: ClassVar[frozenset[InstructionSource]] = frozenset()
    """Sources from which it gives the session's instructions to its model; a subject with others is refused."""
    continues: ClassVar[bool] = False
    """Whether it can go on with its conversation after it has ended."""

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

    def agent_continue(self, session: SessionT, message: str) -> AgentEnd:
        """Send a further message of the user to the agent that has ended, and run it again until it ends.

        Raises:
            Transient: the engine failed.
        """
        del session, message
        raise NotImplementedError(f"{type(self).__name__} cannot go on with its conversation")

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
    version: str
    """Of the program, or of the loop; part of a rollout's identity."""
    uses_model: ClassVar[bool] = True
    places: ClassVar[Places] = {}
    repository_file: ClassVar[str] = ""
    """File of the repository that it reads by itself, as a path in the working directory; empty for none."""
    memory_file: ClassVar[str] = ""
    """Absolute path of the file that memory is written to as the container starts; empty where a hook writes it."""

    def with_context(self, context: ContextRule) -> Scaffold | None:
        """Return this scaffold with a rule that clears its history; None for one that manages its history itself."""
        del context
        return None


class CommandScaffold(Scaffold):
    """Scaffold that is a command in the task's container, non-interactive."""

    @abstractmethod
    def build_command(self, session: AgentSession) -> str:
        """Return the line of Bash that runs the agent on the instruction in PROMPT_FILE."""

    def build_turn_commands(self, session: AgentSession) -> Sequence[str]:
        """Return a line for each further message of the user that goes on with the conversation.

        There are none where the command itself sends these messages.
        """
        del session
        return ()

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return environment variables of the command: where the model is, above all."""
        return {"OPENAI_BASE_URL": f"{session.gateway.container_url}/v1", "OPENAI_API_KEY": session.gateway.secret}

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return files to write before: absolute path -> content."""
        del session
        return {}

    def agent_preprocess(self, session: AgentSession) -> None:
        """Write the instruction, the texts of the guidance, and the files."""
        guidance = session.guidance
        texts = {
            PROMPT_FILE: session.subject.instruction,
            SYSTEM_FILE: guidance.system,
            REMINDER_FILE: guidance.reminder,
        }
        texts |= dict(zip(list_turn_files(guidance), guidance.turns, strict=True))
        files = {path: text.encode() for path, text in texts.items() if text}
        session.shell.write_files({**files, **self.build_files(session)})
        if guidance.repository:
            session.add_repository_text(self.repository_file, guidance.repository)

    def agent_run(self, session: AgentSession) -> AgentEnd:
        """Run the command, and those of further turns as long as the agent ends by itself."""
        exports = self._render_exports(session)
        deadline = time.monotonic() + session.limits.seconds
        outputs, end = [], AgentEnd()
        for command in (self.build_command(session), *self.build_turn_commands(session)):
            result = session.shell.run(f"{exports}{command}", seconds=max(1.0, deadline - time.monotonic()))
            outputs.append(result.output)
            end = self._describe_result(result)
            if end.reason is not None:
                break
        return replace(end, output="\n".join(outputs))

    def agent_continue(self, session: AgentSession, message: str) -> AgentEnd:
        """Run the command that goes on with the last conversation."""
        session.guidance = replace(session.guidance, turns=(*session.guidance.turns, message))
        session.shell.write_files({list_turn_files(session.guidance)[-1]: message.encode()})
        command = f"{self._render_exports(session)}{self.build_turn_commands(session)[-1]}"
        return self._describe_result(session.shell.run(command, seconds=session.limits.seconds))

    def _render_exports(self, session: AgentSession) -> str:
        return "".join(f"export {name}={shlex.quote(value)}; " for name, value in self.build_env(session).items())

    def _describe_result(self, result: ExecResult) -> AgentEnd:
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


def list_turn_files(guidance: Guidance) -> list[str]:
    """Return the files with the messages of the user after the first, in order."""
    return [TURN_FILE.format(number=number) for number, _ in enumerate(guidance.turns, 2)]
