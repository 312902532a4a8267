"""The objectives once more, in numpy and token by token, as the papers write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Batch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""logp, logp_old, adv, mask, each [rows, tokens]."""


def cispo(batch: Batch, high: float, low: float | None = None) -> tuple[float, np.ndarray]:
    """Loss and gradient by logp, [rows, tokens]."""
    loss, gradient, tokens = 0.0, np.zeros_like(batch[0]), max(batch[3].sum(), 1)
    for i, j in zip(*np.nonzero(batch[3]), strict=True):
        logp, old, adv, _ = (array[i, j] for array in batch)
        weight = min(math.exp(logp - old), 1 + high)
        weight = weight if low is None else max(weight, 1 - low)
        loss -= weight * adv * logp / tokens
        gradient[i, j] = -weight * adv / tokens
    return loss, gradient


def clipped(batch: Batch, high: float, low: float, *, by_row: bool = False) -> tuple[float, np.ndarray]:
    """Loss and gradient of PPO and DAPO, or by row: of GRPO."""
    loss, gradient, mask = 0.0, np.zeros_like(batch[0]), batch[3]
    for i, j in zip(*np.nonzero(mask), strict=True):
        logp, old, adv, _ = (array[i, j] for array in batch)
        share = 1 / (mask[i].sum() * (mask.sum(1) > 0).sum() if by_row else mask.sum())
        ratio = math.exp(logp - old)
        bounded = min(max(ratio, 1 - low), 1 + high)
        loss -= share * min(ratio * adv, bounded * adv)
        gradient[i, j] = -share * ratio * adv if ratio * adv <= bounded * adv else 0
    return loss, gradient


def draw_batch(seed: int, **kinds: Any) -> Batch:
    """Return a batch of random shape, with empty rows, ratios from 1/1000 to 1000 and advantages of both signs."""
    random = np.random.default_rng(seed)
    rows, tokens = random.integers(1, 7), random.integers(1, 40)
    logp = -random.exponential(2, (rows, tokens))
    old = logp - random.normal(0, kinds.get("spread", 2), (rows, tokens))
    adv = np.repeat(random.normal(0, 1, (rows, 1)), tokens, 1)
    mask = random.random((rows, tokens)) < random.random((rows, 1))
    mask[random.integers(rows)] &= random.random() < 0.5
    return logp, old, adv, mask
