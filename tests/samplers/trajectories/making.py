"""Requests of a rollout for tests, and random trees of requests with edited histories."""

from __future__ import annotations

import random
from typing import Any

from samplers.trajectories.content import TrajectoryContent, pack_content
from samplers.trajectories.forest import build_forest
from samplers.trajectories.requests import ModelRequest

SYSTEM = {"role": "system", "content": "You fix bugs."}
TASK = {"role": "user", "content": "Greet politely."}
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
VOCABULARY = 24


def ask(exchange: int, messages: list[dict[str, Any]], answer: dict[str, Any] | None = None, **more: Any) -> Any:
    """Return a request with the bash tool, and its answer."""
    return ModelRequest(exchange=exchange, messages=tuple(messages), answer=answer, **({"tools": (BASH,)} | more))


def call(number: int, command: str = "ls", name: str = "bash") -> dict[str, Any]:
    """Return an answer with one call."""
    function = {"name": name, "arguments": f'{{"command": "{command}"}}'}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def give(number: int, result: str = "ok") -> dict[str, Any]:
    """Return the result of a call."""
    return {"role": "tool", "tool_call_id": f"c{number}", "content": result}


def ask_tokens(exchange: int, prompt: list[int], completion: list[int]) -> ModelRequest:
    """Return a request that is known by its tokens."""
    return ModelRequest(
        exchange=exchange,
        messages=({"role": "user", "content": " ".join(map(str, prompt))},),
        answer={"role": "assistant", "content": " ".join(map(str, completion))},
        prompt_token_ids=tuple(prompt),
        completion_token_ids=tuple(completion),
        logprobs=tuple(-0.1 * token for token in completion),
    )


def make_random_requests(seed: int, most: int = 8) -> list[ModelRequest]:
    """Return requests of which each continues, retries or edits an earlier one; a few tokens, so that they collide."""
    rng = random.Random(seed)

    def draw(low: int, high: int) -> list[int]:
        return [rng.randrange(1, VOCABULARY) for _ in range(rng.randint(low, high))]

    histories: list[tuple[list[int], list[int]]] = [(draw(2, 6), draw(1, 4))]
    for _ in range(rng.randint(1, most - 1)):
        prompt, completion = rng.choice(histories)
        kind = rng.random()
        if kind < 0.2:
            new = prompt
        elif kind < 0.7:
            new = prompt + completion + draw(1, 5)
        else:
            new = prompt + completion + draw(1, 5)
            new[rng.randrange(len(new))] = rng.randrange(1, VOCABULARY)
        histories.append((new, draw(1, 4)))
    return [ask_tokens(number, *history) for number, history in enumerate(histories)]


def make_contents(requests: list[ModelRequest]) -> list[TrajectoryContent]:
    """Return the content of each tree."""
    forest = build_forest(requests)
    made = []
    for tree in forest.list_trees():
        parents = [forest.parents[place] for place in tree]
        made.append(
            pack_content(
                [requests[place] for place in tree],
                [None if parent is None else tree.index(parent) for parent in parents],
                has_token_ids=True,
                is_ambiguous=tree[0] in forest.ambiguous,
            )
        )
    return made
