"""Objectives of policy gradients over tokens: CISPO, and PPO, GRPO and DAPO to compare it with.

All take the same arguments and return (loss, metrics). With the ratio r = exp(logp - logp_old) of a token and its
advantage A:

- CISPO: `-sg(clip(r, 1 - eps_low, 1 + eps_high)) * A * logp`, where sg stops the gradient. Every token keeps one.
- PPO, GRPO, DAPO: `-min(r * A, clip(r, 1 - eps_low, 1 + eps_high) * A)`. A clipped token has none.

Papers: PPO, Schulman et al. 2017 (arXiv 1707.06347); GRPO, Shao et al. 2024 (DeepSeekMath, arXiv 2402.03300); DAPO,
Yu et al. 2025 (arXiv 2503.14476); CISPO, MiniMax 2025 (MiniMax-M1, arXiv 2506.13585), whose weight is truncated
importance sampling (Ionides 2008, doi 10.1198/106186008X320456) without a gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

LossAndMetrics = tuple[Tensor, dict[str, Tensor]]
"""A loss to minimise, a scalar; and the metrics of `measure_ratios`."""
MAX_LOG_RATIO = 20.0
"""Nats at which log-ratios are cut before `exp`, so that no ratio is infinite."""


def cispo_loss(
    logp: Tensor,
    logp_old: Tensor,
    adv: Tensor,
    mask: Tensor,
    eps_high: float,
    eps_low: float | None = None,
    *,
    weights: Tensor | None = None,
    n_tokens: float | None = None,
) -> LossAndMetrics:
    """Return CISPO's loss: clipped importance weights without a gradient, no KL term, the mean over all tokens.

    Half-precision inputs are computed in fp32. A token whose log-probabilities are not finite adds 0 to the loss and
    its gradient, counts in the mean, and is counted in the metrics; what is masked may hold anything, NaN too.

    Args:
        logp: log-probabilities of the sampled tokens under the policy that is trained, in nats, [rows, tokens].
        logp_old: the same under the policy that sampled them, [rows, tokens]; no gradient flows through it.
        adv: advantages, [rows, tokens], [rows, 1] or [rows].
        mask: 1 or True where a token is trained, [rows, tokens]; rows may be empty.
        eps_high: weights are at most 1 + eps_high.
        eps_low: weights are at least 1 - eps_low; None for no lower bound, which is what MiniMax-M1 uses.
        weights: further factors of the tokens, as from `truncated_weights`, [rows, tokens] or [rows, 1].
        n_tokens: divisor of the sum of the tokens; None for the tokens of this mask, at least 1. With gradient
            accumulation: the tokens of the whole batch.
    """
    terms, metrics = cispo_terms(logp, logp_old, adv, mask, eps_high, eps_low)
    return average_tokens(weigh_tokens(terms, weights, mask), mask, n_tokens), metrics


def ppo_loss(
    logp: Tensor,
    logp_old: Tensor,
    adv: Tensor,
    mask: Tensor,
    eps_high: float = 0.2,
    eps_low: float | None = None,
    *,
    weights: Tensor | None = None,
    n_tokens: float | None = None,
) -> LossAndMetrics:
    """Return PPO's clipped loss, the mean over all tokens; `eps_low` None is eps_high, the rest as of `cispo_loss`."""
    terms, metrics = clipped_terms(logp, logp_old, adv, mask, eps_high, eps_low)
    return average_tokens(weigh_tokens(terms, weights, mask), mask, n_tokens), metrics


def dapo_loss(
    logp: Tensor,
    logp_old: Tensor,
    adv: Tensor,
    mask: Tensor,
    eps_high: float = 0.28,
    eps_low: float | None = 0.2,
    *,
    weights: Tensor | None = None,
    n_tokens: float | None = None,
) -> LossAndMetrics:
    """Return DAPO's loss, PPO's with a higher upper bound, without its sampling; arguments as of `cispo_loss`."""
    return ppo_loss(logp, logp_old, adv, mask, eps_high, eps_low, weights=weights, n_tokens=n_tokens)


def grpo_loss(
    logp: Tensor,
    logp_old: Tensor,
    adv: Tensor,
    mask: Tensor,
    eps_high: float = 0.2,
    eps_low: float | None = None,
    *,
    weights: Tensor | None = None,
    n_rows: float | None = None,
    logp_ref: Tensor | None = None,
    kl_weight: float = 0.0,
) -> LossAndMetrics:
    """Return GRPO's loss: PPO's tokens, averaged in each row, then over the rows that have tokens.

    Args:
        logp: log-probabilities of the sampled tokens under the policy that is trained, in nats, [rows, tokens].
        logp_old: the same under the policy that sampled them, [rows, tokens].
        adv: advantages, [rows, tokens], [rows, 1] or [rows].
        mask: 1 or True where a token is trained, [rows, tokens]; rows may be empty.
        eps_high: ratios above 1 + eps_high earn no more.
        eps_low: ratios below 1 - eps_low cost no more; None is eps_high.
        weights: further factors of the tokens, [rows, tokens] or [rows, 1].
        n_rows: divisor of the sum of the rows; None for the rows that have tokens, at least 1.
        logp_ref: log-probabilities of a reference policy, [rows, tokens], for a KL term (k3 of Schulman 2020).
        kl_weight: factor of that term, 0.04 in the paper.
    """
    terms, metrics = clipped_terms(logp, logp_old, adv, mask, eps_high, eps_low)
    terms = weigh_tokens(terms, weights, mask)
    if logp_ref is not None:
        difference = _subtract(logp_ref.detach(), logp, mask)
        terms = terms + kl_weight * (difference.exp() - difference - 1)
    return average_rows(terms, mask, n_rows), metrics


