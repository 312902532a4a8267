"""Conversation of a rollout as part of its submission: the answers that its model gave, each with its turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from evaluation.instructions.actions import ModelAnswer
from evaluation.instructions.submission import FeedbackTurn, write_submission
from samplers.gateway.exchanges import Exchange
from samplers.gateway.translation import to_chat_answer, to_chat_messages
from samplers.rollouts.wordings import USER_ROLE, RequestTexts, squeeze
from samplers.subjects.subject import Subject


def pack_submission(
    patch: bytes,
    exchanges: Sequence[Exchange],
    subject: Subject,
    delivered: Mapping[str, int | None],
    feedback: FeedbackTurn | None = None,
) -> bytes:
    """Return the submission to an instruction task.

    Args:
        patch: difference of the tree.
        exchanges: recorded exchanges of the rollout.
        subject: subject with its guidance.
        delivered: instruction -> first exchange that has it, as `RecordedTraffic.find_delivery` returns it.
        feedback: turn that named broken instructions; None for a first attempt.
    """
    missing = [name for name, key in subject.deliveries.items() if key in delivered and delivered[key] is None]
    return write_submission(patch, list(_iterate_answers(exchanges, subject.guidance.turns)), missing, feedback)


def _iterate_answers(exchanges: Sequence[Exchange], turns: Sequence[str]) -> Iterator[ModelAnswer]:
    """Yield the answers to requests that offer tools: others, such as for a title, are no part of the work."""
    turn = 1
    for exchange in exchanges:
        messages, tools = to_chat_messages(json.loads(exchange.request), exchange.upstream_dialect)
        if exchange.response is None or not tools:
            continue
        said = RequestTexts.of(messages, tools).parts[USER_ROLE]
        reached = [number for number, text in enumerate(turns, 2) if squeeze(text) in said]
        turn = max([turn, *reached])  # a summary of the history may have lost the text
        answer = to_chat_answer(exchange.response, exchange.upstream_dialect)
        yield ModelAnswer(exchange=exchange.exchange, turn=turn, message=answer)
