"""Objectives in verl: found as plug-ins, called by its own loss of the actor, equal to its own where both exist."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
import torch
import verl
from tensordict import TensorDict
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.utils import tensordict_utils
from verl.workers.config import ActorConfig
from verl.workers.config.actor import PolicyLossConfig
from verl.workers.utils.losses import ppo_loss

PROMPT, RESPONSE = 3, 6
LENGTHS = [6, 4, 1, 5]


def make_batch(*, spoiled: float | None = None) -> tuple[torch.Tensor, TensorDict]:
    """Log-probabilities of all tokens without padding, and the rest of a micro-batch of four rows."""
    torch.manual_seed(0)
    attention = torch.zeros(len(LENGTHS), PROMPT + RESPONSE, dtype=torch.long)
    for row, length in enumerate(LENGTHS):
        attention[row, : PROMPT + length] = 1
    mask = attention[:, PROMPT:].clone()
    mask[0, 2] = 0  # a token of a tool
    shape = mask.shape
    old, advantages = torch.randn(shape) - 2, torch.randn(shape[0], 1).expand(shape).clone()
    if spoiled is not None:
        old[mask == 0] = spoiled
        advantages[mask == 0] = spoiled
    data = TensorDict(
        {
            "prompts": torch.ones(shape[0], PROMPT, dtype=torch.long),
            "responses": torch.ones(shape, dtype=torch.long),
            "attention_mask": attention,
            "response_mask": mask,
            "old_log_probs": old,
            "advantages": advantages,
            "rollout_is_weights": torch.rand(shape),
        },
        batch_size=shape[0],
    )
    tensordict_utils.assign_non_tensor(data, dp_size=2, batch_num_tokens=40, global_batch_size=9)
    return (torch.randn(int(attention.sum())) - 2).requires_grad_(), data


def compute(
    mode: str, *, spoiled: float | None = None, **settings: Any
) -> tuple[float, torch.Tensor, dict[str, float]]:
    """Return loss, gradient and metrics of verl's actor."""
    logp, data = make_batch(spoiled=spoiled)
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=4,
        ppo_micro_batch_size_per_gpu=4,
        policy_loss=PolicyLossConfig(loss_mode=mode),
        clip_ratio_c=1e9,  # PPO as in the paper, without verl's second bound
        **settings,
    )
    loss, metrics = ppo_loss(config, {"log_probs": logp}, data)
    loss.backward()
    assert logp.grad is not None
    return loss.item(), logp.grad, {name: float(metric.aggregate()) for name, metric in metrics.items()}


def test_verl_finds_the_objectives_by_itself() -> None:
    assert verl.__version__ == "0.9.1"
    assert "mergemill_client.training.verl" in sys.modules  # nothing above imports it
    assert {get_policy_loss_fn(f"mergemill_{name}").__module__ for name in ("cispo", "ppo")} == {
        "mergemill_client.training.verl"
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "settings"),
    [
        ("mergemill_cispo", "cispo", {}),
        ("mergemill_cispo", "cispo", {"clip_ratio_low": 1.0, "clip_ratio_high": 4.0}),
        ("mergemill_cispo", "cispo", {"clip_ratio": 0.3, "clip_ratio_low": None, "clip_ratio_high": None}),
        ("mergemill_ppo", "vanilla", {}),
        ("mergemill_ppo", "vanilla", {"clip_ratio_high": 0.28}),
        ("mergemill_ppo", "vanilla", {"loss_agg_mode": "seq-mean-token-mean"}),
    ],
)
def test_loss_and_gradient_are_those_of_verl(ours: str, theirs: str, settings: dict[str, Any]) -> None:
    loss, gradient, metrics = compute(ours, **settings)
    expected, expected_gradient, expected_metrics = compute(theirs, **settings)
    assert loss == pytest.approx(expected, rel=1e-6)
    torch.testing.assert_close(gradient, expected_gradient)
    assert gradient.count_nonzero() > 0
    for name in ("actor/pg_clipfrac", "actor/ppo_kl"):
        assert metrics[name] == pytest.approx(expected_metrics[name], rel=1e-5), name


def test_what_is_masked_may_hold_anything() -> None:
    loss, gradient, _ = compute("mergemill_cispo")
    masked = compute("mergemill_cispo", spoiled=math.nan)
    assert masked[0] == loss
    assert torch.equal(masked[1], gradient)
    assert math.isnan(compute("cispo", spoiled=math.nan)[1].sum())
