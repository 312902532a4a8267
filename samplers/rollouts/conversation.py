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
from samplers.trajectories.requests import Json, ModelRequest
from taskdb.records.instructions import InstructionSource


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
    turns = TurnCounter(subject.guidance.turns)
    return write_submission(patch, list(_iterate_answers(exchanges, turns)), missing, feedback)


def pack_requests(
    patch: bytes, requests: Sequence[ModelRequest], turns: Sequence[str], deliveries: Mapping[str, str]
) -> bytes:
    """Return the submission of a conversation that others recorded, whose format may have left out system and tools.

    Args:
        patch: difference of the tree.
        requests: requests with their answers, in their order.
        turns: messages of the user after the first.
        deliveries: constraint whose wording one of these brings -> key of the message, as of `Subject.deliveries`.
    """
    counter = TurnCounter(turns)
    answers = [
        ModelAnswer(exchange=request.exchange, turn=counter.find_turn(request.messages), message=request.answer)
        for request in requests
        if request.answer is not None
    ]
    reached = {f"{InstructionSource.TURN}-{turn}" for turn in counter.reached}
    return write_submission(patch, answers, [name for name, key in deliveries.items() if key not in reached])


class TurnCounter:
    """Turn of the user to which each request of a conversation belongs, by the messages that it has.

    Args:
        turns: messages of the user after the first.
    """

    def __init__(self, turns: Sequence[str]) -> None:
        self._texts = {number: squeeze(text) for number, text in enumerate(turns, 2)}
        self.reached: set[int] = set()
        """Turns whose messages were in a request."""

    def find_turn(self, messages: Sequence[Json]) -> int:
        """Return the turn of the next request, from 1."""
        said = RequestTexts.of(messages, ()).parts[USER_ROLE]
        self.reached |= {number for number, text in self._texts.items() if text in said}
        return max(self.reached, default=1)  # a summary of the history may have lost the text


def _iterate_answers(exchanges: Sequence[Exchange], turns: TurnCounter) -> Iterator[ModelAnswer]:
    """Yield the answers to requests that offer tools: others, such as for a title, are no part of the work."""
    for exchange in exchanges:
        messages, tools = to_chat_messages(json.loads(exchange.request), exchange.upstream_dialect)
        if exchange.response is None or not tools:
            continue
        answer = to_chat_answer(exchange.response, exchange.upstream_dialect)
        yield ModelAnswer(exchange=exchange.exchange, turn=turns.find_turn(messages), message=answer)
