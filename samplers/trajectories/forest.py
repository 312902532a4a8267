"""Prefix forest of a rollout's requests: which request continues which.

A request's parent is the request before it whose prompt and completion together are the longest strict prefix of its
own prompt. Prefixes are exact: of token ids where every answered request has them, else of normalised messages, with
the tools before them. A request with the prompt of an earlier request is a retry, and its sibling.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from samplers.trajectories.requests import MessageMap, ModelRequest, make_key


@dataclass(frozen=True, kw_only=True)
class RequestSequence:
    """Prompt and completion of a request as numbers: token ids, or numbers of messages. No completion: no answer."""

    prompt: bytes
    completion: bytes


@dataclass(frozen=True, kw_only=True)
class PrefixForest:
    """Parents and roots of requests, by their place in the list of requests."""

    parents: tuple[int | None, ...]
    roots: tuple[int, ...]
    """The first request of each request's tree."""
    ambiguous: frozenset[int]
    """Requests that continue several others equally well. Each is a root of its own."""

    def list_trees(self) -> list[list[int]]:
        """Return the trees in the order of their first requests, each a list of requests in order."""
        trees: dict[int, list[int]] = {}
        for place, root in enumerate(self.roots):
            trees.setdefault(root, []).append(place)
        return list(trees.values())


def uses_token_ids(requests: Sequence[ModelRequest]) -> bool:
    """Return whether every answered request is known by its tokens."""
    answered = [request for request in requests if request.answer is not None]
    return bool(answered) and all(request.has_token_ids for request in answered)


def build_forest(requests: Sequence[ModelRequest]) -> PrefixForest:
    """Return the prefix forest of requests in the order they were made."""
    sequences = _number_tokens(requests) if uses_token_ids(requests) else _number_messages(requests)
    return link_sequences(sequences)


def link_sequences(sequences: Sequence[RequestSequence]) -> PrefixForest:
    """Return the prefix forest of sequences in the order of their requests."""
    first_with: dict[bytes, int] = {}
    parents: list[int | None] = []
    roots: list[int] = []
    ambiguous: set[int] = set()
    for place, sequence in enumerate(sequences):
        if (first := first_with.setdefault(sequence.prompt, place)) != place:
            parents.append(parents[first])
            roots.append(roots[first])
            continue
        ancestors = _find_parents(sequences[:place], sequence.prompt)
        if len(ancestors) > 1:
            ambiguous.add(place)
        parents.append(ancestors[0] if len(ancestors) == 1 else None)
        roots.append(roots[ancestors[0]] if len(ancestors) == 1 else place)
    return PrefixForest(parents=tuple(parents), roots=tuple(roots), ambiguous=frozenset(ambiguous))


def _find_parents(earlier: Sequence[RequestSequence], prompt: bytes) -> list[int]:
    """Return the earlier requests that are the longest strict prefix of a prompt; several where they are equal."""
    parents: list[int] = []
    longest = 0
    for place in range(len(earlier) - 1, -1, -1):
        candidate = earlier[place]
        length = len(candidate.prompt) + len(candidate.completion)
        if not candidate.completion or length < longest or length >= len(prompt):
            continue
        if prompt.startswith(candidate.prompt) and prompt.startswith(candidate.completion, len(candidate.prompt)):
            parents = [place, *parents] if length == longest else [place]
            longest = length
    return parents


def _number_tokens(requests: Sequence[ModelRequest]) -> list[RequestSequence]:
    """Return the token ids of requests. A request that failed has those of no prompt, and follows nothing."""
    return [
        RequestSequence(
            prompt=array("q", request.prompt_token_ids or (-1 - place,)).tobytes(),
            completion=array("q", request.completion_token_ids or ()).tobytes(),
        )
        for place, request in enumerate(requests)
    ]


def _number_messages(requests: Sequence[ModelRequest]) -> list[RequestSequence]:
    """Return requests as numbers of their messages; the tools, which every model is given first, are the first."""
    numbers: dict[str, int] = {}

    def number(key: str) -> int:
        return numbers.setdefault(key, len(numbers))

    number_messages = MessageMap(lambda message: number(make_key(message)))
    made = []
    for request in requests:
        tools = json.dumps(list(request.tools), sort_keys=True)
        prompt = [number(tools), *number_messages.apply(request.messages)]
        completion = [number(make_key(request.answer))] if request.answer is not None else []
        made.append(RequestSequence(prompt=array("q", prompt).tobytes(), completion=array("q", completion).tobytes()))
    return made
