"""`mergemill export`: tasks as a bundle in another tool's format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.settings.storage import StorageSettings
from core.text import format_count
from exporters import FORMATS
from mergemill.bench.held_out import WITH_HELP, WITH_OPTION, describe_refused, refuse_held_out
from mergemill.cli import output
from mergemill.cli.options import (
    JsonOption,
    complete_words,
    select_certified,
    split_words,
    with_filters,
    with_settings,
)
from mergemill.execution.progress import make_count_progress
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import to_json

app = typer.Typer(add_completion=False)


@app.command("export")
@with_settings(StorageSettings, "clones")
@with_filters
def export(
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            autocompletion=complete_words(FORMATS),
            help=f"Format of the bundle: {' or '.join(FORMATS)}.",
        ),
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
    with_parquet: Annotated[
        bool, typer.Option("--parquet", help="harbor: pack the tasks into parquet files as well.")
    ] = False,
    registry: Annotated[
        str | None,
        typer.Option("--push", metavar="HOST/PREFIX", help="Push the images to this registry, and name them there."),
    ] = None,
    *,
    allow_no_controls: Annotated[
        bool,
        typer.Option(
            "--allow-no-controls", help="Export tasks, too, in which a submission that forges results is paid."
        ),
    ] = False,
    max_unfair: Annotated[
        float | None,
        typer.Option(
            "--max-unfair",
            metavar="P",
            min=0.0,
            max=1.0,
            help="Leave out tasks whose tests the judge finds unfair with a higher probability; others stay.",
        ),
    ] = None,
    max_underspecified: Annotated[
        float | None,
        typer.Option(
            "--max-underspecified",
            metavar="P",
            min=0.0,
            max=1.0,
            help="Leave out tasks whose statement the judge finds vague with a higher probability; others stay.",
        ),
    ] = None,
    with_images: Annotated[
        bool, typer.Option("--with-images", help="Put the images into the bundle, as an OCI layout.")
    ] = False,
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    as_json: JsonOption = False,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """Write tasks as a bundle in another tool's format.

    Without --status only certified tasks are exported, and of those that lists of tests decide only the ones with
    negative controls.

    Example: mergemill export --format harbor --out bundle --split train=0.9,test=0.1
    """
    from mergemill.bundles.export import export_splits  # noqa: PLC0415 - only this command needs the exporters

    splits = split_words(split) if split is not None else None
    wanted = replace(
        filters,
        controlled=not allow_no_controls,
        max_unfair=max_unfair,
        max_underspecified=max_underspecified,
    )
    tasks = select_certified(wanted, settings.storage)
    if not with_held_out:
        tasks, n_refused = refuse_held_out(tasks, settings.storage)
        if n_refused:
            output.print_note(describe_refused(n_refused, "task"))
    if format_name in FORMATS:
        _print_selection(tasks, settings.storage)
    exports = export_splits(
        format_name,
        out,
        splits,
        tasks,
        settings,
        with_images=with_images,
        with_parquet=with_parquet,
        push_to=registry,
        make_progress=make_count_progress,
    )
    for result in exports:
        bundle = result.bundle
        for (kind, reason), number in sorted(result.excluded.items()):
            output.print_note(f"{format_count(number, f'{kind} task')} not exported: {reason}")
        if result.n_local_images:
            output.print_note(f"{result.n_local_images} of {result.n_images} images exist only on this engine")
        if as_json:
            output.print_json(to_json(bundle))
        else:
            manifest = f"({bundle.format}, manifest {bundle.manifest_sha256[:16]})"
            output.print_text(f"{format_count(len(bundle.tasks), 'task')} in {bundle.out} {manifest}")


def _print_selection(tasks: TaskFilters, storage: StorageSettings) -> None:
    """Print how many tasks are left out and why, and how many of the others need a look."""
    from mergemill.bundles.export import count_doubtful, count_left_out  # noqa: PLC0415 - as above

    problems = {
        "controlled": "without negative controls, so that forged results are paid; --allow-no-controls exports them",
        "max_underspecified": f"the statement is vague with a probability above {tasks.max_underspecified}",
        "max_unfair": f"the tests are unfair with a probability above {tasks.max_unfair}",
    }
    for name, number in count_left_out(tasks, storage).items():
        if number:
            output.print_note(f"{format_count(number, 'task')} not exported: {problems[name]}")
    for reason, number in count_doubtful(tasks, storage).items():
        output.print_note(f"warning: {format_count(number, 'exported task')}: {reason}")
