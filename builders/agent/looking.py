"""`run`, `read` and `search`: tools that look around in a container."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from pydantic import Field

from backends.sandbox.base import Ran, Shell
from builders.agent.tools import Arguments, Entry

COMMAND_SECONDS = 600.0
"""The longest one command may take."""
LOOK_SECONDS = 30.0
"""The same for `read` and `search`."""
RESULT_CHARS = 8000
"""Of a result, head and tail together."""
LINES = 200
"""Of a file that `read` shows when nothing else is asked for."""
MATCHES = 80
LINE_CHARS = 400


class Run(Arguments):
    """Arguments of `run`."""

    command: str = Field(min_length=1)
    """A line of bash; it starts in the project's folder, as root."""
    seconds: float = Field(default=120, gt=0, le=COMMAND_SECONDS)
    """What it may take."""


class Read(Arguments):
    """Arguments of `read`."""

    path: str = Field(min_length=1)
    """A file, from the project's folder or absolute."""
    first_line: int = Field(default=1, ge=1)
    last_line: int | None = Field(default=None, ge=1)


class Search(Arguments):
    """Arguments of `search`."""

    pattern: str = Field(min_length=1)
    """A POSIX extended regular expression."""
    path: str = "."
    """A file or folder."""


class Looking:
    """The three tools over a shell. `shell` is asked for at each use: a later round has another container.

    Args:
        shell: the container's shell now.
        left: seconds that are left of the time; no command lasts longer.
    """

    def __init__(self, shell: Callable[[], Shell], left: Callable[[], float]) -> None:
        self._shell = shell
        self._left = left

    def entries(self) -> tuple[Entry, ...]:
        """The tools."""
        return (
            Entry(name="run", description="Run a command in the container.", arguments=Run, does=self.run),
            Entry(name="read", description="Show lines of a file.", arguments=Read, does=self.read),
            Entry(name="search", description="Find lines that match, with file and number.", arguments=Search,
                  does=self.search),
        )  # fmt: skip

    def run(self, asked: Run) -> str:
        """Output and exit code of a command."""
        ran = self._ran(asked.command, asked.seconds)
        return f"{shortened(ran.output)}{'' if ran.output.endswith(chr(10)) or not ran.output else chr(10)}{_end(ran)}"

    def read(self, asked: Read) -> str:
        """Lines of a file with their numbers."""
        last = asked.last_line or asked.first_line + LINES - 1
        path = shlex.quote(asked.path)
        show = f"awk 'NR>={asked.first_line} && NR<={last} {{print NR\": \"$0}}' < {path} | cut -c1-{LINE_CHARS}"
        total = f'echo "[lines {asked.first_line} to {last} of $(wc -l < {path})]"'
        ran = self._ran(f"if [ -d {path} ]; then ls -la -- {path}; else {show} && {total}; fi", LOOK_SECONDS)
        return shortened(ran.output) if not ran.killed_by else _end(ran)

    def search(self, asked: Search) -> str:
        """Lines that match."""
        grep = "grep -rnIE --exclude-dir=.git --exclude-dir=node_modules"
        find = f"{grep} -e {shlex.quote(asked.pattern)} -- {shlex.quote(asked.path)}"
        ran = self._ran(f"{find} 2>&1 | cut -c1-{LINE_CHARS} | head -n {MATCHES + 1}", LOOK_SECONDS)
        lines = ran.output.splitlines()
        more = f"\n[more than {MATCHES} lines match: ask more narrowly]" if len(lines) > MATCHES else ""
        return shortened("\n".join(lines[:MATCHES]) + more) if lines else "no line matches"

    def _ran(self, command: str, seconds: float) -> Ran:
        return self._shell().run(command, seconds=max(min(seconds, self._left()), 1.0))


def shortened(text: str, limit: int = RESULT_CHARS) -> str:
    """Head and tail of a long text; the tail gets more, for errors stand there."""
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[head - limit :]}"


def _end(ran: Ran) -> str:
    if ran.killed_by == "time":
        return f"[ended after {ran.seconds:.0f} s: it took too long; the container may be a fresh one now]"
    if ran.killed_by:
        return f"[ended: {ran.killed_by} used up; the container may be a fresh one now]"
    return f"[exit code {ran.exit_code}]"
