"""Histories: counted by the server's usage, cleared before a request, and branches of the trajectory afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from samplers.context.history import ConversationHistory
from samplers.context.rules import CLEARED, PRESETS, ClearingRule
from samplers.exports.conversations import make_conversations
from samplers.trajectories.forest import build_forest
from samplers.trajectories.requests import ModelRequest
from tests.samplers.context.transcripts import OPENING, answer, output
from tests.samplers.trajectories.making import ask, make_contents

TALK = PRESETS["talk"]
assert isinstance(TALK, ClearingRule)
SMALL = replace(TALK, window=100, trigger=0.5, last=1)
"""A rule that clears from 51 tokens on."""


def respond(message: dict[str, Any], n_tokens: int | None) -> dict[str, Any]:
    usage = {} if n_tokens is None else {"usage": {"prompt_tokens": n_tokens - 1, "completion_tokens": 1}}
    return {"choices": [{"message": message}], **usage}


def play(rule: ClearingRule, n_turns: int, n_tokens: int | None) -> tuple[ConversationHistory, list[ModelRequest]]:
    """Return a history of turns, and their requests. `n_tokens`: those of an output, as the server counts."""
    history, requests = ConversationHistory(rule), list[ModelRequest]()
    for message in OPENING:
        history.append(message)
    for number in range(1, n_turns + 1):
        sent = [dict(message) for message in history.prepare()]
        whole = answer(number)
        requests.append(ask(number, sent, whole))
        n_outputs = sum(message["role"] == "tool" and message["content"] != CLEARED for message in sent)
        size = None if n_tokens is None else 2 + n_outputs * n_tokens
        assert history.append_answer(respond(whole, size)) == whole
        history.append(output(number))
    return history, requests


def test_a_history_is_cleared_as_soon_as_the_server_counts_more_than_the_share() -> None:
    _, requests = play(SMALL, 6, 20)
    cleared = [sum(message["content"] == CLEARED for message in request.messages) for request in requests]
    # The outputs of all but the last answer are cleared at once, and no more for some turns.
    assert cleared == [0, 0, 0, 2, 2, 4]


def test_what_the_server_has_not_counted_is_estimated() -> None:
    history = ConversationHistory(replace(SMALL, window=10_000))
    history.append({"role": "user", "content": "x" * 4000})
    estimate = history.count_tokens()
    assert 1000 < estimate < 1020
    history.append_answer(respond(answer(1), 300))
    assert history.count_tokens() == 300
    history.append(output(1, "y" * 400))
    assert 400 < history.count_tokens() < 420
    _, requests = play(SMALL, 3, None)
    assert CLEARED in [message["content"] for message in requests[-1].messages]


@pytest.mark.parametrize(
    ("first", "parents"),
    [
        (1, (None, 0, 1, 0, 0, 0)),
        # Not even the first answer is as it was, so that the history goes on in a trajectory of its own.
        (0, (None, 0, 1, None, 3, None)),
    ],
)
def test_a_cleared_history_starts_a_branch_and_each_answer_is_trained_once(
    first: int, parents: tuple[int | None, ...]
) -> None:
    _, requests = play(replace(SMALL, first=first), 6, 20)
    assert build_forest(requests).parents == parents
    trained = [
        (exchange, made.messages[at])
        for content in make_contents(requests)
        for made in make_conversations(content, per_request=False)
        for at, exchange in enumerate(made.exchanges)
        if exchange is not None
    ]
    assert sorted(exchange for exchange, _ in trained) == [1, 2, 3, 4, 5, 6]
    assert all(message == answer(exchange) for exchange, message in trained)
