"""Token rows: a merged tree has the loss and the derivative of its requests, and every answer once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from samplers.trajectories.content import read_content, write_content
from samplers.trajectories.layouts import TokenRow, build_attention_mask, make_request_rows, merge_requests
from tests.samplers.trajectories.making import (
    SYSTEM,
    TASK,
    VOCABULARY,
    ask,
    ask_tokens,
    call,
    make_contents,
    make_random_requests,
)

WIDTH = 8
STEP = 1e-20


class TinyModel:
    """One layer of attention with positions, in complex numbers: the imaginary part of a loss is its derivative."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.shapes = {"embedding": (VOCABULARY, WIDTH), "position": (64, WIDTH), "head": (WIDTH, VOCABULARY)}
        self.shapes |= dict.fromkeys(("query", "key", "value"), (WIDTH, WIDTH))
        self.weights = {name: rng.normal(size=shape) for name, shape in self.shapes.items()}
        self.direction = {name: rng.normal(size=shape) for name, shape in self.shapes.items()}

    def compute_loss(self, row: TokenRow) -> complex:
        """Return the loss of a row, and in its imaginary part the derivative along the direction."""
        w = {name: value + 1j * STEP * self.direction[name] for name, value in self.weights.items()}
        hidden = w["embedding"][row.token_ids] + w["position"][row.position_ids]
        scores = (hidden @ w["query"]) @ (hidden @ w["key"]).T / WIDTH
        mask = build_attention_mask(row.parents)
        raised = np.where(mask, np.exp(scores - np.where(mask, scores.real, -np.inf).max(1, keepdims=True)), 0)
        mixed = hidden + raised / raised.sum(1, keepdims=True) @ (hidden @ w["value"])
        logits = mixed @ w["head"]
        shifted = logits - logits.real.max(1, keepdims=True)
        logps = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        trained = np.flatnonzero(row.loss_mask)
        loss: complex = -logps[row.parents[trained], row.token_ids[trained]].sum()
        return complex(loss.real, loss.imag / STEP)


@pytest.mark.parametrize("seed", range(60))
def test_a_merged_tree_has_the_loss_and_the_derivative_of_its_requests(seed: int) -> None:
    model = TinyModel(seed)
    for content in make_contents(make_random_requests(seed)):
        apart = sum((model.compute_loss(row) for row in make_request_rows(content)), 0j)
        merged = model.compute_loss(merge_requests(content))
        assert merged == pytest.approx(apart, rel=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_every_answer_is_trained_once_behind_its_own_prompt(seed: int) -> None:
    requests = make_random_requests(seed)
    paths: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for content in make_contents(requests):
        for row in (merge_requests(content), *make_request_rows(content)):
            for exchange in set(row.exchanges[row.loss_mask].tolist()):
                answer = np.flatnonzero(row.exchanges == exchange)
                prompt = trace(row, int(row.parents[answer[0]]))
                paths.setdefault(exchange, []).append((prompt, tuple(row.token_ids[answer].tolist())))
    wanted = {request.exchange: [(request.prompt_token_ids, request.completion_token_ids)] * 2 for request in requests}
    assert paths == wanted


def trace(row: TokenRow, token: int) -> tuple[int, ...]:
    path: list[int] = []
    while token >= 0:
        assert row.position_ids[token] == depth(row, token)
        path.append(int(row.token_ids[token]))
        token = int(row.parents[token])
    return tuple(reversed(path))


def depth(row: TokenRow, token: int) -> int:
    return 0 if row.parents[token] < 0 else depth(row, int(row.parents[token])) + 1


def test_one_changed_token_starts_a_branch() -> None:
    opening = ask_tokens(0, [1, 2, 3], [4, 5])
    continued = ask_tokens(1, [1, 2, 3, 4, 5, 6, 7, 8], [9])
    changed = ask_tokens(2, [1, 2, 3, 4, 5, 6, 10, 8], [9])
    [content] = make_contents([opening, continued, changed])
    row = merge_requests(content)
    assert row.token_ids.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8, 9]
    assert row.parents.tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 7, 5, 9, 10]
    assert row.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 6, 7, 8]
    assert row.exchanges[row.loss_mask].tolist() == [0, 0, 1, 2]
    assert len(content.leaves) == 2


def test_equal_answers_of_a_retry_are_trained_each() -> None:
    [content] = make_contents([ask_tokens(0, [1, 2], [3]), ask_tokens(1, [1, 2], [3])])
    row = merge_requests(content)
    assert row.token_ids.tolist() == [1, 2, 3, 3]
    assert row.n_trained == 2


def test_sampling_log_probs_stand_at_the_tokens_of_their_answer() -> None:
    [content] = make_contents([ask_tokens(0, [1, 2], [3, 4]), ask_tokens(1, [1, 2, 3, 4, 5], [6])])
    row = merge_requests(content)
    assert row.logprobs == pytest.approx(np.array([0, 0, -0.3, -0.4, 0, -0.6]))


def test_without_token_ids_there_is_no_token_row() -> None:
    from samplers.trajectories.content import pack_content  # noqa: PLC0415 - used here alone

    content = pack_content([ask(0, [SYSTEM, TASK], call(0))], [None], has_token_ids=False)
    with pytest.raises(ValueError, match="no token ids"):
        merge_requests(content)


def test_a_content_is_read_as_it_was_written() -> None:
    for seed in range(5):
        for content in make_contents(make_random_requests(seed)):
            data = write_content(content)
            again: Any = read_content(data)
            assert again == content
            assert write_content(again) == data
