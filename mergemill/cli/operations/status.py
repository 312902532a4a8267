"""`mergemill status`: runs, queue, failures, disk and engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from core.settings.machine import SandboxSettings
from core.settings.mining import QuotaSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings
from mergemill.execution.progress import format_seconds
from mergemill.execution.run_status import ACTIVE_STATES

RUN_COLUMNS = ("run", "command", "state", "host", "elapsed", "done", "rate", "left", "failed", "sources")
STEP_COLUMNS = ("stage", "name", "elapsed", "host", "run")

app = typer.Typer(add_completion=False)


@app.command("status")
@with_settings(StorageSettings, QuotaSettings, "sandbox")
def status(
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Show at most N ended runs.")] = 5,
    watch: Annotated[
        float | None,
        typer.Option("--watch", min=0.1, metavar="SECONDS", help="Show it again every so many seconds, until Ctrl-C."),
    ] = None,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    sandbox: SandboxSettings,
    quota: QuotaSettings,
) -> None:
    """Show what runs where, the queue, rates, failures, disk and engine.

    Example: mergemill status --watch 5
    """
    from mergemill.operations.status import collect_status  # noqa: PLC0415 - a wrong option is reported without the database

    while True:
        collected = collect_status(storage, sandbox, quota, limit)
        if as_json:
            output.print_json(collected)
        else:
            if watch is not None:
                output.clear_terminal()
            _print_status(collected)
        if watch is None:
            return
        output.flush()
        time.sleep(watch)


def _print_status(report: Mapping[str, Any]) -> None:
    output.print_rows(map(_format_run, report["runs"]), RUN_COLUMNS, as_lines=False, nothing="no run left its status")
    steps = [
        {
            **step,
            "elapsed": format_seconds(step["seconds"]),
            "host": step.get("host") or run["host"],
            "run": run["id"],
        }
        for run in report["runs"]
        if run["state"] in ACTIVE_STATES
        for step in run["running"]
    ]
    if steps:
        output.print_text("\nrunning now")
        output.print_rows(steps, STEP_COLUMNS, as_lines=False, nothing="")
    if report["failures"]:
        output.print_text("\nfailures of these runs, to be tried again by the same command")
        output.print_rows(report["failures"], (), as_lines=False, nothing="")
    if report["quotas"]:
        output.print_text("\nwaiting because of quotas")
        output.print_rows(report["quotas"], (), as_lines=False, nothing="")
    output.print_text("")
    waiting = ", ".join(f"{stage} {n}" for stage, n in report["queue"].items())
    fields = [("queue", waiting), ("certified", format_count(report["certified"], "task"))]
    output.print_fields([*fields, ("disk", _format_disk(report["disk"])), ("engine", _format_engine(report["engine"]))])


def _format_run(run: Mapping[str, Any]) -> dict[str, Any]:
    left = run["seconds_left"]
    return {
        "run": run["id"],
        "command": run["command"],
        "state": run["state"],
        "host": run["host"],
        "elapsed": format_seconds(run["seconds"]),
        "done": f"{run['done']} of {run['total']}",
        "rate": f"{run['rate']}/h",
        "left": None if left is None else format_seconds(left),
        "failed": sum(counts["failed"] for counts in run["stages"].values()),
        "sources": run["sources"],
    }


def _format_disk(disk: Mapping[str, Any]) -> str:
    return f"{_format_bytes(disk['free_bytes'])} of {_format_bytes(disk['total_bytes'])} free at {disk['folder']}"


def _format_engine(engine: Mapping[str, Any] | None) -> str:
    if engine is None:
        return "none is used"
    if engine["problem"]:
        return str(engine["problem"])
    disk = _format_disk(engine["disk"]) if engine["disk"] else "its disk is on another machine"
    containers = format_count(engine["containers"], "container")
    return f"{disk}; images take {_format_bytes(engine['image_bytes'])}; {containers}, {engine['leftovers']} left over"


def _format_bytes(size: int) -> str:
    from mergemill.execution.images.budget import format_bytes  # noqa: PLC0415 - only this command

    return format_bytes(size)
