"""What trainer and inference engine disagree about, and which tokens are left out for it."""

from __future__ import annotations

import math

import pytest
import torch
from mergemill_client.training import mask_outliers, mismatch_report

TRAIN = torch.tensor([[-1.0, -2.0, -3.0, -9.0], [-0.5, -0.5, -0.5, -0.5], [-1.0, -1.0, -1.0, -1.0]])
INFER = torch.tensor([[-1.1, -1.9, -3.0, 5.0], [-0.5, -4.5, -0.5, -0.5], [-1.4, -1.4, -1.4, -1.4]])
MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]])


def test_the_report_is_of_trained_tokens() -> None:
    report = mismatch_report(TRAIN, INFER, MASK)
    ratios = torch.tensor([0.1, -0.1, 0, 0, 4, 0, 0, 0.4, 0.4, 0.4, 0.4]).double()
    probabilities = torch.stack([TRAIN[MASK.bool()].exp(), INFER[MASK.bool()].exp()]).double()
    assert (report.tokens, report.not_finite) == (11, 0)
    assert report.mean_abs == pytest.approx(5.8 / 11, rel=1e-6)
    assert report.max_abs == pytest.approx(4)
    assert report.kl == pytest.approx((ratios.exp() - 1 - ratios).mean().item(), rel=1e-6)
    assert report.correlation == pytest.approx(torch.corrcoef(probabilities)[0, 1].item())
    assert report.probability_max == pytest.approx(math.exp(-0.5) - math.exp(-4.5))
    assert report.sequence_ratio_max == pytest.approx(math.exp(4))
    assert report.geometric_mean_max == pytest.approx(math.exp(1))
    weights = ratios.exp()
    assert report.effective_share == pytest.approx((weights.sum() ** 2 / (weights**2).sum() / 11).item(), rel=1e-6)


def test_differences_count_in_both_directions() -> None:
    report, turned = mismatch_report(TRAIN, INFER, MASK), mismatch_report(INFER, TRAIN, MASK)
    for name in ("max_abs", "sequence_ratio_max", "geometric_mean_max", "probability_max"):
        assert getattr(turned, name) == pytest.approx(getattr(report, name)), name


def test_equal_probabilities_differ_in_nothing() -> None:
    report = mismatch_report(TRAIN, TRAIN, MASK)
    assert report.mean_abs == report.max_abs == report.kl == report.probability_max == 0
    assert report.sequence_ratio_max == report.geometric_mean_max == report.effective_share == 1
    assert report.correlation == pytest.approx(1)


def test_tokens_that_are_not_finite_are_counted_apart() -> None:
    infer = INFER.clone()
    infer[1, 1] = -math.inf
    report = mismatch_report(TRAIN, infer, MASK)
    assert (report.tokens, report.not_finite) == (10, 1)
    assert report.max_abs == pytest.approx(0.4)
    empty = mismatch_report(TRAIN, INFER, torch.zeros_like(MASK))
    assert (empty.tokens, empty.max_abs) == (0, 0)


def test_a_row_is_left_out_for_the_ratio_of_its_probabilities_up_or_down() -> None:
    for train, infer in ((TRAIN, INFER), (INFER, TRAIN)):
        kept, counts = mask_outliers(train, infer, MASK, sequence_ratio=10.0)
        assert kept.tolist() == [[True, True, True, False], [False] * 4, [True] * 4]
        assert (counts.rows_by_ratio, counts.tokens_before, counts.tokens_after) == (1, 11, 7)


def test_a_row_is_left_out_for_the_geometric_mean_whatever_its_length() -> None:
    kept, counts = mask_outliers(TRAIN, INFER, MASK, geometric_mean=1.3)
    assert kept.tolist() == [[True, True, True, False], [False] * 4, [False] * 4]
    assert (counts.rows_by_ratio, counts.rows_by_mean) == (0, 2)


def test_the_tokens_above_a_quantile_are_left_out() -> None:
    kept, counts = mask_outliers(TRAIN, INFER, MASK, quantile=10 / 11)
    assert kept.tolist() == [[True, True, True, False], [True, False, True, True], [True] * 4]
    assert counts.tokens_by_quantile == 1
    assert mask_outliers(TRAIN, INFER, MASK, quantile=1.0)[0].tolist() == MASK.bool().tolist()


def test_without_rules_only_tokens_that_are_not_finite_are_left_out() -> None:
    train = TRAIN.clone()
    train[2, 0] = math.nan
    kept, counts = mask_outliers(train, INFER, MASK)
    assert kept.tolist() == [[True, True, True, False], [True] * 4, [False, True, True, True]]
    assert counts.tokens_after == 10


@pytest.mark.parametrize("rule", [{"sequence_ratio": 0.5}, {"geometric_mean": 0.0}, {"quantile": 0.0}, {"quantile": 2}])
def test_a_bound_without_sense_is_refused(rule: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(rule))):
        mask_outliers(TRAIN, INFER, MASK, **rule)
