"""One change's whole story, in words: where it stands, each stage's verdict, attempts, tasks."""

from __future__ import annotations

from typing import Any

from mergemill.cli import output
from taskdb.records import Stage

EVENT = ("at", "stage", "kind", "verdict", "seconds", "detail")
ATTEMPT = ("number", "by", "edits", "reason", "seconds", "tokens", "cost", "detail")


def tell_story(story: dict[str, Any], *, has_log: bool) -> None:
    """Print what `taskdb.queries.why` found; `has_log`: the log of its rejection was kept."""
    output.text(f"{story['name']} of {story['source']}: {_stands(story['events'])}\n")
    output.text(f"kinds: {kinds_of(story['tags'])}\nstatement: {verdict_of(story['verdict'])}\n")
    events = [{"kind": ""} | event | {"verdict": "ok" if event["ok"] else event["reason"]} for event in story["events"]]
    columns = EVENT if any(event["kind"] for event in events) else tuple(name for name in EVENT if name != "kind")
    output.rows(events, columns, as_lines=False, nothing="nothing was done")
    if len(story["attempts"]) > 1:
        output.text("\nattempts at its environment")
        output.rows(story["attempts"], ATTEMPT, as_lines=False, nothing="")
    output.text("")
    for key in story["tasks"]:
        output.text(f"task: mergemill tasks show {key[:16]}")
    if story["published"]:
        published = story["published"]
        output.text(f"published FAIL_TO_PASS: {published['verdict']}")
        for name in ("fail_to_pass", "pass_to_pass"):
            output.fields((f"{name} {what}", published[name][what]) for what in ("missing", "extra"))
    if has_log:
        output.text(f"log:  mergemill why {story['name']} --log")


def kinds_of(tags: dict[str, Any] | None) -> str:
    """The kinds of a change with the strongest sign of each, in words."""
    if tags is None:
        return "not tagged"
    told = []
    for one in tags["kinds"]:
        sign = f": {one['signs'][0]['rule']} {one['signs'][0]['quote']!r}" if one["signs"] else ""
        told.append(f"{one['kind']} ({one['confidence']:.2f}{sign})")
    leads_to = f"for {' '.join(tags['route'])}" if tags["route"] else tags["stops"]
    return f"{', '.join(told)}; {tags['size']}; {leads_to}"


def verdict_of(verdict: dict[str, Any] | None) -> str:
    """What the judge says of a statement, in words."""
    if verdict is None:
        return "not judged"
    told = f"underspecified {verdict['underspecified']:.2f}, unfair tests {verdict['unfair_tests']:.2f}"
    seen = [f"{finding['rule']} {finding['quote'][:60]!r}" for finding in verdict["findings"]]
    aside = f"set aside for {verdict['set_aside']}" if verdict["set_aside"] else ""
    opinions = f"{len(verdict['opinions'])} opinions" if verdict["opinions"] else ""
    return "; ".join(part for part in (told, aside, opinions, *seen) if part)


def _stands(events: list[dict[str, Any]]) -> str:
    """Where a change stands: what the last event of each kind of task says, and that of the change itself.

    Kinds of which no more is to be told than that they are certified stand together.
    """
    if not events:
        return "nothing was done"
    last = {event.get("kind"): event for event in events}
    certified = [kind for kind, event in last.items() if kind and event["ok"] and event["stage"] == Stage.CERTIFY]
    told = ["certified " + ", ".join(certified)] if certified else []
    told += [f"{kind}: {_said(event)}" for kind, event in last.items() if kind and kind not in certified]
    own = last.get(None)
    if own and not (told and own["ok"]):
        told.append(_said(own))
    return "; ".join(told)


def _said(event: dict[str, Any]) -> str:
    if not event["ok"]:
        return f"rejected by {event['stage']}, {event['reason']}" + (f": {event['detail']}" if event["detail"] else "")
    return (
        "certified" if event["stage"] == Stage.CERTIFY else f"has passed {event['stage']}, the next stage is to be run"
    )
