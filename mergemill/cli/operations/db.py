"""`mergemill db`: upkeep of the task database."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from core.errors import InputError, UsageError
from core.settings.machine import ClusterSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import JsonOption, build_settings, with_settings
from taskdb.artifacts import open_artifacts
from taskdb.store import Store

app = typer.Typer(help=COMMANDS["db"].summary, add_completion=False)


@app.callback()
def db() -> None:
    """Take care of the task database."""


@app.command("compact")
@with_settings(StorageSettings)
def compact_db(as_json: JsonOption = False, *, storage: StorageSettings) -> None:
    """Remove what no record needs, and give free space back.

    Records stay, those of superseded chains among them. Meanwhile the disk needs free space of the database's size.

    Example: mergemill db compact
    """
    from taskdb.compaction import compact  # noqa: PLC0415 - only this command needs it

    with Store.open(storage.db, create=False) as store:
        done = compact(store)
    if as_json:
        output.print_json(asdict(done))
        return
    removed = f"{done.test_lists} lists of tests, {done.sketches} similarity keys, {done.states} states removed"
    output.print_text(f"{done.bytes_before:,} bytes before, {done.bytes_after:,} after; {removed}")


@app.command("copy-artifacts")
@with_settings(StorageSettings, "workers")
def copy_artifacts(
    to: Annotated[str, typer.Argument(metavar="FOLDER|URL", show_default=False, help="Where the copies go.")],
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    cluster: ClusterSettings,
) -> None:
    """Copy the artifacts to a shared store or back, and check their hashes.

    What is there already is left as it is, so the same command continues an interrupted copy. Nothing is removed.

    Example: mergemill db copy-artifacts s3://bucket/prefix --workers 8
    """
    from mergemill.execution.progress import make_count_progress  # noqa: PLC0415 - as below
    from mergemill.operations import artifact_copy  # noqa: PLC0415 - only this command needs both

    target = build_settings({"db": storage.db, "store": storage.store, "artifacts": to})
    if target.storage.artifact_place == storage.artifact_place:
        raise UsageError(f"the artifacts are at {to} already", advice="--artifacts names where they are now")
    done = artifact_copy.copy_artifacts(
        open_artifacts(storage),
        open_artifacts(target.storage),
        workers=cluster.workers,
        make_progress=make_count_progress,
    )
    if as_json:
        output.print_json(asdict(done))
    else:
        output.print_text(f"{format_count(done.copied, 'artifact')} copied, {done.present:,} there already")
    for problem in done.unreadable:
        output.print_message(problem)
    if done.unreadable:
        raise InputError(f"{format_count(len(done.unreadable), 'artifact')} could not be read; the others are copied")
