"""Episodes of `mergemill simulate env`, played by the model: tokens, masks and rewards as a trainer takes them.

    python -m benchmarks.loop.trainer.episodes --model DIR --url URL --attempts 4 --out FILE.json

writes how the model does: each task as often as is said, with its rewards and its calls.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mergemill_client.simulated import SimulatedEnvironment, connect
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.loop.trainer.decoding import SampledAnswer, Sampler
from benchmarks.loop.trainer.rows import TokenisedRollout

MOST_TURNS = 10
MOST_TOKENS = 64
"""Of a turn."""
RULE_ERROR = "Error"
"""What an observation of the server's rules begins with where a call is not valid."""


@dataclass(frozen=True, kw_only=True)
class PlayedEpisode:
    """An episode that has ended, and how many of its turns with a call there were, and were refused by a rule."""

    episode: str
    rollout: TokenisedRollout
    n_calls: int
    n_refused: int


def play_episode(
    sampler: Sampler, server: SimulatedEnvironment, task: str, *, temperature: float = 1.0
) -> PlayedEpisode:
    """Play an episode of a task to its end."""
    opened = server.reset(task=task)
    messages = [
        {"role": "system", "content": opened["policy"]},
        {"role": opened["role"], "content": opened["observation"]},
    ]
    answers: list[SampledAnswer] = []
    n_calls = n_refused = 0
    said: dict[str, Any] = {"done": False}
    while not said["done"] and len(answers) < MOST_TURNS:
        answer = sampler.answer(messages, temperature=temperature, most=MOST_TOKENS)
        calls = answer.message.get("tool_calls") or []
        said = server.step(
            opened["episode"], answer.message.get("content") or "", turn=len(answers), tool_calls=calls or None
        )
        answers.append(answer)
        n_calls += bool(calls)
        n_refused += bool(calls) and said.get("answered_by") == "rule" and said["observation"].startswith(RULE_ERROR)
        messages += [answer.message, {"role": said.get("role") or "user", "content": said["observation"]}]
    if not said["done"]:
        said = server.evaluate(opened["episode"])
    return PlayedEpisode(
        episode=opened["episode"],
        rollout=join_answers(answers, said["reward"]),
        n_calls=n_calls,
        n_refused=n_refused,
    )


def join_answers(answers: Sequence[SampledAnswer], value: float | None) -> TokenisedRollout:
    """Return the turns of a conversation as one row; what is between the model's turns is masked."""
    first = answers[0].prompt
    tokens, mask, logprobs = list(first), [0] * len(first), [0.0] * len(first)
    for answer in answers:
        between = answer.prompt[len(tokens) :]
        tokens += [*between, *answer.tokens]
        mask += [0] * len(between) + [1] * len(answer.tokens)
        logprobs += [0.0] * len(between) + answer.logprobs
    begin = len(first)
    return TokenisedRollout(
        prompt=first, completion=tokens[begin:], mask=mask[begin:], logprobs=logprobs[begin:], value=value
    )


def main() -> None:
    """Write `rewards` (null where there is none), `n_calls` and `n_refused` of all episodes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--tasks", required=True, help="ids, separated by commas")
    parser.add_argument("--attempts", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(options.model).eval()
    sampler = Sampler(model, AutoTokenizer.from_pretrained(options.model), seed=0)
    server = connect(options.url)
    tasks = options.tasks.split(",")
    played = [play_episode(sampler, server, task) for task in tasks for _ in range(options.attempts)]
    report = {
        "rewards": [episode.rollout.value for episode in played],
        "n_calls": sum(episode.n_calls for episode in played),
        "n_refused": sum(episode.n_refused for episode in played),
    }
    options.out.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
