"""`mergemill export`: tasks as a bundle in another tool's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from exporters import FORMATS
from mergemill.cli import output
from mergemill.cli.options import (
    READ_SETTINGS,
    JsonOption,
    select_certified,
    split_words,
    with_filters,
    with_settings,
)
from taskdb.queries import TaskFilters
from taskdb.records import to_json

app = typer.Typer(add_completion=False)


@app.command("export")
@with_settings(*READ_SETTINGS, "clones")
@with_filters
def export(
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"Format of the bundle: {' or '.join(FORMATS)}.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the bundle to this folder.")],
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="NAME=SHARE[,NAME=SHARE]",
            help="Write one bundle per split to DIR/NAME; no two splits share a repository or a change.",
        ),
    ] = None,
    as_json: JsonOption = False,
    *,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """Write tasks as a bundle in another tool's format.

    Without --status only certified tasks are exported.

    Example: mergemill export --format harbor --out bundle --split train=0.9,test=0.1
    """
    from mergemill.bundles import export_splits  # noqa: PLC0415 - only this command needs the exporters
    from mergemill.kinds import TASK_KINDS  # noqa: PLC0415 - derivers load slowly

    splits = split_words(split) if split is not None else None
    for bundle, excluded in export_splits(format_name, out, splits, select_certified(filters, settings), settings):
        if excluded:
            reasons = {TASK_KINDS[task.kind].not_exported for task in excluded}
            output.print_message(f"{len(excluded)} tasks are not exported: {'; '.join(sorted(reasons))}")
        if as_json:
            output.print_json(to_json(bundle))
        else:
            manifest = f"({bundle.format}, manifest {bundle.manifest_sha256[:16]})"
            output.print_text(f"{len(bundle.tasks)} tasks in {bundle.out} {manifest}")
