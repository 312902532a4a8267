"""Text of what became of worlds and simulated conversations: counts by step, and the history of a single one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from taskdb.artifacts import open_artifacts
from taskdb.records.simulations import PREFILTER

WORLD_EVENTS = ("at", "step", "thing", "name", "verdict", "detail")
SIMULATION_EVENTS = ("at", "step", "name", "verdict", "domain", "profile", "simulator", "detail")


def print_step_funnel(rows: Sequence[Mapping[str, Any]], examples: Mapping[tuple[str, str], str], advice: str) -> None:
    """Print the counts of steps, and each reason with an example.

    Args:
        rows: rows with `step`, `in`, `out`, `rejected` (reason -> number), and `waiting` if things can wait there.
        examples: (step, reason) -> name.
        advice: last line where something was rejected.
    """
    columns = [name for name in ("step", "in", "out", "rejected", "waiting") if name in rows[0]]
    counted = [{**row, "rejected": sum(row["rejected"].values())} for row in rows]
    output.print_rows(counted, columns, as_lines=False, nothing="")
    reasons = [
        {"step": row["step"], "rejected": n, "reason": reason, "example": examples.get((row["step"], reason))}
        for row in rows
        for reason, n in row["rejected"].items()
    ]
    if reasons:
        output.print_text("")
        output.print_rows(reasons, ("step", "rejected", "reason", "example"), as_lines=False, nothing="")
        output.print_text(f"\n{advice}")


def print_curves(curves: Sequence[Mapping[str, Any]]) -> None:
    """Print turns and accuracy by round, as `mergemill.explore.curves.compute_curves` returns them."""
    rows = [
        {
            "round": row["round"],
            "questions": row["questions"],
            "accuracy": _format_figure(row["accuracy"], row["low"], row["high"]),
            "turns": "-" if row["turns"] is None else f"{row['turns']:.1f}",
            "pairs": row["pairs"] or None,
            "accuracy change": _format_change(row["accuracy_change"]),
            "turns change": _format_change(row["turns_change"]),
        }
        for row in curves
    ]
    output.print_rows(rows, (), as_lines=False, nothing="")


def _format_figure(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.2f}" if low is None or high is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _format_change(change: Mapping[str, float] | None) -> str | None:
    return None if change is None else f"{change['difference']:+.2f} [{change['low']:+.2f}, {change['high']:+.2f}]"


def print_report(report: Mapping[str, Any], storage: StorageSettings, *, log: bool, as_json: bool) -> None:
    """Print what became of something: its history, the log of its newest rejection, or JSON.

    `report` is what `look_up_world` (`taskdb.queries.world_histories`) or `look_up_simulation`
    (`taskdb.queries.simulations`) returned.

    Raises:
        InputError: there is no such log.
    """
    if log:
        print_rejection_log(report, storage)
    elif as_json:
        output.print_json(report)
    else:
        print_history(report)


def print_history(report: Mapping[str, Any]) -> None:
    """Print the events of a report, as `print_report` takes it."""
    has_things = report["of"] != "simulations"
    source = f" of {report['source']}" if report.get("source") else ""
    position = _format_position(report["events"])
    output.print_text(f"{report['name']}{source} (environment: {report['environment']}): {position}")
    output.print_text("")
    events = [{**event, "verdict": "ok" if event["ok"] else event["reason"]} for event in report["events"]]
    output.print_rows(events, WORLD_EVENTS if has_things else SIMULATION_EVENTS, as_lines=False, nothing="")
    if scenarios := report.get("scenarios"):
        output.print_text("")
        output.print_rows(scenarios, ("name", "status", "reason"), as_lines=False, nothing="")
    if report.get("log"):
        group = "explore " if report["of"] == "questions" else ""
        output.print_text(f"\nlog: mergemill {group}why {report['name']} --log")


def _format_position(events: Sequence[Mapping[str, Any]]) -> str:
    """Return where something stands: its last event, but a rejection of a record that has a certificate does not count.

    Of a seed, how many of its conversations were kept.
    """
    if len(names := {event["name"] for event in events if event["step"] != PREFILTER}) > 1 and "thing" not in events[0]:
        kept = {event["name"] for event in events if event["ok"]}
        return f"{len(kept)} of {format_count(len(names), 'conversation')} kept"
    last = events[-1]
    certified = [event for event in events if event["ok"] and "certificate" in event.get("thing", "")]
    if not last["ok"] and any((event["step"], event["name"]) == (last["step"], last["name"]) for event in certified):
        last = certified[-1]
    if not last["ok"]:
        return f"rejected by {last['step']}, {last['reason']}"
    if last in certified:
        return "certified"
    return f"passed {last['step']}" if last["step"] else "kept"


def print_rejection_log(report: Mapping[str, Any], storage: StorageSettings) -> None:
    """Print the log of the newest rejection in a report; raise InputError where there is none."""
    if report.get("log") is None:
        raise InputError(f"{report['name']} has no log of a rejection")
    output.print_text(open_artifacts(storage).get_text(report["log"]))
