"""`mergemill bench report`: figures of runs with intervals, and paired differences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

import typer

from core.errors import UsageError
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import complete_words, split_words, with_settings
from taskdb.artifacts import open_artifacts
from taskdb.queries.bench import resolve_run
from taskdb.store import Store

FORMATS = ("table", "json", "markdown")
FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="|".join(FORMATS), autocompletion=complete_words(FORMATS), help="Form of the report."
    ),
]

app = typer.Typer(add_completion=False)


@app.command("report")
@with_settings(StorageSettings)
def report_command(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Names of runs, or beginnings of their ids.")],
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME[,NAME]",
            show_default=False,
            help="resolved, value, parts, effort, states, review, swt, performance, instructions, or MODULE:CLASS. "
            "Default: resolved,value,effort.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="FACT[,FACT]",
            help="Group by language, kind, source, repo, form or material_bytes as well.",
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="RUN", help="Compare the runs with this run, subject by subject.")
    ] = None,
    cutoff: Annotated[
        str | None,
        typer.Option(
            "--cutoff",
            metavar="DATE",
            show_default=False,
            help="Report subjects of changes from before this date apart. Default: the date of `bench run --cutoff`.",
        ),
    ] = None,
    format_name: FormatOption = FORMATS[0],
    storage: StorageSettings,
) -> None:
    """Report runs of a set: averages with 95 % intervals over families, bounds, differences.

    It reads stored rollouts: no model is called, no container started, and the report is the same each time.

    Example: mergemill bench report review-1/react/M@step-200 --against review-1/react/M@step-100 --by language
    """
    # A wrong option is reported without loading the metrics.
    from mergemill.bench.metrics import DEFAULT_METRICS, load_metric  # noqa: PLC0415
    from mergemill.bench.reports import ReportRequest, build_report  # noqa: PLC0415
    from mergemill.bench.review_material import ReviewMaterials  # noqa: PLC0415

    if format_name not in FORMATS:
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join(FORMATS)}")
    metrics = [load_metric(word) for word in dict.fromkeys(split_words(metric) or DEFAULT_METRICS)]
    with Store.open(storage.db, create=False) as store:
        base = resolve_run(store, against) if against else None
        chosen = {run.id: run for run in (resolve_run(store, word) for word in runs)}
        if base is not None and base.id in chosen:
            raise UsageError("--against names a run that is to be compared with it", advice="name another run")
        request = ReportRequest(
            runs=tuple(chosen.values()),
            metrics=metrics,
            by=tuple(split_words(by)),
            against=base,
            cutoff=parse_date(cutoff),
        )
        report = build_report(store, ReviewMaterials.open(storage, open_artifacts(storage)), request)
    print_report(report, format_name)


def print_report(report: Mapping[str, Any], format_name: str) -> None:
    """Print a report in one of `FORMATS`."""
    from mergemill.bench.reports import (  # noqa: PLC0415 - as in the command
        DIFFERENCES,
        FIGURES,
        list_remarks,
        render_markdown,
    )

    if format_name == "json":
        output.print_text(json.dumps(report, indent=1))
    elif format_name == "markdown":
        output.print_text(render_markdown(report))
    else:
        for remark in list_remarks(report):
            output.print_text(remark)
        for columns, rows in ((FIGURES, report["figures"]), (DIFFERENCES, report["differences"])):
            if rows:
                listed = [{name: row.get(name) for name in columns} for row in rows]
                output.print_rows(listed, columns, as_lines=False, nothing="")


def parse_date(text: str | None) -> str:
    """Return the date of `--cutoff` in ISO form; empty for none.

    Raises:
        UsageError: it is no date.
    """
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError as error:
        raise UsageError(f"--cutoff: {text} is no date", advice="such as 2026-01-31") from error
