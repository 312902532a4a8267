"""An episode of the `swe` pack: its tools, on a workspace.

All but the output of simulated programs is answered by code: by the real programs of the session, on the true files.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, Self

import jsonschema

from languages.base import DEFAULT_TEST_COMMAND
from languages.registry import LANGUAGES
from simulators.domains.pack import load_pack
from simulators.swe.execution import ExecutionSimulator, SweTask, shorten
from simulators.swe.workspace import (
    WORKDIR,
    LostWorkspaceError,
    OutsideError,
    TreeOpener,
    Workspace,
    WorkspaceHost,
    open_workspace,
)

PACK = "swe"
ENVIRONMENT = "simulated"
COMMAND_SECONDS = 600.0
"""Time of a command, that of the model included."""
MAX_FILE_LINES = 2000


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """Result of a step.

    Attributes:
        text: the text that the agent reads.
        simulated: calls of programs in this step that the simulator answered; 0 where code alone did.
        done: whether the episode has ended.
    """

    text: str
    simulated: int = 0
    done: bool = False


@dataclass(kw_only=True)
class EpisodeCounts:
    """Steps of an episode that code answered alone, and those with simulated programs, with how many of these."""

    code: int = 0
    simulated: int = 0
    programs: int = 0


class ToolError(Exception):
    """A call that cannot be carried out; the message is the text that the agent reads."""


class SweEpisode:
    """An episode; a context manager, to be used by a single thread. `reset` opens it, and opens it again.

    Args:
        task: the view that the simulator is given.
        statement: the problem statement.
        host: sandbox and limits.
        tree: tree that opens the tar of the base tree (`simulators.swe.workspace.TreeOpener`).
        simulator: simulator that answers for programs.
    """

    environment = ENVIRONMENT

    def __init__(
        self, task: SweTask, statement: str, host: WorkspaceHost, tree: TreeOpener, simulator: ExecutionSimulator
    ) -> None:
        self.task = task
        self.counts = EpisodeCounts()
        self.is_done = False
        self._statement = statement
        self._host, self._tree, self._simulator = host, tree, simulator
        self._pack = load_pack(PACK)
        self._stack = contextlib.ExitStack()
        self._opened: Workspace | None = None
        self._submission: bytes | None = None
        self._tools: Mapping[str, Callable[[Workspace, Mapping[str, Any]], str]] = {
            "shell": self._shell,
            "read": self._read,
            "edit": self._edit,
            "search": self._search,
            "run_tests": self._run_tests,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Tools of the agent, `{name, description, parameters}`."""
        return [dict(tool) for tool in self._pack.tools.values()]

    @property
    def policy(self) -> str:
        """The agent's system prompt."""
        return self._pack.policy

    def reset(self) -> StepResult:
        """Open a fresh workspace and return the task.

        Raises:
            Transient, InputError: the sandbox or the tree failed.
        """
        self._stack.close()
        self.counts, self.is_done, self._submission = EpisodeCounts(), False, None
        self._opened = self._stack.enter_context(
            open_workspace(
                self._host, self._tree, lambda workspace, call: self._simulator.answer(self.task, workspace, call)
            )
        )
        return StepResult(text=self._statement)

    def step(self, tool: str, arguments: Mapping[str, Any]) -> StepResult:
        """Call a tool and return the text that it gives; a wrong call gives an error text.

        Raises:
            RuntimeError: the episode was not opened, or has ended.
            Transient, InputError: the sandbox failed, or the simulator's endpoint did.
        """
        workspace = self._require_workspace()
        if self.is_done:
            raise RuntimeError("the episode has ended")
        before = workspace.n_simulated
        try:
            self._check_call(tool, arguments)
            if tool == "submit":
                self.submit()
                return StepResult(text="submitted", done=True)
            text = self._tools[tool](workspace, arguments)
        except ToolError as error:
            text = f"error: {error}"
        except OutsideError as error:
            text = f"error: {error} is outside of the repository"
        except LostWorkspaceError as error:
            text = f"error: the workspace is damaged: {error}"
        simulated = workspace.n_simulated - before
        self.counts.programs += simulated
        self.counts.simulated += simulated > 0
        self.counts.code += not simulated
        return StepResult(text=text, simulated=simulated)

    def diff(self) -> bytes:
        """Return the patch from the base tree to the files as they are; empty where no repository is left.

        Raises:
            RuntimeError: the episode was not opened.
        """
        try:
            return self._require_workspace().diff()
        except LostWorkspaceError:
            return b""

    def submit(self) -> bytes:
        """End the episode and return its submission, a patch."""
        if self._submission is None:
            self._submission = self.diff()
            self.is_done = True
        return self._submission

    def describe(self) -> dict[str, Any]:
        """Return the facts that are recorded of the episode besides its turns."""
        return {"environment": ENVIRONMENT, "task": self.task.name, "steps": asdict(self.counts), "done": self.is_done}

    def _require_workspace(self) -> Workspace:
        if self._opened is None:
            raise RuntimeError("the episode is not open: call reset first")
        return self._opened

    def _check_call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        if tool not in self._pack.tools:
            raise ToolError(f"there is no tool {tool}; the tools are {', '.join(self._pack.tools)}")
        try:
            jsonschema.validate(dict(arguments), self._pack.tools[tool]["parameters"])
        except jsonschema.ValidationError as error:
            where = ".".join(map(str, error.absolute_path))
            raise ToolError(f"{where or 'the arguments'}: {error.message}"[:500]) from error

    def _shell(self, workspace: Workspace, arguments: Mapping[str, Any]) -> str:
        result = workspace.run(arguments["command"], seconds=COMMAND_SECONDS)
        killed = f", killed: {result.killed_by}" if result.killed_by else ""
        return f"{shorten(result.output)}\n[exit code {result.exit_code}{killed}]"

    def _read(self, workspace: Workspace, arguments: Mapping[str, Any]) -> str:
        path, first = arguments["path"], arguments.get("first_line", 1)
        last = min(arguments.get("last_line", first + MAX_FILE_LINES - 1), first + MAX_FILE_LINES - 1)
        text = self._load_text(workspace, path)
        lines = text.splitlines(keepends=True)
        if first > max(len(lines), 1):
            raise ToolError(f"{path} has {len(lines)} lines")
        shown = "".join(f"{number:6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))
        more = f"[{len(lines) - last} more lines]" if last < len(lines) else ""
        return shorten(shown) + more

    def _edit(self, workspace: Workspace, arguments: Mapping[str, Any]) -> str:
        path, old, new = arguments["path"], arguments.get("old", ""), arguments["new"]
        if not old:
            if workspace.read_text(path):
                raise ToolError(f"{path} is not empty: give the text that is replaced as `old`")
            workspace.write_file(path, new.encode(errors="replace"))
            return f"{path} was written"
        content = self._load(workspace, path)
        number = content.count(old.encode())
        if not number:
            raise ToolError(f"`old` does not stand in {path}")
        if number > 1 and not arguments.get("all", False):
            raise ToolError(f"`old` stands {number} times in {path}: give more of the text around it, or `all`")
        workspace.write_file(path, content.replace(old.encode(), new.encode(errors="replace")))
        return f"{path} was edited ({number} {'place' if number == 1 else 'places'})"

    def _search(self, workspace: Workspace, arguments: Mapping[str, Any]) -> str:
        words = ["grep", "-rnIE", "--exclude-dir=.git"]
        if "glob" in arguments:
            words.append(f"--include={arguments['glob']}")
        script = f'cd {WORKDIR} && [ -e "$path" ] || {{ echo "no such file or folder"; exit 2; }}; '
        script += 'place=$(realpath --relative-to=. -- "$path"); [ "$place" != . ] || place=; '
        script += f'{shlex.join(words)} -e "$2" ${{place:+-- "$place"}}'
        result = workspace.run_inside(script, arguments.get("path", "."), arguments["pattern"])
        if result.exit_code > 1:
            raise ToolError(shorten(result.output).strip())
        return shorten(result.output) if result.output else "no line matches"

    def _run_tests(self, workspace: Workspace, arguments: Mapping[str, Any]) -> str:
        language = LANGUAGES.get(self.task.language)
        command = DEFAULT_TEST_COMMAND if language is None else language.test_command
        return self._shell(workspace, {"command": f"{command} {shlex.join(arguments.get('tests', ()))}".strip()})

    def _load(self, workspace: Workspace, path: str) -> bytes:
        content = workspace.read_text(path)
        if content is None:
            raise ToolError(f"{PurePosixPath(path)} is no file")
        return content

    def _load_text(self, workspace: Workspace, path: str) -> str:
        content = self._load(workspace, path)
        # As git does, which takes a file with a zero byte near its beginning for binary.
        if b"\0" in content[:8000]:
            raise ToolError(f"{path} is binary ({len(content)} bytes)")
        return content.decode(errors="replace")
