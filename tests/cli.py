"""The real command line, run as a process in a folder of the test."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tests.command_server import KEPT_RUNS, NO_CONTROLS, SHORT_CERTIFICATES, RunningCommand, start_command_server

WITHOUT_CONTROLS = {NO_CONTROLS: "yes"}
"""Variables of a command whose tasks have no controls, for tests that neither export tasks nor audit them."""
WITHOUT_REPAIR = {"MERGEMILL_MAX_ATTEMPTS": "1"}
"""Variables of a command that builds no second environment for a change whose own tests fail in the first."""
WITH_KEPT_RUNS = {KEPT_RUNS: "yes"}
"""Variables of a command that repeats no container of an earlier one, for tests of what is done with the results."""


@dataclass(frozen=True)
class CommandResult:
    """Output and exit code of a command."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return json.loads(self.stdout)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as one JSON object per line."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def make_command_environment(**variables: str) -> dict[str, str]:
    """Return the environment for commands under test: the user's, without settings of mergemill.

    Certificates take no exploits and grade the gold submission once, and verification repeats no run: together they
    would take four of five containers of all tests that run the pipeline. The run of test_end_to_end.py has them.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MERGEMILL_")}
    return (
        kept
        | {
            "MERGEMILL_CERTIFY_EXPLOITS": "off",
            "MERGEMILL_REPEATS": "1",
            SHORT_CERTIFICATES: "yes",
            "MERGEMILL_STRENGTH_RUNS": "5",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "200",
        }
        | variables
    )


def run_mergemill(*arguments: str, cwd: Path, **variables: str) -> CommandResult:
    """Run `mergemill ARGUMENTS` in `cwd`."""
    return run_command(arguments, cwd, make_command_environment(**variables))


def run_command(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], output: int | None = None
) -> CommandResult:
    """Run `mergemill ARGUMENTS` in `cwd` with exactly this environment.

    Args:
        output: descriptor of the standard output; None for one that the result contains.
    """
    if ended := start_command_server().run(arguments, cwd, environment, output):
        return CommandResult(*ended)
    done = subprocess.run(
        ["mergemill", *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE if output is None else output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout or "", done.stderr)


@contextmanager
def start_mergemill(*arguments: str, cwd: Path, **variables: str) -> Iterator[RunningCommand]:
    """Start `mergemill ARGUMENTS` in `cwd`, without output; it is killed at the end."""
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        environment = make_command_environment(**variables)
        command = start_command_server().start(arguments, cwd, environment, nothing.fileno(), nothing.fileno())
    assert command is not None, "only a new process has these variables"
    try:
        yield command
    finally:
        command.kill()


@dataclass(frozen=True)
class OpenCommand:
    """A command that runs, and the pipes of its outputs."""

    process: RunningCommand
    stdout: TextIO
    stderr: TextIO


@contextmanager
def open_mergemill(*arguments: str, cwd: Path, module: str = "", **variables: str) -> Iterator[OpenCommand]:
    """Start `mergemill ARGUMENTS` in `cwd`, with pipes for its outputs; it is killed at the end.

    Args:
        module: name of a module that runs as a program instead.
    """
    output, output_end = os.pipe()
    errors, errors_end = os.pipe()
    environment = make_command_environment(**variables)
    command = start_command_server().start(arguments, cwd, environment, output_end, errors_end, module)
    os.close(output_end)
    os.close(errors_end)
    with os.fdopen(output) as stdout, os.fdopen(errors) as stderr:
        assert command is not None, "only a new process has these variables"
        try:
            yield OpenCommand(command, stdout, stderr)
        finally:
            command.kill()


def run_with_closed_pipe(command: str, folder: Path) -> CommandResult:
    """Run `mergemill COMMAND`, written as for a shell; its output is a pipe that its reader has closed."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return run_command(shlex.split(command), folder, make_command_environment(), writer)
    finally:
        os.close(writer)
