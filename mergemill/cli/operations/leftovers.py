"""`mergemill gc`: remove the things that killed processes left."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from core.errors import MachineError
from core.settings.machine import SandboxSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings

app = typer.Typer(add_completion=False)


@app.command("gc")
@with_settings(StorageSettings, "sandbox")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed and remove nothing.")] = False,
    as_json: JsonOption = False,
    *,
    sandbox: SandboxSettings,
    storage: StorageSettings,
) -> None:
    """Remove what killed processes left: containers, folders and files.

    Images are kept; `mergemill images prune --all` removes those that nothing needs.

    Example: mergemill gc --dry-run
    """
    from mergemill.execution.images.budget import format_bytes  # noqa: PLC0415 - a wrong option needs no engine
    from mergemill.operations.leftovers import find_leftovers  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    problem: MachineError | None = None
    try:
        for leftover in find_leftovers(sandbox, storage):
            removed = not dry_run and leftover.remove()
            rows.append({"kind": leftover.kind, "name": leftover.name, "bytes": leftover.size, "removed": removed})
    except MachineError as error:  # what is not the engine's was found before
        problem = error
    output.print_rows(rows, (), as_lines=as_json, nothing="nothing was left")
    if rows:
        done = [row for row in rows if dry_run or row["removed"]]
        freed = format_bytes(sum(row["bytes"] or 0 for row in done))
        output.print_note(f"{format_count(len(done), 'leftover')} {'would be' if dry_run else 'were'} removed, {freed}")
    if problem is not None:
        raise problem
