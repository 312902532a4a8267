"""Command line (typer). A command parses its options, calls the function that does the work and prints the result.

`commands.COMMANDS` is the table of all commands; a command's module is imported when the command is invoked.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from core.errors import MergemillError, UsageError, as_disk_error
from core.text import escape_line
from mergemill import __version__
from mergemill.cli.commands import find_entry
from mergemill.cli.exit_codes import INTERRUPTED
from mergemill.cli.lazy_group import LazyGroup
from mergemill.cli.streams import GuardedStream, OutputClosedError
from mergemill.execution.telemetry.logs import LogFormat, LogStream, configure_logging

HELP_WIDTH = 80
"""Least width of help: its tables cut names in fewer columns, where a terminal wraps whole lines."""
COLLECTION_THRESHOLD = 50_000
"""New objects after which Python looks for cycles. Imports and records make many objects and few cycles: with Python's
700 the search takes a twentieth of the start of a command, and a quarter of the reading of tasks."""

app = typer.Typer(
    name="mergemill",
    cls=LazyGroup,
    help="Turn merged changes into verified software-engineering tasks with runnable environments.",
    epilog="Example: mergemill run github:pallets/flask --limit 20",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"mergemill {__version__}\n")
        raise typer.Exit


@app.callback()
def _configure(
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log each step to standard error.")] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option("--log-format", envvar="MERGEMILL_LOG_FORMAT", help="Write standard error as text or JSON lines."),
    ] = LogFormat.TEXT,
    log_file: Annotated[
        Path | None,
        typer.Option(
            "--log-file", metavar="FILE", envvar="MERGEMILL_LOG_FILE", help="Append the log to this file as JSON lines."
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    del version
    gc.freeze()  # what was imported stays: later searches need not visit it
    gc.enable()
    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other")
    level = logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING
    configure_logging(level, log_format, log_file)


def main() -> None:
    """Run the `mergemill` command of this process and exit (docs/reference/cli.md lists the exit codes)."""
    gc.set_threshold(COLLECTION_THRESHOLD)
    gc.disable()  # until the module of the command is imported
    # SIGTERM, which stops services, is handled as Ctrl-C; SIGINT too where a shell had it ignored for a background job.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, signal.default_int_handler)
    if shutil.get_terminal_size().columns < HELP_WIDTH:
        os.environ.setdefault("TERMINAL_WIDTH", str(HELP_WIDTH))  # the variable that typer reads
    output: Any = GuardedStream(sys.stdout)
    errors: Any = GuardedStream(sys.stderr)
    sys.stdout, sys.stderr = output, errors
    sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: list[str]) -> int:
    """Run a command and return its exit code.

    A user's mistake is reported in a single line without a traceback. When the reader of the output closes the pipe,
    the process exits with 0 at once.
    """
    try:
        code = _invoke(arguments or ["--help"])
        sys.stdout.flush()
    except OutputClosedError:
        _exit_now(0)
    return code


def _invoke(arguments: list[str]) -> int:
    usage_error: Any = typer.BadParameter.__mro__[1]  # UsageError of the click that this typer ships
    code: Any
    try:
        code = app(args=arguments, prog_name="mergemill", standalone_mode=False)
    except MergemillError as error:
        _print_error(error.format_line())
        return error.exit_code
    except typer.Exit as error:
        code = error.exit_code
    except usage_error as error:
        if error.message == "Missing command.":  # a group alone lists its commands
            return _invoke([*arguments, "--help"])
        help_command = f"{error.ctx.command_path} --help" if error.ctx else "mergemill --help"
        _print_error(f"{' '.join(error.format_message().split()).rstrip('.')} (see {help_command})")
        return UsageError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _exit_interrupted(arguments)
    except OSError as error:
        if known := as_disk_error(error):
            _print_error(known.format_line())
            return known.exit_code
        raise
    if code == INTERRUPTED:  # newer typers turn Ctrl-C into this code
        _exit_interrupted(arguments)
    return int(code or 0)


def _print_error(line: str) -> None:
    if isinstance(sys.stderr, LogStream):
        sys.stderr.write_error(line)
        return
    sys.stderr.write(f"mergemill: {escape_line(line)}\n")
    sys.stderr.flush()


def _exit_interrupted(arguments: list[str]) -> NoReturn:
    command = find_entry(arguments)
    resumes = command is not None and command.resumes
    _print_error("stopped; the same command continues from here" if resumes else "stopped")
    _exit_now(INTERRUPTED)


def _exit_now(code: int) -> NoReturn:
    """Exit without waiting for worker threads; the next command that needs the engine removes their containers."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    os._exit(code)
