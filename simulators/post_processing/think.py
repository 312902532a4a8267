"""Step 6: the treatment becomes of reasoning in `<think>` tags."""

from __future__ import annotations

import re
from dataclasses import replace

from simulators.conversation import DialogueTurn, TurnRole
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedError, DropReason

ANNOUNCEMENT = "I will call the function {name}.\n\n"
"""Text that the released code puts before a call without reasoning."""
NEVER = "never"
TEXT = "text"
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_INSIDE = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_CALL_NAME = re.compile(r'"name"\s*:\s*"[^"]+?"')
_CALL_ARGUMENTS = re.compile(r'"arguments"\s*:\s*')
_TAGS = re.compile(r"<think>\n|</think>")


def settle_thoughts(draft: Draft, context: StepContext) -> Draft:
    """Step 6: make reasoning visible text as the released code does, or keep it apart from the text."""
    if context.options.released_rules:
        turns, raws = _release_all(draft.turns)
    else:
        turns, raws = _separate_all(draft.turns, context.pack.format.think)
    if context.options.think == TEXT and not context.options.released_rules:
        turns = tuple(_show_reasoning(turn) for turn in turns)
    if not turns:
        raise DroppedError(DropReason.NO_TURNS, "each turn was reasoning alone")
    return draft.add_repairs("think", raws, turns=turns)


def _release_all(turns: tuple[DialogueTurn, ...]) -> tuple[tuple[DialogueTurn, ...], dict[int, str]]:
    made: list[DialogueTurn] = []
    raws: dict[int, str] = {}
    for at, turn in enumerate(turns):
        released = release_thoughts(turn)
        if released is None:
            raws[at] = turn.text
            continue
        if released.text != turn.text and not turn.calls:
            raws[at] = turn.text
        made.append(released)
    return tuple(made), raws


def release_thoughts(turn: DialogueTurn) -> DialogueTurn | None:
    """Return a turn with its reasoning as the released code leaves it; None for a turn that it removes.

    It removes an assistant's turn with reasoning and no call, and reasoning of others without a call; a call without
    reasoning is announced; then tags are removed, a `<think>` only where its line ends behind it.
    """
    text = turn.text
    has_thought = bool(_THOUGHT.search(text))
    has_call = bool(turn.calls) or _looks_like_call(text)
    if has_thought and not has_call:
        if turn.role is TurnRole.ASSISTANT:
            return None
        text = _THOUGHT.sub("", text)
    elif turn.calls and not has_thought:
        text += ANNOUNCEMENT.format(name=turn.calls[0].name)
    return replace(turn, text=_TAGS.sub("", text))


def _looks_like_call(text: str) -> bool:
    """Return whether a text that is not a call has the keys of a call, which the released code takes for a call."""
    return bool(_CALL_NAME.search(text) and _CALL_ARGUMENTS.search(text))


def _separate_all(turns: tuple[DialogueTurn, ...], permission: str) -> tuple[tuple[DialogueTurn, ...], dict[int, str]]:
    """Return the turns with reasoning kept in `reasoning` for the agent's, and removed from the others'."""
    made: list[DialogueTurn] = []
    raws: dict[int, str] = {}
    for at, turn in enumerate(turns):
        if permission == NEVER and (turn.reasoning or _THOUGHT.search(turn.text)):
            raise DroppedError(DropReason.THINK, f"turn {at + 1}: the pack permits no reasoning")
        separated = _separate(turn, at)
        if separated != turn:
            raws[at] = turn.text
        if separated.text or separated.calls:
            made.append(separated)
    return tuple(made), raws


def _separate(turn: DialogueTurn, at: int) -> DialogueTurn:
    """Return a turn without tags in its text."""
    thoughts = _INSIDE.findall(turn.text)
    text = _THOUGHT.sub("", turn.text).strip() if thoughts else turn.text
    if "<think>" in text or "</think>" in text:
        raise DroppedError(DropReason.THINK, f"turn {at + 1}: a tag without its other half")
    if not thoughts:
        return turn
    reasoning = "\n".join(thought.strip() for thought in thoughts)
    return replace(turn, text=text, reasoning=reasoning if turn.is_agent else "")


def _show_reasoning(turn: DialogueTurn) -> DialogueTurn:
    """Return a turn whose reasoning is part of its text."""
    parts = [part for part in (turn.reasoning, turn.text) if part]
    return replace(turn, text="\n\n".join(parts), reasoning="") if turn.reasoning else turn
