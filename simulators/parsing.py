"""From a simulator's text to turns: a line that begins with a marker opens a turn, and other lines belong to it."""

from __future__ import annotations

from collections.abc import Mapping

from simulators.conversation import DialogueTurn, TurnRole

RELEASED_MARKERS: Mapping[str, TurnRole] = {
    "HUMAN:": TurnRole.HUMAN,
    "H:": TurnRole.HUMAN,
    "ASSISTANT:": TurnRole.ASSISTANT,
    "A:": TurnRole.ASSISTANT,
    "FUNCTION_CALL:": TurnRole.FUNCTION_CALL,
    "OBSERVATION:": TurnRole.OBSERVATION,
}
"""Markers of the released code, in the order in which it tries them."""


def parse_released(text: str) -> tuple[DialogueTurn, ...]:
    """Return the turns by the rules of the released code: lines lose their indentation, empty lines are left out."""
    return _parse(text, RELEASED_MARKERS, keeps_layout=False)


def parse_turns(text: str, markers: Mapping[TurnRole, str]) -> tuple[DialogueTurn, ...]:
    """Return the turns by the markers of a domain pack; within a turn, indentation and empty lines stay.

    A block of the system, which the prompt forbids, is a turn like the others.
    """
    by_marker = {marker: role for role, marker in markers.items()}
    return _parse(text, by_marker, keeps_layout=True)


def _parse(text: str, markers: Mapping[str, TurnRole], *, keeps_layout: bool) -> tuple[DialogueTurn, ...]:
    opened: list[tuple[TurnRole, list[str]]] = []
    for line in text.strip().split("\n"):
        bare = line.strip()
        marker = next((marker for marker in markers if bare.startswith(marker)), None)
        if marker is not None:
            opened.append((markers[marker], [bare[len(marker) :].strip()]))
        elif opened and keeps_layout:
            opened[-1][1].append(line.rstrip())
        elif opened and bare:
            opened[-1][1].append(bare)
    return tuple(DialogueTurn(role=role, text="\n".join(lines).strip()) for role, lines in opened)
