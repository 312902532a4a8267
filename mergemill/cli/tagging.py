"""`mergemill tags`: what kinds of change the texts in a file tell of. Needs neither database nor engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mergemill.cli import output
from mergemill.cli.options import Json
from mergemill.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tags)


def tags(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or JSONL: message, or title, body and labels.")],
    as_json: Json = False,
) -> None:
    """Say what kinds of change the commit messages, pull requests or issues in a file are, by their texts alone."""
    from miner.tags.texts import tag_file  # noqa: PLC0415 - only this command needs the miner

    faults = 0
    for found in tag_file(file):
        if isinstance(found, InputError):
            faults += 1
            output.tell(found.line())
        elif as_json:
            output.as_json(found)
        else:
            kinds = ", ".join(f"{one['kind']} {one['confidence']:.2f}" for one in found["kinds"])
            signs = ", ".join(f"{one['rule']} {one['quote']!r}" for one in found["kinds"][0]["signs"])
            issue = f"; as an issue: {found['issue']['kind']}" if "issue" in found else ""
            output.text(f"{found['row']}: {kinds}; {' '.join(found['activities'])}{issue} ({signs})")
    if faults:
        raise InputError(f"rows of {file} that hold no text: {faults}")
