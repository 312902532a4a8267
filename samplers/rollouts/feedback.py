"""Feedback to an agent that broke instructions: a further message of the user that names them, and a second attempt.

It goes on with the conversation of the first in the same container. Both attempts are stored; the second has a scaffold
of another name, so that no rate counts it among first attempts.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.instructions.submission import BrokenInstruction

SUFFIX = "-feedback"
"""End of the name of the scaffold of a second attempt."""
_OPENING = "Some of the instructions were not followed:"
_CLOSING = "Put right what can be put right, and keep to all instructions as you do it. Then end as before."


def write_feedback(broken: Sequence[BrokenInstruction]) -> str:
    """Return the message of the user about broken instructions."""
    lines = [f"- {item.text}{f' (seen: {item.quote})' if item.quote else ''}" for item in broken]
    return "\n".join((_OPENING, *lines, "", _CLOSING))
