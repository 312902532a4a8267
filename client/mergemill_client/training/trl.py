"""Objectives in TRL: `ObjectiveTrainer` is a `GRPOTrainer` whose loss is one of ours.

TRL has no registry of losses, so the method that computes them is replaced. Sampling, rewards, advantages, logs and
checkpoints are TRL's. Written against TRL 1.16.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable

import torch
from torch import Tensor
from trl import GRPOTrainer

from mergemill_client.training.losses import (
    LossAndMetrics,
    average_rows,
    average_tokens,
    cispo_terms,
    clipped_terms,
    weigh_tokens,
)

OBJECTIVES: dict[str, Callable[..., LossAndMetrics]] = {
    "cispo": cispo_terms,
    "ppo": clipped_terms,
    "dapo": clipped_terms,
    "grpo": clipped_terms,
}
"""Name -> losses of its tokens. `grpo` averages by row, the others over all tokens of an optimiser step."""


REQUIRED = {
    "beta": 0.0,
    "delta": None,
    "entropy_coef": 0.0,
    "importance_sampling_level": "token",
    "off_policy_mask_threshold": None,
    "top_entropy_quantile": 1.0,
    "use_adaptive_entropy": False,
}
"""Settings of `GRPOConfig` -> the value at which they do not change the loss."""


TEXT_NAMES = {"model", "input_ids", "attention_mask"}
"""Arguments of TRL's method that computes log-probabilities which it does not take from the batch under their names."""


class ObjectiveTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not installed where types are checked
    """`GRPOTrainer` with an objective of ours; `loss_type`, `epsilon` and `epsilon_high` of its settings are not read.

    ::

        trainer = ObjectiveTrainer(model, reward_funcs=..., args=GRPOConfig(...), objective="cispo", eps_high=4.0)
    """

    def __init__(
        self, *args: Any, objective: str = "cispo", eps_high: float, eps_low: float | None = None, **kwargs: Any
    ) -> None:
        """Make a trainer.

        Args:
            args: positional arguments of `GRPOTrainer`.
            objective: a name of OBJECTIVES.
            eps_high: weights or ratios are at most 1 + eps_high; TRL's own CISPO calls that sum `epsilon_high`.
            eps_low: see `cispo_loss` and `ppo_loss`.
            kwargs: the others of `GRPOTrainer`.

        Raises:
            ValueError: there is no such objective, or a setting of TRL changes the loss in a way that ours does not.
        """
        if objective not in OBJECTIVES:
            raise ValueError(f"no objective {objective!r}; known: {', '.join(OBJECTIVES)}")
        super().__init__(*args, **kwargs)
        refused = [name for name, neutral in REQUIRED.items() if getattr(self.args, name, neutral) != neutral]
        if refused or self.aux_loss_enabled:
            what = ", ".join(refused) or "the loss of a router"
            raise ValueError(f"ObjectiveTrainer computes losses without {what}: leave it at TRL's default")
        self._objective, self._eps_high, self._eps_low = objective, eps_high, eps_low
        self._multimodal_names = set(inspect.signature(self._get_per_token_logps_and_entropies).parameters) - TEXT_NAMES

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        completion, mask = inputs["completion_ids"], inputs["completion_mask"]
        if "tool_mask" in inputs:
            mask = mask * inputs["tool_mask"]
        logp, entropies, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([inputs["prompt_ids"], completion], dim=1),
            torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
            completion.size(1),
            compute_entropy=True,
            **{name: inputs[name] for name in self._multimodal_names if name in inputs},
        )
        old = inputs.get("old_per_token_logps")
        losses, metrics = OBJECTIVES[self._objective](
            logp, logp.detach() if old is None else old, inputs["advantages"], mask, self._eps_high, self._eps_low
        )
        losses = weigh_tokens(losses, inputs.get("importance_sampling_ratio"), mask)
        self._log(metrics | {"entropy": average_tokens(entropies.detach(), mask)})
        return self._average(losses, mask, inputs)

    def _average(self, losses: Tensor, mask: Tensor, inputs: dict[str, Any]) -> Tensor:
        """Return the share of a micro-batch in the loss of an optimiser step."""
        training = self.model.training
        steps = self.current_gradient_accumulation_steps if training else 1
        if self._objective == "grpo":
            return average_rows(losses, mask, len(mask) * steps)
        # num_items_in_batch counts the tokens of all steps between two samplings, over all processes
        n_tokens = inputs["num_items_in_batch"].clamp(min=1) / self.accelerator.num_processes
        return average_tokens(losses, mask, n_tokens * steps / self.args.steps_per_generation if training else n_tokens)

    def _log(self, metrics: dict[str, Tensor]) -> None:
        mode = "train" if self.model.training else "eval"
        for name, value in metrics.items():
            self._metrics[mode][name].append(self.accelerator.gather(value).float().mean().item())
