"""Objectives in verl's registry of policy losses: `actor_rollout_ref.actor.policy_loss.loss_mode=mergemill_cispo`.

verl imports this module by itself where mergemill-client is installed (its entry point `verl.plugins`), in its workers
too. verl averages by its own `loss_agg_mode`; the bounds are its `clip_ratio_low` and `clip_ratio_high`. Written
against verl 0.9.

- `mergemill_cispo`: weights lie between 1 - clip_ratio_low and 1 + clip_ratio_high. verl's default for the lower bound
  is 0.2; MiniMax-M1 has none, which is `clip_ratio_low=1`.
- `mergemill_ppo`: PPO, and with other bounds or averages DAPO (`clip_ratio_high=0.28`) and GRPO
  (`loss_agg_mode=seq-mean-token-mean`); without verl's second bound `clip_ratio_c`.
"""

from __future__ import annotations

from typing import Any, Callable

from torch import Tensor
from verl.trainer.ppo.core_algos import agg_loss, register_policy_loss

from mergemill_client.training.losses import LossAndMetrics, cispo_terms, clipped_terms, weigh_tokens


def _register(name: str, terms: Callable[..., LossAndMetrics]) -> None:
    def compute(
        old_log_prob: Tensor,
        log_prob: Tensor,
        advantages: Tensor,
        response_mask: Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the loss of a micro-batch and metrics, as verl calls its policy losses."""
        high = config.clip_ratio if config.clip_ratio_high is None else config.clip_ratio_high
        low = config.clip_ratio if config.clip_ratio_low is None else config.clip_ratio_low
        losses, metrics = terms(log_prob, old_log_prob, advantages, response_mask, high, low)
        losses = weigh_tokens(losses, rollout_is_weights, response_mask)
        loss = agg_loss(losses, response_mask, loss_agg_mode, **config.global_batch_info)
        return loss, _name_metrics(metrics)

    register_policy_loss(name)(compute)


def _name_metrics(metrics: dict[str, Tensor]) -> dict[str, float]:
    """Return metrics under verl's names where it has one."""
    names = {"clipped": "pg_clipfrac", "kl": "ppo_kl"}
    return {f"actor/{names.get(name, name)}": value.item() for name, value in metrics.items()}


_register("mergemill_cispo", cispo_terms)
_register("mergemill_ppo", clipped_terms)
