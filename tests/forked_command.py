"""A command that is forked from a program which has imported its modules, before that program starts threads."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from tests.command_server import run_and_end


class ForkedCommand:
    """A process that waits for its environment and then runs a command; for `mergemill` it needs no new Python.

    Args:
        words: name and arguments of the command.
    """

    def __init__(self, words: Sequence[str]) -> None:
        reader, self._writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._writer)
            _wait_and_run(words, reader)
        os.close(reader)

    def run(self, **variables: str) -> int:
        """Run the command with further variables; return its exit code, below 0 for a signal."""
        with os.fdopen(self._writer, "w") as file:
            json.dump(variables, file)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _wait_and_run(words: Sequence[str], reader: int) -> None:
    with os.fdopen(reader) as file:
        text = file.read()
    if not text:  # the program has ended before
        sys.exit(1)
    os.environ.update(json.loads(text))
    if words[0] != "mergemill":
        os.execvp(words[0], words)  # noqa: S606 - as a user starts it
    from mergemill.cli import main  # noqa: PLC0415 - of a command alone

    sys.argv = list(words)
    run_and_end(main)
