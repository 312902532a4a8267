"""Steps before the seven of the paper: is there an answer, can it be parsed, is it new."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from backends.llm.response import FINISH_LENGTH
from simulators.conversation import DialogueTurn, TurnRole
from simulators.parsing import parse_released, parse_turns
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedError, DropReason


def check_answer(draft: Draft, context: StepContext) -> Draft:
    """Drop an answer that is empty, or cut off at the limit of its length (the released code takes cut answers)."""
    if draft.is_too_long:
        raise DroppedError(DropReason.TOO_LONG, "the prompt exceeds the context of the simulator")
    if not draft.answer.strip():
        raise DroppedError(DropReason.EMPTY, f"finish reason {draft.finish_reason}")
    if draft.finish_reason == FINISH_LENGTH and not context.options.released_rules:
        raise DroppedError(DropReason.TRUNCATED, "the answer reached --llm-answer-tokens")
    return draft


def parse_answer_text(draft: Draft, context: StepContext) -> Draft:
    """Read the turns; without turns, or with an empty list, the answer is dropped."""
    if context.options.released_rules:
        turns = parse_released(draft.answer)
    else:
        turns = parse_turns(draft.answer, context.pack.markers)
    if not turns:
        raise DroppedError(DropReason.UNPARSABLE, f"no marker begins a line; it begins {draft.answer.strip()[:60]!r}")
    for number, turn in enumerate(turns, 1):
        if turn.role is TurnRole.SYSTEM:
            raise DroppedError(DropReason.UNPARSABLE, f"turn {number} is of the system")
        if not turn.text:
            raise DroppedError(DropReason.EMPTY_TURN, f"turn {number} ({turn.role.value})")
    return replace(draft, turns=turns, n_generated=len(turns))


def drop_duplicate(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation whose texts of person and agent are those of an earlier."""
    digest = hash_texts(draft.turns)
    if digest in context.seen.digests:
        raise DroppedError(DropReason.DUPLICATE)
    context.seen.digests.add(digest)
    return draft


def hash_texts(turns: tuple[DialogueTurn, ...]) -> str:
    """Return the hash of the texts of person and agent in their order; calls and results do not count."""
    texts = [f"{turn.role.value} {turn.text}" for turn in turns if turn.role in (TurnRole.HUMAN, TurnRole.ASSISTANT)]
    return hashlib.sha256("\x00".join(texts).encode(errors="replace")).hexdigest()
