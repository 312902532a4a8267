"""Tools `run`, `read` and `search`, which inspect a container."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from pydantic import Field

from backends.sandbox.base import ContainerSession
from backends.sandbox.execution import ExecResult
from builders.agent.tools import AgentTool, ToolArguments

COMMAND_SECONDS = 600.0
"""Upper limit of a command's timeout."""
READ_SECONDS = 30.0
"""Timeout of `read` and `search`."""
RESULT_CHARS = 8000
"""Limit of a result, head and tail together."""
READ_LINES = 200
"""Lines of a file that `read` returns by default."""
MAX_SEARCH_MATCHES = 80
LINE_CHARS = 400


class RunArguments(ToolArguments):
    """Arguments of `run`."""

    command: str = Field(min_length=1)
    """A line of bash; it starts in the project's folder, as root."""
    seconds: float = Field(default=120, gt=0, le=COMMAND_SECONDS)
    """Timeout."""


class ReadArguments(ToolArguments):
    """Arguments of `read`."""

    path: str = Field(min_length=1)
    """A file, from the project's folder or absolute."""
    first_line: int = Field(default=1, ge=1)
    last_line: int | None = Field(default=None, ge=1)


class SearchArguments(ToolArguments):
    """Arguments of `search`."""

    pattern: str = Field(min_length=1)
    """A POSIX extended regular expression."""
    path: str = "."
    """A file or folder."""


class InspectionTools:
    """The three tools of a container session.

    Args:
        get_session: function that returns the current session; a later round has another container.
        seconds_left: function that returns the remaining time, the upper limit of a command's timeout.
    """

    def __init__(self, get_session: Callable[[], ContainerSession], seconds_left: Callable[[], float]) -> None:
        self._get_session = get_session
        self._seconds_left = seconds_left

    def create_tools(self) -> tuple[AgentTool, ...]:
        """Return the tools."""
        return (
            AgentTool(
                name="run", description="Run a command in the container.", arguments=RunArguments, function=self.run
            ),
            AgentTool(name="read", description="Show lines of a file.", arguments=ReadArguments, function=self.read),
            AgentTool(
                name="search",
                description="Find lines that match, with file and number.",
                arguments=SearchArguments,
                function=self.search,
            ),
        )

    def run(self, arguments: RunArguments) -> str:
        """Return output and exit code of a command."""
        result = self._run_command(arguments.command, arguments.seconds)
        newline = "" if result.output.endswith("\n") or not result.output else "\n"
        return f"{shorten_output(result.output)}{newline}{_format_exit(result)}"

    def read(self, arguments: ReadArguments) -> str:
        """Return lines of a file with their numbers."""
        last = arguments.last_line or arguments.first_line + READ_LINES - 1
        path = shlex.quote(arguments.path)
        show = f"awk 'NR>={arguments.first_line} && NR<={last} {{print NR\": \"$0}}' < {path} | cut -c1-{LINE_CHARS}"
        total = f'echo "[lines {arguments.first_line} to {last} of $(wc -l < {path})]"'
        result = self._run_command(f"if [ -d {path} ]; then ls -la -- {path}; else {show} && {total}; fi", READ_SECONDS)
        return shorten_output(result.output) if not result.killed_by else _format_exit(result)

    def search(self, arguments: SearchArguments) -> str:
        """Return matching lines with file and number."""
        grep = "grep -rnIE --exclude-dir=.git --exclude-dir=node_modules"
        find = f"{grep} -e {shlex.quote(arguments.pattern)} -- {shlex.quote(arguments.path)}"
        result = self._run_command(
            f"{find} 2>&1 | cut -c1-{LINE_CHARS} | head -n {MAX_SEARCH_MATCHES + 1}", READ_SECONDS
        )
        lines = result.output.splitlines()
        more = (
            f"\n[more than {MAX_SEARCH_MATCHES} lines match: narrow the pattern]"
            if len(lines) > MAX_SEARCH_MATCHES
            else ""
        )
        return shorten_output("\n".join(lines[:MAX_SEARCH_MATCHES]) + more) if lines else "no line matches"

    def _run_command(self, command: str, seconds: float) -> ExecResult:
        return self._get_session().run(command, seconds=max(min(seconds, self._seconds_left()), 1.0))


def shorten_output(text: str, limit: int = RESULT_CHARS) -> str:
    """Return head and tail of a long text; the tail is longer, because errors are there."""
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[head - limit :]}"


def _format_exit(result: ExecResult) -> str:
    if result.killed_by == "time":
        return f"[ended after {result.seconds:.0f} s: timeout; the container may have been replaced]"
    if result.killed_by:
        return f"[ended: {result.killed_by} limit reached; the container may have been replaced]"
    return f"[exit code {result.exit_code}]"
