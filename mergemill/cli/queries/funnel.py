"""`mergemill funnel`: how many changes passed each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

import typer

from core.errors import UsageError
from core.settings.mining import QuotaSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings
from mergemill.cli.queries.step_reports import print_curves, print_step_funnel
from taskdb.queries import tasks as queries
from taskdb.queries.derivation_counts import count_of_environments
from taskdb.queries.question_histories import compute_question_funnel
from taskdb.queries.questions import list_samples
from taskdb.queries.simulations import compute_simulation_funnel
from taskdb.queries.world_histories import compute_world_funnel
from taskdb.store import Store

app = typer.Typer(add_completion=False)


class FunnelGroup(StrEnum):
    """Values of `--by`."""

    KIND = "kind"
    SIZE = "size"
    REPO = "repo"


class FunnelSubject(StrEnum):
    """Values of `--of`."""

    CHANGES = "changes"
    WORLDS = "worlds"
    SIMULATIONS = "simulations"
    QUESTIONS = "questions"


FUNNEL_COLUMNS: dict[FunnelGroup, Literal["change_kind", "size", "repo"]] = {
    FunnelGroup.KIND: "change_kind",
    FunnelGroup.SIZE: "size",
    FunnelGroup.REPO: "repo",
}


@app.command("funnel")
@with_settings(StorageSettings, QuotaSettings)
def funnel(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            show_default=False,
            help="Count only these sources; of simulations, these domains; of questions, these corpora.",
        ),
    ] = None,
    *,
    of: Annotated[
        FunnelSubject,
        typer.Option(
            "--of", help="Count changes, synthesised worlds, simulated conversations or questions over corpora."
        ),
    ] = FunnelSubject.CHANGES,
    repo: Annotated[
        str | None, typer.Option("--repo", metavar="OWNER/NAME", help="Count only this repository.")
    ] = None,
    by: Annotated[
        FunnelGroup | None, typer.Option("--by", help="Print a row for each kind of change, size or repository.")
    ] = None,
    losses: Annotated[
        bool, typer.Option("--losses", help="Print each reason with its share, and what would give a task instead.")
    ] = False,
    as_json: JsonOption = False,
    storage: StorageSettings,
    quota: QuotaSettings,
) -> None:
    """Count how many changes passed each stage, and why the others did not.

    Worlds, simulated conversations and questions have steps of their own, and are never counted among the changes.
    Questions have turns and accuracy by round, too, with differences to the first round paired by walk.

    Example: mergemill funnel --by repo
    """
    if by and repo:
        raise UsageError("--by and --repo exclude each other")
    if losses and (by or of is not FunnelSubject.CHANGES):
        raise UsageError(f"--losses and {'--by' if by else '--of'} exclude each other")
    if of is not FunnelSubject.CHANGES:
        if by or repo:
            raise UsageError(f"--{'by' if by else 'repo'} is for changes, and {of.value} have no repository")
        _print_steps(of, sources or (), storage, as_json=as_json)
        return
    from mergemill.execution.quotas import list_waiting  # noqa: PLC0415 - not for worlds and simulations
    from mergemill.execution.sources import resolve_source  # noqa: PLC0415 - only this command needs the miner

    with Store.open(storage.db, create=False) as store:
        resolved = [resolve_source(source, storage, store) for source in sources or ()]
        if by:
            counts = queries.compute_funnel_by(store, FUNNEL_COLUMNS[by], resolved)
            output.print_rows(counts, (), as_lines=as_json, nothing="no change was mined")
            return
        if losses:
            from mergemill.pipeline.losses import compute_losses  # noqa: PLC0415 - only here are conditions printed

            rows = compute_losses(store, resolved, repo)
            output.print_rows(rows, (), as_lines=as_json, nothing="no change was rejected")
            return
        stages = queries.compute_funnel(store, resolved, repo)
        examples = queries.find_examples(store, resolved, repo)
        of_environments = count_of_environments(store, resolved, repo)
        quotas = [row for row in list_waiting(store, quota) if repo in (None, row["repo"])]
    if as_json:
        output.print_rows(stages, (), as_lines=True, nothing="")
        return
    print_funnel(stages, examples)
    for row in of_environments:
        tasks = f"{format_count(row['tasks'], row['kind'] + ' task')}, {row['certified']} of them certified"
        changes = f"{format_count(row['changes'], 'change')}, {row['rejected']} of them rejected"
        output.print_text(f"{tasks}, from the environments of {changes}")
    if quotas:
        output.print_text("")
        output.print_rows(quotas, (), as_lines=False, nothing="")


def _print_steps(of: FunnelSubject, names: Sequence[str], storage: StorageSettings, *, as_json: bool) -> None:
    """Print the steps of worlds (of some sources), of simulations (of some domains) or of questions (of corpora)."""
    curves: list[dict[str, Any]] = []
    with Store.open(storage.db, create=False) as store:
        if of is FunnelSubject.WORLDS:
            rows, examples = compute_world_funnel(store, names)
        elif of is FunnelSubject.QUESTIONS:
            from mergemill.explore.curves import compute_curves  # noqa: PLC0415 - only here are intervals needed

            rows, examples = compute_question_funnel(store, names)
            curves = compute_curves(list_samples(store, names))
        else:
            from simulators.post_processing.steps import STEPS  # noqa: PLC0415 - only here are the steps needed

            rows, examples = compute_simulation_funnel(store, [step.name for step in STEPS], names)
    if as_json:
        output.print_rows([*rows, *curves], (), as_lines=True, nothing="")
        return
    print_step_funnel(rows, examples, "Show one with: mergemill why NAME")
    if curves:
        output.print_text("")
        print_curves(curves)


def print_funnel(stages: Sequence[Mapping[str, Any]], examples: Mapping[tuple[str, str], str]) -> None:
    """Print the rows of `taskdb.queries.tasks.compute_funnel` and a change for each (stage, reason)."""
    mined, candidates, certified = stages[0]["in"], stages[0]["out"], stages[-1]["out"]
    rows = [{**row, "rejected": sum(row["rejected"].values())} for row in stages]
    output.print_rows(rows, ("stage", "in", "out", "rejected", "waiting"), as_lines=False, nothing="")
    reasons = [
        {"stage": row["stage"], "rejected": n, "reason": reason, "example": examples.get((row["stage"], reason))}
        for row in stages
        for reason, n in row["rejected"].items()
    ]
    output.print_text("")
    if reasons:
        output.print_rows(reasons, ("stage", "rejected", "reason", "example"), as_lines=False, nothing="")
        output.print_text("")
    share = f" ({100 * certified / candidates:.0f} %)" if candidates else ""
    text = f"{format_count(mined, 'change')}, {format_count(candidates, 'candidate')}"
    output.print_text(f"{text}, {certified} of them certified{share}")
    if reasons:
        output.print_text("Show one change with: mergemill why NAME")
