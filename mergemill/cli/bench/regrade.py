"""`mergemill bench regrade`: stored submissions of runs, graded by the present version of the grader."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.config import Settings
from mergemill.cli import output
from mergemill.cli.bench.score import SCORE_SETTINGS
from mergemill.cli.options import JsonOption, with_settings
from taskdb.queries.bench import name_run, resolve_run
from taskdb.store import Store

if TYPE_CHECKING:
    from mergemill.bench.regrading import RegradedRun

log = logging.getLogger(__name__)

app = typer.Typer(add_completion=False)


@app.command("regrade")
@with_settings(*SCORE_SETTINGS)
def regrade(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Names of runs, or beginnings of their ids.")],
    *,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Grade the stored submissions of runs again, by the present version of the grader.

    No agent and no model of one acts. Scores of this version are left as they are, and the rollouts keep their first
    scores. The same command continues.

    Example: mergemill bench regrade review-1/react/M@step-100 review-1/react/M@step-200
    """
    from mergemill.bench.regrading import RunRegrader  # noqa: PLC0415 - a wrong option needs no grader
    from mergemill.grading.grading import TaskGrader  # noqa: PLC0415
    from mergemill.grading.progress import make_score_progress  # noqa: PLC0415

    quiet = as_json or not log.isEnabledFor(logging.WARNING)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        chosen = {run.id: run for run in (resolve_run(store, word) for word in runs)}
        regrader = RunRegrader(
            grader=TaskGrader(store, settings),
            make_progress=lambda total: make_score_progress(total, as_json=False, quiet=quiet),
            notify=output.print_message,
        )
        results = []
        for run in chosen.values():
            result = regrader.regrade(run)
            _print_result(result, as_json=as_json)
            results.append(result)
    for result in results:
        result.raise_failures()


def _print_result(result: RegradedRun, *, as_json: bool) -> None:
    row: dict[str, Any] = {
        "run": name_run(result.run),
        "id": result.run.id,
        "scored": result.n_scored,
        "regraded": result.n_regraded,
        "changed": result.n_changed,
        "failed": result.failures.total(),
    }
    if as_json:
        output.print_json(row)
        return
    counted = f"{row['regraded']} of {row['scored']} rollouts graded again, {row['changed']} with another value"
    output.print_text(f"{row['run']}: {counted} ({result.run.id[:12]})")