def cispo_terms(
    logp: Tensor, logp_old: Tensor, adv: Tensor, mask: Tensor, eps_high: float, eps_low: float | None = None
) -> LossAndMetrics:
    """Return CISPO's losses of the tokens, [rows, tokens] with 0 where masked, for trainers that average themselves."""
    usable, logp, ratio, adv = _prepare(logp, logp_old, adv, mask)
    weight = ratio.detach().clamp(min=None if eps_low is None else 1 - eps_low, max=1 + eps_high)
    return -weight * adv * logp, measure_ratios(ratio, mask, usable, weight != ratio)


def clipped_terms(
    logp: Tensor, logp_old: Tensor, adv: Tensor, mask: Tensor, eps_high: float, eps_low: float | None = None
) -> LossAndMetrics:
    """Return the losses of the tokens under PPO, GRPO and DAPO, [rows, tokens] with 0 where masked."""
    usable, _, ratio, adv = _prepare(logp, logp_old, adv, mask)
    plain = ratio * adv
    clipped = ratio.clamp(1 - (eps_high if eps_low is None else eps_low), 1 + eps_high) * adv
    return -torch.minimum(plain, clipped), measure_ratios(ratio, mask, usable, clipped < plain)


def weigh_tokens(terms: Tensor, weights: Tensor | None, mask: Tensor) -> Tensor:
    """Return the losses of the tokens times their weights, through which no gradient flows; None for no weights."""
    return terms if weights is None else terms * torch.where(mask.bool(), weights.detach(), 0)


def average_tokens(terms: Tensor, mask: Tensor, n_tokens: float | None = None) -> Tensor:
    """Return the sum of the trained tokens over `n_tokens`; None for their number, at least 1."""
    total = torch.where(mask.bool(), terms, 0).sum()
    return total / (mask.bool().sum().clamp(min=1) if n_tokens is None else n_tokens)


def average_rows(terms: Tensor, mask: Tensor, n_rows: float | None = None) -> Tensor:
    """Return the sum of the rows' means over `n_rows`; None for the number of rows with tokens, at least 1."""
    tokens = mask.bool().sum(-1)
    total = (torch.where(mask.bool(), terms, 0).sum(-1) / tokens.clamp(min=1)).sum()
    return total / ((tokens > 0).sum().clamp(min=1) if n_rows is None else n_rows)


def measure_ratios(ratio: Tensor, mask: Tensor, usable: Tensor, clipped: Tensor) -> dict[str, Tensor]:
    """Return metrics of trained tokens, detached scalars.

    `ratio_mean`, `ratio_max`; `clipped`: the share whose bound is in force (under PPO: that have no gradient);
    `kl`: the mean of logp_old - logp, an estimate of KL(old, new) in nats; `not_finite`: the share that is left
    out because a log-probability is not finite.
    """
    ratio, trained, number = ratio.detach(), mask.bool(), usable.sum().clamp(min=1)
    return {
        "ratio_mean": torch.where(usable, ratio, 0).sum() / number,
        "ratio_max": torch.where(usable, ratio, 0).max() if ratio.numel() else ratio.sum(),
        "clipped": (clipped & usable).sum() / number,
        "kl": -torch.where(usable, ratio.log(), 0).sum() / number,
        "not_finite": 1 - usable.sum() / trained.sum().clamp(min=1) if trained.any() else ratio.sum() * 0,
    }


def _prepare(logp: Tensor, logp_old: Tensor, adv: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return which tokens can be used, and logp, ratio and advantage of each, harmless where they cannot."""
    usable = mask.bool() & torch.isfinite(logp) & torch.isfinite(logp_old)
    logp = torch.where(usable, _widen(logp), 0)
    old = torch.where(usable, _widen(logp_old.detach()), 0)
    adv = _widen(adv.detach())
    adv = adv[:, None] if adv.dim() < logp.dim() else adv
    ratio = (logp - old).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return usable, logp, ratio, torch.where(usable, adv, 0)


def _subtract(logp: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """Return the log-ratio of the trained tokens, 0 where it is not finite or not trained."""
    usable = mask.bool() & torch.isfinite(logp) & torch.isfinite(other)
    difference = torch.where(usable, _widen(logp), 0) - torch.where(usable, _widen(other), 0)
    return difference.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def _widen(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()
