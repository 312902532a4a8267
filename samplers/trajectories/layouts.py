"""Token rows of a trajectory for training: a row for each request, or one for the whole tree.

In both every answer is trained once, as the answer to the request that produced it. A merged row has each shared token
once: a token attends to itself and to the tokens before it on its own path (`build_attention_mask`), and its position
is its place on that path. Then loss and gradients are those of the rows of its requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from samplers.trajectories.content import RecordedRequest, TrajectoryContent

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_REQUEST = -1
"""Exchange of a token that no answer has."""


@dataclass(frozen=True, kw_only=True)
class TokenRow:
    """Tokens of a row, all arrays of its length."""

    token_ids: NDArray[Any]
    position_ids: NDArray[Any]
    parents: NDArray[Any]
    """Index of the token before it on its path; -1 for the first."""
    loss_mask: NDArray[Any]
    """True for the tokens of answers."""
    logprobs: NDArray[Any] | None
    """At sampling, 0 outside of answers; None where an answer has none."""
    exchanges: NDArray[Any]
    """Number of the exchange whose answer a token belongs to, or NO_REQUEST."""

    @property
    def n_trained(self) -> int:
        """Number of tokens that are trained."""
        return int(self.loss_mask.sum())


def make_request_rows(content: TrajectoryContent) -> Iterator[TokenRow]:
    """Yield a row for each answered request: its prompt and its answer.

    Raises:
        ValueError: the trajectory has no token ids.
    """
    _require_token_ids(content)
    for place in content.answered:
        builder = _RowBuilder()
        at = -1
        for step in content.trace_path(place)[:-1]:
            at = builder.append(_get_prompt(content, step), at)
            at = builder.append(_get_completion(content, step), at)
        at = builder.append(_get_prompt(content, place), at)
        builder.append_answer(content.requests[place], at)
        yield builder.finish()


def merge_requests(content: TrajectoryContent) -> TokenRow:
    """Return a row with every answered request of the tree; equal beginnings of prompts are in it once.

    Raises:
        ValueError: the trajectory has no token ids.
    """
    _require_token_ids(content)
    builder = _RowBuilder()
    ends: dict[int | None, int] = {None: -1}
    for place in content.answered:
        request = content.requests[place]
        at = builder.append_shared(_get_prompt(content, place), ends[request.parent])
        ends[place] = builder.append_answer(request, at)
    return builder.finish()


def build_attention_mask(parents: NDArray[Any]) -> NDArray[Any]:
    """Return the mask of a row, booleans [n, n]: whether a token (row) attends to another (column)."""
    mask = np.zeros((len(parents), len(parents)), dtype=bool)
    for token, parent in enumerate(parents):
        if parent >= 0:
            mask[token] = mask[parent]
        mask[token, token] = True
    return mask


@dataclass(frozen=True, kw_only=True)
class _TokenRun:
    """A run of tokens, each the parent of the next."""

    start: int
    end: int


class _RowBuilder:
    """A row that grows by segments."""

    def __init__(self) -> None:
        self._flat = np.empty(1024, dtype=np.int64)
        self._size = 0
        self._parents: list[NDArray[Any]] = []
        self._trained: list[tuple[_TokenRun, RecordedRequest]] = []
        self._below: dict[int, list[_TokenRun]] = {}
        """Token -> the segments whose first token follows it, other than the next of its own."""
        self._depths = np.empty(1024, dtype=np.int64)
        self._segments: list[_TokenRun] = []

    def append(self, tokens: NDArray[Any], parent: int) -> int:
        """Add tokens behind a token (-1: at the beginning); return the index of the last, or `parent` for none."""
        if not len(tokens):
            return parent
        segment = _TokenRun(start=self._size, end=self._size + len(tokens))
        self._reserve(segment.end)
        first = self._depths[parent] + 1 if parent >= 0 else 0
        self._flat[segment.start : segment.end] = tokens
        self._depths[segment.start : segment.end] = np.arange(first, first + len(tokens))
        self._parents.append(np.array([parent, *range(segment.start, segment.end - 1)], dtype=np.int64))
        self._below.setdefault(parent, []).append(segment)
        self._size = segment.end
        self._segments.append(segment)
        return segment.end - 1

    def append_answer(self, request: RecordedRequest, parent: int) -> int:
        """Add an answer, which no other request shares; return the index of its last token."""
        tokens = np.asarray(request.completion_token_ids or (), dtype=np.int64)
        last = self.append(tokens, parent)
        if len(tokens):
            self._trained.append((self._segments[-1], request))
        return last

    def append_shared(self, tokens: NDArray[Any], parent: int) -> int:
        """Add tokens behind a token; those that are there already are used again. Return the index of the last."""
        at, n_known = self._find_longest(tokens, parent)
        return self.append(tokens[n_known:], at)

    def _find_longest(self, tokens: NDArray[Any], parent: int) -> tuple[int, int]:
        """Return the end of the longest known path behind a token that begins `tokens`, and its length."""
        best = (parent, 0)
        open_paths = [(parent, 0)]
        while open_paths:
            at, n_known = open_paths.pop()
            for segment in self._below.get(at, ()):
                n_equal = _count_equal(self._flat[segment.start : segment.end], tokens[n_known:])
                if n_known + n_equal > best[1]:
                    best = (segment.start + n_equal - 1, n_known + n_equal)
                open_paths += [
                    (token, n_known + token - segment.start + 1)
                    for token in self._below
                    if segment.start <= token < segment.start + n_equal
                ]
        return best

    def _reserve(self, size: int) -> None:
        # Doubled, so that a row that grows by many segments is copied only a few times.
        while len(self._flat) < size:
            self._flat = np.concatenate([self._flat, np.empty_like(self._flat)])
            self._depths = np.concatenate([self._depths, np.empty_like(self._depths)])

    def finish(self) -> TokenRow:
        """Return the row."""
        loss_mask = np.zeros(self._size, dtype=bool)
        exchanges = np.full(self._size, NO_REQUEST, dtype=np.int64)
        logprobs = np.zeros(self._size, dtype=np.float32)
        has_logprobs = True
        for segment, request in self._trained:
            loss_mask[segment.start : segment.end] = True
            exchanges[segment.start : segment.end] = request.exchange
            if request.logprobs is not None and len(request.logprobs) == segment.end - segment.start:
                logprobs[segment.start : segment.end] = request.logprobs
            else:
                has_logprobs = False
        # Copies, since views would keep the whole arrays in memory.
        return TokenRow(
            token_ids=self._flat[: self._size].copy(),
            position_ids=self._depths[: self._size].copy(),
            parents=np.concatenate(self._parents) if self._parents else np.empty(0, dtype=np.int64),
            loss_mask=loss_mask,
            logprobs=logprobs if has_logprobs else None,
            exchanges=exchanges,
        )


def _count_equal(first: NDArray[Any], second: NDArray[Any]) -> int:
    """Return how many values two arrays begin with alike."""
    shorter = min(len(first), len(second))
    differs = np.flatnonzero(first[:shorter] != second[:shorter])
    return int(differs[0]) if len(differs) else shorter


def _get_prompt(content: TrajectoryContent, place: int) -> NDArray[Any]:
    return np.asarray(content.requests[place].new_prompt_token_ids or (), dtype=np.int64)


def _get_completion(content: TrajectoryContent, place: int) -> NDArray[Any]:
    return np.asarray(content.requests[place].completion_token_ids or (), dtype=np.int64)


def _require_token_ids(content: TrajectoryContent) -> None:
    if not content.has_token_ids:
        raise ValueError("the upstream gave no token ids, and texts are never tokenised again")
