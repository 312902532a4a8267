"""`mergemill judge instances:FILE`: published tasks judged straight from their file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mergemill.cli import output
from mergemill.config import Settings
from mergemill.errors import InputError, UsageError

SCHEME = "instances:"
SHOWN = ("instance_id", "underspecified", "unfair_tests", "findings")


def of_files(sources: Sequence[str]) -> bool:
    """Whether the sources are files of published tasks, which need no database.

    Raises:
        UsageError: some are and some are not.
    """
    files = [source.startswith(SCHEME) for source in sources]
    if any(files) and not all(files):
        raise UsageError("instances:FILE is judged from the file, other sources from the database", advice="one by one")
    return any(files)


def tell(sources: Sequence[str], only: Sequence[str], settings: Settings, *, as_json: bool) -> int:
    """Print what the judge says of the tasks of each file, at most `settings.limit` of each; the exit code."""
    from mergemill.judging import judged  # noqa: PLC0415 - only this command needs the miner and the judge

    code, rows = 0, list[dict[str, Any]]()
    for source in sources:
        told = 0
        for found in judged(Path(source.removeprefix(SCHEME)), only, settings):
            if isinstance(found, InputError):
                output.tell(found.line())
                code = found.exit_code
                continue
            if told == settings.limit:
                break
            told += 1
            if as_json:
                output.as_json(found)
            else:
                rows.append(found | {"findings": sorted({finding["rule"] for finding in found["findings"]})})
    if not as_json:
        output.rows(rows, SHOWN, as_lines=False, nothing="no task to judge")
    return code
