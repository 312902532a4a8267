"""The command line (typer). No logic: every command calls what does the work and prints what it says."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from mergemill import __version__
from mergemill.cli import auditing, imaging, making, output, reading, repositories, running, skills, tagging
from mergemill.errors import MergemillError, UsageError, disk_full

INTERRUPTED = 130

app = typer.Typer(
    name="mergemill",
    help="Turn merged changes into verified software-engineering tasks with runnable environments.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)
for commands in (running, reading, repositories, tagging, making, skills, imaging, auditing):
    commands.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        output.text(f"mergemill {__version__}")
        raise typer.Exit


@app.callback()
def _before(
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say what is being done.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Say which mergemill this is.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    del version
    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other")
    level = logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="mergemill: %(message)s", force=True)


def main() -> None:
    """The `mergemill` command: exit codes as in docs/cli.md; a user's mistake never shows a traceback."""
    # What stops services (SIGTERM) is Ctrl-C to us, also where a shell started us in the background without one.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    wrong: Any = typer.BadParameter.__mro__[1]  # UsageError of the click that this typer brings along
    try:
        code = app(args=arguments, prog_name="mergemill", standalone_mode=False)
        sys.stdout.flush()
    except MergemillError as error:
        output.tell(error.line())
        return error.exit_code
    except typer.Exit as error:
        code = error.exit_code
    except wrong as error:
        where = f"{error.ctx.command_path} --help" if error.ctx else "mergemill --help"
        output.tell(f"{' '.join(error.format_message().split()).rstrip('.')} (see {where})")
        return UsageError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _interrupted()
    except OSError as error:
        if full := disk_full(error):
            output.tell(full.line())
            return full.exit_code
        if error.errno != errno.EPIPE:
            raise
        _leave(0)  # whoever read the output has seen enough
    if code == INTERRUPTED:  # what newer typers make of Ctrl-C
        _interrupted()
    return int(code or 0)


def _interrupted() -> NoReturn:
    output.tell("stopped; the same command goes on from here")
    _leave(INTERRUPTED)


def _leave(code: int) -> NoReturn:
    """Leave at once: workers that still run end with the process, their containers with the next `mergemill run`."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    os._exit(code)
