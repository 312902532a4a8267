"""Events that programs of agents print: a JSON object on each line, among lines of other text."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from samplers.scaffolds.base import AgentEnd

MAX_DETAIL = 300


def read_events(output: str) -> list[dict[str, Any]]:
    """Return the objects of an output, in order."""
    events = []
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            event = json.loads(line)
        except ValueError:  # a line that the limit of output cut
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def find_last_event(output: str, *kinds: str) -> dict[str, Any]:
    """Return the last event whose `type` is among some kinds; an empty event where there is none."""
    return next((event for event in reversed(read_events(output)) if event.get("type") in kinds), {})


def make_failure(reason: str, error: object, output: str) -> AgentEnd:
    """Return the end of an agent that fails, with the text of its error in a single line."""
    return AgentEnd(reason=reason, detail=" ".join(read_error(error).split())[:MAX_DETAIL], output=output)


def read_error(error: object) -> str:
    """Return the text of an error, which programs print as it is, in an object or a list, or as JSON in a text."""
    if isinstance(error, str) and error.startswith("{"):
        with suppress(ValueError):
            return read_error(json.loads(error))
    if isinstance(error, list):
        return "; ".join(map(read_error, error))
    if isinstance(error, dict):
        inner = next((error[key] for key in ("error", "data", "message") if error.get(key)), None)
        return read_error(inner) if inner is not None else json.dumps(error)
    return "" if error is None else str(error)
