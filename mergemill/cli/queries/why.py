"""`mergemill why`: every stage, attempt and rejection of a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from core.errors import InputError, UsageError
from core.settings.mining import QuotaSettings
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import IdArgument, JsonOption, with_settings
from mergemill.cli.queries.change_report import print_change_report
from mergemill.cli.queries.step_reports import print_report
from mergemill.execution.quotas import RepositoryQuotas, load_quotas
from taskdb.artifacts import open_artifacts
from taskdb.queries import tasks as queries
from taskdb.queries.attempts import find_transcript
from taskdb.queries.evidence import rank_verdict
from taskdb.queries.question_histories import look_up_question
from taskdb.queries.simulations import look_up_simulation
from taskdb.queries.world_histories import look_up_world
from taskdb.records import Stage
from taskdb.store import Store

app = typer.Typer(add_completion=False)
MESSAGE_CHARACTERS = 4000
"""Characters printed of each message and tool result of a conversation."""


@app.command("why")
@with_settings(StorageSettings, QuotaSettings)
def why(
    change: IdArgument,
    log: Annotated[bool, typer.Option("--log", help="Print the log of its rejection instead.")] = False,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Print the model's conversation about its build instead.")
    ] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    quota: QuotaSettings,
) -> None:
    """Show every stage, attempt and rejection of one change.

    A world, a scenario, a seed, a simulated conversation or a question has a story, too, where no change has its name.

    Example: mergemill why pallets__flask-5063 --log
    """
    with Store.open(storage.db, create=False) as store:
        try:
            pull_request, report = queries.look_up_change(store, change)
        except InputError:
            other = look_up_world(store, change) or look_up_simulation(store, change) or look_up_question(store, change)
            if other is None:
                raise
            _print_other(other, storage, log=log, conversation=conversation, as_json=as_json)
            return
        log_hash = queries.find_rejection_log(store, pull_request)
        transcript = find_transcript(store, pull_request)
        if option := _find_quota(report, load_quotas(store, quota), pull_request.repo):
            report["waiting_for"] = option
        ranks = None if as_json else rank_verdict(store, report["verdict"])
    if log:
        if log_hash is None:
            raise InputError(f"{report['name']} has no log of a rejection")
        output.print_text(open_artifacts(storage).get_text(log_hash))
    elif conversation:
        _print_conversation(report["name"], transcript, storage)
    elif as_json:
        output.print_json(report)
    else:
        print_change_report(report, has_log=log_hash is not None, has_conversation=transcript is not None, ranks=ranks)


def _find_quota(report: Mapping[str, Any], quotas: RepositoryQuotas, repo: str) -> str | None:
    """Return the option of the quota by which a change waits; None where it waits for none or is finished."""
    events = report["events"]
    if not events or not events[-1]["ok"] or events[-1]["stage"] == Stage.CERTIFY:
        return None
    return quotas.find_reached(repo, is_begun=events[-1]["stage"] != Stage.MINE)


def _print_other(
    report: dict[str, Any], storage: StorageSettings, *, log: bool, conversation: bool, as_json: bool
) -> None:
    """Print the history of something that is no change."""
    if conversation:
        raise UsageError(f"{report['name']} is no change, and nothing was built for it")
    print_report(report, storage, log=log, as_json=as_json)


def _print_conversation(name: str, transcript: str | None, storage: StorageSettings) -> None:
    from builders.agent.transcript import Transcript  # noqa: PLC0415 - only --conversation needs the builders

    if transcript is None:
        raise InputError(f"no model was queried for {name}")
    content = open_artifacts(storage).get(transcript)
    output.print_text(Transcript.from_bytes(content).format_markdown(shown=MESSAGE_CHARACTERS))
