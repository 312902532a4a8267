"""`mergemill grade`: the score of a submission."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import InputError, Transient, UsageError
from core.files import read_input
from core.settings.machine import ClusterSettings
from mergemill.cli import output
from mergemill.cli.options import GRADING_SETTINGS, JsonOption, PredictionsOption, with_settings
from mergemill.execution.clusters import LOCAL
from taskdb.records import to_json

TaskArgument = Annotated[
    str | None,
    typer.Argument(metavar="[TASK]", help="Name, id or unambiguous beginning of an id of the task."),
]

app = typer.Typer(add_completion=False)


@app.command("grade")
@with_settings(*GRADING_SETTINGS, ClusterSettings)
def grade(
    task: TaskArgument = None,
    *,
    patch: Annotated[
        Path | None, typer.Option("--patch", metavar="FILE", readable=False, help="Grade this patch.")
    ] = None,
    tests: Annotated[
        Path | None,
        typer.Option("--tests", metavar="FILE", readable=False, help="Grade this patch of tests (test-writing tasks)."),
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option("--review", metavar="FILE", readable=False, help="Grade these findings as JSON (review tasks)."),
    ] = None,
    rollout: Annotated[
        Path | None,
        typer.Option(
            "--rollout",
            metavar="FILE",
            readable=False,
            help="Grade this patch with its conversation as JSON (instruction tasks).",
        ),
    ] = None,
    gold: Annotated[bool, typer.Option("--gold", help="Grade the task's gold patch.")] = False,
    noop: Annotated[bool, typer.Option("--noop", help="Grade the empty submission.")] = False,
    predictions: PredictionsOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Add the scores of --predictions to this file; it is continued."),
    ] = None,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Grade one submission, or a file of them, each in fresh containers.

    A container has no network, and of the submission it gets the patch alone. `--workers` and `--cluster` are for
    --predictions.

    Example: mergemill grade pallets__flask-5063.bugfix --patch fix.patch
    """
    given = {"patch": patch, "tests": tests, "review": review, "rollout": rollout}
    files = {form: file for form, file in given.items() if file}
    if predictions is not None:
        if task is not None or files or gold or noop or out is None:
            raise UsageError("--predictions FILE takes --out FILE and neither a task nor a submission")
        from mergemill.cli.grading.predictions import grade_predictions  # noqa: PLC0415 - a single one needs none of it

        grade_predictions(predictions, out, settings, as_json=as_json)
        return
    if settings.cluster.address != LOCAL:
        raise UsageError("--cluster is for --predictions", advice="leave it out for one submission")
    if len(files) + gold + noop != 1:
        raise UsageError("grade takes one of --patch, --tests, --review and --rollout FILE, --gold and --noop")
    if task is None or out is not None:
        raise UsageError("grade takes a TASK, or --predictions FILE with --out FILE")
    from mergemill.grading.grading import grade_submission  # noqa: PLC0415 - a wrong option needs no verifiers

    submission = {form: read_submission(form, file) for form, file in files.items()}
    score = grade_submission(task, submission, settings, gold=gold)
    fields = to_json(score)
    del fields["grader"]  # it is this version
    if not score.parts:  # a score of 0 or 1 has no parts
        del fields["parts"]
    if as_json:
        output.print_json(fields)
    else:
        output.print_fields(fields.items())
    if score.infrastructure_error:
        raise Transient(f"not scored: {score.infrastructure_error}")


def read_submission(form: str, path: Path) -> bytes:
    """Return the content of a file to grade; `form` is its option. White space alone is nothing.

    Raises:
        InputError: it cannot be read.
        UsageError: it holds rows of predictions instead.
    """
    try:
        content = read_input(path)
    except OSError as error:
        raise InputError(f"cannot read the {form} {path}: {error.strerror}") from error
    if not content.strip():
        return b""
    if form in {"patch", "tests"} and _is_json_lines(content):
        raise UsageError(
            f"the {form} {path} holds JSON, not a diff", advice="put the value of `model_patch` into a file"
        )
    return content


def _is_json_lines(content: bytes) -> bool:
    """Return whether the first line is a JSON object, such as a prediction."""
    try:
        return isinstance(json.loads(content.lstrip().split(b"\n", 1)[0]), dict)
    except ValueError:
        return False
