"""`mergemill bench judge`: calibration of the judge of findings on labels of people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from core.settings.models import BudgetSettings, JudgeSettings
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import MODEL_SETTINGS, JsonOption, with_settings
from taskdb.artifacts import require_writable_store
from taskdb.records import Task
from taskdb.store import Store

COLUMNS = ("figure", "mean", "low", "high")

app = typer.Typer(add_completion=False)


@app.command("judge")
@with_settings(StorageSettings, *MODEL_SETTINGS, JudgeSettings, BudgetSettings, "ca_bundle")
def judge(
    bench_set: Annotated[str, typer.Argument(metavar="SET", help="Name or file of a set with reviews.")],
    *,
    labels: Annotated[
        Path,
        typer.Option(
            "--labels",
            metavar="FILE",
            readable=False,
            help="Findings with a label: subject, file, first_line, last_line, claim, label (valid or invalid).",
        ),
    ],
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Calibrate the judge of findings on labelled findings, and store the result, which reports name from then on.

    Example: mergemill bench judge review-1 --labels labels.jsonl --llm http://localhost:8000/v1 --model M
    """
    # A wrong option is reported without loading the metrics.
    from mergemill.bench.calibration import calibrate, raise_malformed, read_labels  # noqa: PLC0415
    from mergemill.bench.judging import ReviewJudging  # noqa: PLC0415
    from mergemill.bench.review_material import ReviewMaterials  # noqa: PLC0415
    from mergemill.bench.sets import open_set  # noqa: PLC0415
    from mergemill.execution.services import make_model  # noqa: PLC0415

    with Store.open(settings.storage.db, create=False, writes=True) as store:
        opened = open_set(store, bench_set)
        tasks = store.get_many(Task, [subject.id for subject in opened.subjects])
        artifacts = require_writable_store(settings.storage)
        materials = ReviewMaterials.open(settings.storage, artifacts)
        file = read_labels(labels, list(tasks.values()), materials)
        for row in file.malformed:
            output.print_message(f"{labels}, {row.place}: {row.problem}")
        model = make_model(settings.llm, settings.host)
        if model is None:
            raise UsageError("--llm is missing", advice="name the endpoint of the judge, and --model")
        judging = ReviewJudging(model=model, settings=settings, materials=materials)
        calibration = calibrate(store, artifacts, opened, judging, file.findings)
    if as_json:
        output.print_json(calibration)
    else:
        figures = [name for name, value in calibration.items() if isinstance(value, dict) and "mean" in value]
        output.print_fields((name, value) for name, value in calibration.items() if name not in figures)
        rows = [{"figure": name, **calibration[name]} for name in figures]
        output.print_rows(rows, COLUMNS, as_lines=False, nothing="")
    raise_malformed(file)
