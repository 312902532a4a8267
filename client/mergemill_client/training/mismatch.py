"""How far the trainer's probabilities are from those of the engine that sampled, and what is done about it.

Both compute the same model, yet with other kernels, precision or (mixture of experts) other experts. The log-ratio of a
token is d = train_logp - infer_logp, in nats. Sequence rules after Liu et al. 2025 ("When Speed Kills Stability") and
verl's rollout correction; truncated weights after Ionides 2008 (doi 10.1198/106186008X320456).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mergemill_client.training.losses import MAX_LOG_RATIO


@dataclass(frozen=True)
class MismatchReport:
    """What `mismatch_report` measures; without tokens all numbers are 0."""

    tokens: int
    """Trained tokens whose two log-probabilities are finite."""
    not_finite: int
    """Trained tokens of which one is not; they are in no other number."""
    mean_abs: float
    """Mean of |d|, nats."""
    max_abs: float
    """Largest |d|, nats."""
    kl: float
    """Estimate of KL(infer, train) in nats per token: the mean of exp(d) - 1 - d, never negative (k3)."""
    correlation: float
    """Pearson's between the probabilities of the tokens; MiniMax-M1 watches this one. 0 if they do not vary."""
    probability_max: float
    """Largest difference of two probabilities of a token."""
    sequence_ratio_max: float
    """Largest factor, up or down, between the probabilities of a row: max of exp(|sum of d|), at most exp(20)."""
    geometric_mean_max: float
    """Largest factor of a token on the average of a row: max of exp(|mean of d|)."""
    effective_share: float
    """Effective sample size of the token weights exp(d) over the number of tokens; 1 if both agree."""


@dataclass(frozen=True)
class OutlierCounts:
    """What `mask_outliers` has masked; a row or token that breaks several rules is counted by each."""

    rows_by_ratio: int
    rows_by_mean: int
    tokens_by_quantile: int
    tokens_before: int
    tokens_after: int


def mismatch_report(train_logp: Tensor, infer_logp: Tensor, mask: Tensor) -> MismatchReport:
    """Measure how far two sets of log-probabilities of the same tokens are apart.

    Args:
        train_logp: by the trainer before any update, nats, [rows, tokens].
        infer_logp: as recorded when the tokens were sampled, nats, [rows, tokens].
        mask: 1 or True where a token is trained, [rows, tokens].
    """
    usable, ratio = _compare(train_logp, infer_logp, mask)
    tokens, not_finite = int(usable.sum()), int((mask.bool() & ~usable).sum())
    if not tokens:
        return MismatchReport(0, not_finite, *[0.0] * 8)
    sums, means = _average_rows(ratio, usable)
    flat = ratio[usable]
    train, infer = (logp[usable].detach().double().exp() for logp in (train_logp, infer_logp))
    weights = flat.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return MismatchReport(
        tokens=tokens,
        not_finite=not_finite,
        mean_abs=float(flat.abs().mean()),
        max_abs=float(flat.abs().max()),
        kl=float((weights - 1 - flat).mean()),
        correlation=_correlate(train, infer),
        probability_max=float((train - infer).abs().max()),
        sequence_ratio_max=float(sums.abs().max().clamp(max=MAX_LOG_RATIO).exp()),
        geometric_mean_max=float(means.abs().max().clamp(max=MAX_LOG_RATIO).exp()),
        effective_share=float(weights.sum() ** 2 / (weights**2).sum() / tokens),
    )


def mask_outliers(
    train_logp: Tensor,
    infer_logp: Tensor,
    mask: Tensor,
    *,
    sequence_ratio: float | None = None,
    geometric_mean: float | None = None,
    quantile: float | None = None,
) -> tuple[Tensor, OutlierCounts]:
    """Return the mask without outliers, [rows, tokens] of bool, and what was taken away.

    Tokens whose log-probabilities are not finite are always masked. Rules that are None are not used.

    Args:
        train_logp: by the trainer before any update, nats, [rows, tokens].
        infer_logp: as recorded when the tokens were sampled, nats, [rows, tokens].
        mask: 1 or True where a token is trained, [rows, tokens].
        sequence_ratio: a row is masked if the ratio of its probabilities is above this or below its inverse, as 10.
        geometric_mean: a row is masked if the ratio's geometric mean over its tokens is, as 1.01.
        quantile: tokens are masked whose |d| is above this quantile of all, as 0.999; equal ones are kept.

    Raises:
        ValueError: a ratio is below 1, or the quantile not between 0 and 1.
    """
    for name, bound in (("sequence_ratio", sequence_ratio), ("geometric_mean", geometric_mean)):
        if bound is not None and bound < 1:
            raise ValueError(f"{name} is a factor of at least 1, not {bound}")
    if quantile is not None and not 0 < quantile <= 1:
        raise ValueError(f"quantile is above 0 and at most 1, not {quantile}")
    usable, ratio = _compare(train_logp, infer_logp, mask)
    sums, means = _average_rows(ratio, usable)
    by_ratio, by_mean = _exceed(sums, sequence_ratio), _exceed(means, geometric_mean)
    by_quantile = torch.zeros_like(usable)
    if quantile is not None and usable.any():
        sizes = ratio.abs()
        by_quantile = usable & (sizes > _find_quantile(sizes[usable], quantile))
    kept = usable & ~(by_ratio | by_mean)[:, None] & ~by_quantile
    return kept, OutlierCounts(
        rows_by_ratio=int(by_ratio.sum()),
        rows_by_mean=int(by_mean.sum()),
        tokens_by_quantile=int(by_quantile.sum()),
        tokens_before=int(mask.bool().sum()),
        tokens_after=int(kept.sum()),
    )


def truncated_weights(train_logp: Tensor, infer_logp: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    """Return min(exp(d), cap) of each trained token, 0 for others, in fp32 and without gradient, [rows, tokens].

    Truncated importance sampling: given as `weights` to a loss whose `logp_old` is the trainer's, it corrects for the
    engine that sampled.
    """
    usable, ratio = _compare(train_logp, infer_logp, mask)
    return torch.where(usable, ratio.clamp(max=MAX_LOG_RATIO).exp().clamp(max=cap), 0).float()


def _compare(train_logp: Tensor, infer_logp: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return which tokens are trained and finite, and their log-ratios in fp64, 0 for others."""
    usable = mask.bool() & torch.isfinite(train_logp) & torch.isfinite(infer_logp)
    return usable, torch.where(usable, train_logp.detach().double() - infer_logp.detach().double(), 0)


def _average_rows(ratio: Tensor, usable: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum and the mean of each row's log-ratios."""
    sums = ratio.sum(-1)
    return sums, sums / usable.sum(-1).clamp(min=1)


def _exceed(log_ratios: Tensor, bound: float | None) -> Tensor:
    return torch.zeros_like(log_ratios, dtype=torch.bool) if bound is None else log_ratios.abs().exp() > bound


def _find_quantile(values: Tensor, quantile: float) -> Tensor:
    """Return the smallest value that at least this share of the values do not exceed.

    `torch.quantile` takes 16 million values at most.
    """
    return values.sort().values[max(math.ceil(quantile * len(values)) - 1, 0)]


def _correlate(first: Tensor, second: Tensor) -> float:
    first, second = first - first.mean(), second - second.mean()
    scale = first.norm() * second.norm()
    return float((first * second).sum() / scale) if scale > 0 else 0.0
