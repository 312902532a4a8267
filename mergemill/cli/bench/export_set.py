"""`mergemill bench export`: a set as a folder for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.bench.run import ChangedOption, parse_changed
from mergemill.cli.options import WORLD_SETTINGS, JsonOption, complete_words, split_words, with_settings
from taskdb.store import Store

app = typer.Typer(add_completion=False)
METRICS = "resolved,value,parts,effort"
FORMATS = ("harbor", "octo")
"""Formats of tasks (`mergemill.bench.export`)."""


@app.command("export")
@with_settings(*WORLD_SETTINGS, "clones")
def export_command(
    bench_set: Annotated[str, typer.Argument(metavar="SET", help="Name or file of a set.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the set to this folder.")],
    metric: Annotated[
        str,
        typer.Option("--metric", metavar="NAME[,NAME]", help="Columns of the results, as of `bench report`."),
    ] = METRICS,
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            help="Format of the tasks; octo has instruction tasks alone.",
            autocompletion=complete_words(FORMATS),
        ),
    ] = FORMATS[0],
    changed: ChangedOption = "stop",
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Write a set with its subjects, and the results and report of its runs, to a folder.

    Tasks and scenarios are bundles of Harbor; scenarios are played first. With --format octo instruction tasks are rows
    of OctoCodingBench, which `bench import` reads again. Each file begins with the canary of the set.

    Example: mergemill bench export review-1 --out review-1
    """
    if format_name not in FORMATS:
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join(FORMATS)}")
    # A wrong option is reported without loading the exporters.
    from mergemill.bench.export import BenchExport, export_bench  # noqa: PLC0415
    from mergemill.bench.metrics import load_metric  # noqa: PLC0415
    from mergemill.bench.sets import open_set  # noqa: PLC0415
    from mergemill.execution.reporter import Reporter  # noqa: PLC0415

    skip = parse_changed(changed)
    metrics = [load_metric(word) for word in dict.fromkeys(split_words(metric))]
    with Store.open(settings.storage.db, create=False) as store:
        opened = open_set(store, bench_set)
    export = BenchExport(bench_set=opened, out=out, metrics=metrics, skip=skip, format=format_name)
    summary = export_bench(export, settings, Reporter(message=output.print_message))
    if as_json:
        output.print_json(summary)
        return
    for reason, number in summary["left_out"].items():
        output.print_note(f"{format_count(number, 'subject')} left out: {reason}")
    subjects, runs = format_count(summary["subjects"], "subject"), format_count(summary["runs"], "run")
    output.print_text(f"{summary['set']} {summary['version']}: {subjects}, {runs} in {summary['out']}")
