"""A toy task: one token of an answer decides, and is unlikely at first, as "wait" or "recheck" are in reasoning.

The policy is a table of logits, [positions, vocabulary]: an answer is a token at each position, drawn independently.
The reward is 1 if the decisive token stands at the decisive position; other answers are lucky now and then. All other
tokens are equally likely at first. Luck is what makes large steps dangerous: they may settle on tokens that do nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from mergemill_client.training import cispo_loss, dapo_loss, group_advantages, ppo_loss
from torch import Tensor

OBJECTIVES: dict[str, Callable[..., Any]] = {
    "CISPO, at most 5": partial(cispo_loss, eps_high=4.0),
    "PPO 0.2": partial(ppo_loss, eps_high=0.2),
    "DAPO 0.28": partial(dapo_loss, eps_high=0.28, eps_low=0.2),
}


@dataclass(frozen=True, kw_only=True)
class ToyTask:
    """Sizes of the task and of a batch."""

    positions: int = 8
    vocabulary: int = 32
    first_probability: float = 0.001
    """Of the decisive token."""
    luck: float = 0.1
    """Probability that an answer without it is rewarded as well."""
    groups: int = 64
    rollouts: int = 16
    """Answers of a group, whose rewards are compared with each other."""
    updates: int = 16
    """Gradient steps on one batch; all but the first are off-policy."""
    goal: float = 0.9
    """Probability of the decisive token, which is the expected reward, at which a run ends."""
    most_batches: int = 300


@dataclass(frozen=True, kw_only=True)
class ToyResult:
    """Runs of an objective with a learning rate, one for each seed."""

    luck: float
    objective: str
    learning_rate: float
    batches: tuple[int | None, ...]
    """After how many batches the goal was reached, None if it was not."""


def measure(task: ToyTask, learning_rates: Sequence[float], seeds: int) -> Iterator[ToyResult]:
    """Yield the result of each learning rate and objective."""
    torch.set_num_threads(1)
    for rate in learning_rates:
        for objective in OBJECTIVES:
            batches = tuple(run_task(task, objective, rate, seed) for seed in range(seeds))
            yield ToyResult(luck=task.luck, objective=objective, learning_rate=rate, batches=batches)


def run_task(task: ToyTask, objective: str, learning_rate: float, seed: int) -> int | None:
    """Return after how many batches the goal is reached, or None if it is not."""
    generator = torch.Generator().manual_seed(seed)
    logits = make_policy(task).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=learning_rate)
    for batch in range(1, task.most_batches + 1):
        answers, old, advantages = _sample(task, logits.detach(), generator)
        for _ in range(task.updates):
            loss, _metrics = OBJECTIVES[objective](_score(logits, answers), old, advantages, torch.ones_like(answers))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if logits.detach().softmax(-1)[0, 0].item() >= task.goal:
            return batch
    return None


def make_policy(task: ToyTask) -> Tensor:
    """Return the first logits; token 0 at position 0 is the decisive one."""
    logits = torch.zeros(task.positions, task.vocabulary)
    others = (1 - task.first_probability) / (task.vocabulary - 1)
    logits[0, 0] = math.log(task.first_probability / others)
    return logits


def _sample(task: ToyTask, logits: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return answers, their log-probabilities, and the advantage of each answer."""
    number = task.groups * task.rollouts
    answers = torch.multinomial(logits.softmax(-1), number, replacement=True, generator=generator).T
    lucky = torch.rand(number, generator=generator) < task.luck
    rewards = ((answers[:, 0] == 0) | lucky).float()
    groups = torch.arange(number) // task.rollouts
    return answers, _score(logits, answers), group_advantages(rewards, groups)


def _score(logits: Tensor, answers: Tensor) -> Tensor:
    """Return the log-probabilities of answers, [answers, positions]."""
    return logits.log_softmax(-1)[torch.arange(answers.shape[1]), answers]
