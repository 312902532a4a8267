"""Advantages that compare the rollouts of a task with each other, as GRPO and CISPO use them."""

from __future__ import annotations

import torch
from torch import Tensor


def group_advantages(rewards: Tensor, groups: Tensor, *, scale: bool = True, eps: float = 1e-6) -> Tensor:
    """Return each reward less the mean of its group, over the group's standard deviation, in fp32, [rollouts].

    A rollout without a reward (NaN: an infrastructure failure) is no part of its group and has advantage 0; mask its
    tokens as well. Groups of one rollout or with equal rewards have advantage 0.

    Args:
        rewards: of the rollouts, [rollouts], NaN where there is none.
        groups: numbers of their tasks, [rollouts].
        scale: False to leave out the division (Dr. GRPO, arXiv 2503.20783).
        eps: added to the standard deviation, which is that of a sample (n - 1) as in verl and TRL.
    """
    known = torch.isfinite(rewards)
    _, index = torch.unique(groups, return_inverse=True)
    values = torch.where(known, rewards.float(), 0)
    totals = torch.zeros(int(index.max()) + 1 if len(index) else 0, device=rewards.device)
    counts = totals.index_add(0, index, known.float())
    means = totals.index_add(0, index, values) / counts.clamp(min=1)
    centred = torch.where(known, values - means[index], 0)
    if not scale:
        return centred
    variances = totals.index_add(0, index, centred**2) / (counts - 1).clamp(min=1)
    return centred / (variances.sqrt()[index] + eps)
