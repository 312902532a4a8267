"""Events that programs of agents print: a JSON object on each line, among lines of other text."""

from __future__ import annotations

import json
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
    """Return the last event whose `type` is one of some kinds; an empty one where there is none."""
    return next((event for event in reversed(read_events(output)) if event.get("type") in kinds), {})


def make_failure(reason: str, detail: object, output: str) -> AgentEnd:
    """Return the end of an agent that fails, with its detail in one line."""
    return AgentEnd(reason=reason, detail=" ".join(str(detail).split())[:MAX_DETAIL], output=output)
