"""`mergemill explore show`: a question with clues, certificate and rounds."""

from __future__ import annotations

from typing import Any

import typer

from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import IdArgument, JsonOption, with_settings
from mergemill.explore.reports import describe_question
from taskdb.artifacts import open_artifacts
from taskdb.queries.questions import find_question
from taskdb.store import Store

FIELDS = ("id", "name", "seed", "round", "environment", "answer_type", "license", "model", "status", "reason", "detail")
CLUE_COLUMNS = ("text", "operation", "entity", "value", "page")
ROUND_COLUMNS = ("round", "status", "reason", "best", "solved", "attempts", "mean_turns")

app = typer.Typer(add_completion=False)


@app.command("show")
@with_settings(StorageSettings)
def show(name: IdArgument, as_json: JsonOption = False, *, storage: StorageSettings) -> None:
    """Show a question with its clues, certificate, rivals and the rounds of its walk; of a walk its best question.

    Example: mergemill explore show handbook-1a2b3c4d
    """
    with Store.open(storage.db, create=False) as store:
        report = describe_question(store, open_artifacts(storage), find_question(store, name))
    if as_json:
        output.print_json(report)
    else:
        _print_question(report)


def _print_question(report: dict[str, Any]) -> None:
    output.print_fields((name, report[name]) for name in FIELDS)
    output.print_text(f"\n{report['text']}\n\nanswer: {report['answer']} ({report['answer_page']})\n")
    output.print_rows(report["clues"], CLUE_COLUMNS, as_lines=False, nothing="no clues")
    output.print_text("")
    output.print_rows(report["rounds"], ROUND_COLUMNS, as_lines=False, nothing="no rounds")
    certificate = report["certificate"]
    if certificate is None:
        output.print_text("\nno certificate")
        return
    output.print_text("\ncertificate")
    output.print_rows(certificate["gates"], ("name", "value", "limit", "detail"), as_lines=False, nothing="")
    if certificate["rivals"]:
        output.print_text("")
        output.print_rows(certificate["rivals"], ("answer", "origin", "fails", "detail"), as_lines=False, nothing="")
    output.print_text(f"\npath of {certificate['n_path_calls']} calls, evidence {', '.join(certificate['evidence'])}")
