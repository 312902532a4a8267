"""`mergemill tags`: kinds of change by text alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.errors import InputError
from mergemill.cli import output
from mergemill.cli.options import JsonOption

app = typer.Typer(add_completion=False)


@app.command("tags")
def tags(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV or JSONL with a message, or title, body and labels, per row.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Classify the texts of a file by kind of change.

    Texts are commit messages, pull requests or issues; no repository is read.

    Example: mergemill tags commits.csv --json
    """
    from miner.tags.texts import tag_file  # noqa: PLC0415 - only this command needs the miner

    n_unusable = 0
    for row in tag_file(file):
        if isinstance(row, InputError):
            n_unusable += 1
            output.print_message(row.format_line())
        elif as_json:
            output.print_json(row)
        else:
            output.print_text(_format_row(row))
    if n_unusable:
        raise InputError(f"rows of {file} without text: {n_unusable}")


def _format_row(row: dict[str, Any]) -> str:
    kinds = ", ".join(f"{tag['change_kind']} {tag['confidence']:.2f}" for tag in row["change_kinds"])
    evidence = ", ".join(f"{item['rule']} {item['quote']!r}" for item in row["change_kinds"][0]["evidence"])
    issue = f"; as an issue: {row['issue']['kind']}" if "issue" in row else ""
    return f"{row['row']}: {kinds}; {' '.join(row['activities'])}{issue} ({evidence})"
