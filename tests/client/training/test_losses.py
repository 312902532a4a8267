"""The objectives against a reference in numpy, and what tells them apart."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from mergemill_client.training import cispo_loss, dapo_loss, grpo_loss, ppo_loss, truncated_weights
from mergemill_client.training.losses import cispo_terms, clipped_terms

from tests.client.training import reference
from tests.client.training.reference import draw_batch

CASES = {
    "cispo": (partial(cispo_loss, eps_high=4.0), partial(reference.cispo, high=4.0)),
    "cispo-with-a-lower-bound": (
        partial(cispo_loss, eps_high=0.5, eps_low=0.3),
        partial(reference.cispo, high=0.5, low=0.3),
    ),
    "ppo": (ppo_loss, partial(reference.clipped, high=0.2, low=0.2)),
    "dapo": (dapo_loss, partial(reference.clipped, high=0.28, low=0.2)),
    "grpo": (grpo_loss, partial(reference.clipped, high=0.2, low=0.2, by_row=True)),
}
LOSSES = {name: loss for name, (loss, _) in CASES.items()}


def compute(loss, batch, dtype=torch.float64):
    """Return loss, gradient by logp, and metrics."""
    logp, old, adv = (torch.tensor(array, dtype=dtype) for array in batch[:3])
    logp.requires_grad_()
    value, metrics = loss(logp, old, adv, torch.tensor(batch[3]))
    value.backward()
    return value.item(), logp.grad.double().numpy(), {name: metric.item() for name, metric in metrics.items()}


@pytest.mark.parametrize("case", CASES)
def test_an_objective_is_the_reference(case: str) -> None:
    loss, expected = CASES[case]
    for seed in range(200):
        batch = draw_batch(seed)
        value, gradient, _ = compute(loss, batch)
        wanted, wanted_gradient = expected(batch) if batch[3].any() else (0.0, np.zeros_like(batch[0]))
        assert value == pytest.approx(wanted, rel=1e-9, abs=1e-12), seed
        np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_on_policy_every_objective_is_reinforce(case: str) -> None:
    logp, _, adv, mask = draw_batch(5)
    _, gradient, metrics = compute(LOSSES[case], (logp, logp.copy(), adv, mask))
    share = mask / mask.sum(1, keepdims=True).clip(1) / (mask.sum(1) > 0).sum() if case == "grpo" else mask / mask.sum()
    np.testing.assert_allclose(gradient, -adv * share, rtol=1e-9)
    assert metrics["ratio_mean"] == pytest.approx(1)
    assert metrics["clipped"] == metrics["kl"] == 0


def test_a_token_with_ratio_100_and_a_positive_advantage_has_a_gradient_under_cispo_alone() -> None:
    batch = np.array([[-0.1]]), np.array([[-0.1 - math.log(100)]]), np.array([[1.0]]), np.array([[True]])
    gradients = {name: compute(loss, batch)[1].item() for name, loss in LOSSES.items()}
    assert gradients == {"cispo": -5.0, "cispo-with-a-lower-bound": -1.5, "ppo": 0, "dapo": 0, "grpo": 0}


def test_the_lower_bound_of_cispo_raises_weights_of_unlikely_tokens() -> None:
    batch = np.array([[-3.0]]), np.array([[-3.0 + math.log(10)]]), np.array([[1.0]]), np.array([[True]])
    losses = {low: compute(partial(cispo_loss, eps_high=4, eps_low=low), batch)[1].item() for low in (None, 1.0, 0.2)}
    assert losses == pytest.approx({None: -0.1, 1.0: -0.1, 0.2: -0.8})


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf])
def test_what_is_masked_may_hold_anything(case: str, value: float) -> None:
    batch = draw_batch(3)
    spoiled = tuple(np.where(batch[3], array, value) for array in batch[:3])
    assert not batch[3].all()
    expected, actual = compute(LOSSES[case], batch), compute(LOSSES[case], (*spoiled, batch[3]))
    assert actual[0] == expected[0]
    np.testing.assert_array_equal(actual[1], expected[1])
    assert actual[2] == expected[2]


@pytest.mark.parametrize("terms", [cispo_terms, clipped_terms])
def test_losses_of_masked_tokens_are_0_for_trainers_that_multiply_by_the_mask(terms) -> None:
    logp, old, adv, mask = (torch.tensor(array) for array in draw_batch(3))
    spoiled = [torch.where(mask, tensor, math.nan).requires_grad_() for tensor in (logp, old, adv)]
    losses, _ = terms(*spoiled, mask, 4.0)
    assert not losses[~mask].any()
    (losses * mask).sum().backward()
    assert torch.isfinite(spoiled[0].grad).all()


@pytest.mark.parametrize("case", CASES)
def test_only_the_policy_that_is_trained_has_a_gradient(case: str) -> None:
    *inputs, mask = (torch.tensor(array) for array in draw_batch(3))
    for tensor in inputs:
        tensor.requires_grad_()
    weights = torch.ones_like(mask, dtype=torch.float64, requires_grad=True)
    LOSSES[case](*inputs, mask, weights=weights)[0].backward()
    assert inputs[0].grad is not None
    assert [tensor.grad for tensor in (*inputs[1:], weights)] == [None, None, None]


def test_the_clipped_share_is_that_of_bounds_in_force() -> None:
    ratios, adv = np.array([[10.0, 0.1, 10.0, 0.1, 1.0]]), np.array([[1.0, 1.0, -1.0, -1.0, 1.0]])
    batch = np.log(ratios) - 3, np.full_like(ratios, -3), adv, np.ones_like(ratios, dtype=bool)
    shares = {name: compute(loss, batch)[2]["clipped"] for name, loss in LOSSES.items()}
    assert shares == pytest.approx(
        {"cispo": 0.4, "cispo-with-a-lower-bound": 0.8, "ppo": 0.4, "dapo": 0.4, "grpo": 0.4}
    )
    _, gradient, metrics = compute(ppo_loss, batch)
    assert np.count_nonzero(gradient) == 3
    assert metrics["ratio_mean"] == pytest.approx(4.24)
    assert metrics["ratio_max"] == pytest.approx(10)
    assert metrics["kl"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_trained_token_without_a_finite_probability_adds_nothing_and_is_counted(
    case: str, place: int, value: float
) -> None:
    batch = draw_batch(1)
    row, token = np.argwhere(batch[3])[0]
    batch[place][row, token] = value
    loss, gradient, metrics = compute(LOSSES[case], batch)
    assert math.isfinite(loss)
    assert np.isfinite(gradient).all()
    assert gradient[row, token] == 0
    assert np.count_nonzero(gradient) > 0
    assert metrics["not_finite"] == pytest.approx(1 / batch[3].sum())


@pytest.mark.parametrize("case", CASES)
def test_a_batch_without_trained_tokens_has_loss_and_gradient_0(case: str) -> None:
    logp, old, adv, mask = draw_batch(1)
    value, gradient, metrics = compute(LOSSES[case], (logp, old, adv, np.zeros_like(mask)))
    assert value == 0
    assert not gradient.any()
    assert not any(math.isnan(metric) for metric in metrics.values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("case", CASES)
def test_half_precision_is_computed_in_fp32(case: str, dtype: torch.dtype) -> None:
    batch = draw_batch(7)
    rounded = tuple(torch.tensor(array).to(dtype).double().numpy() for array in batch[:3])
    expected, actual = compute(LOSSES[case], (*rounded, batch[3])), compute(LOSSES[case], batch, dtype)
    assert actual[0] == pytest.approx(expected[0], rel=1e-5)
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-2)  # the gradient has the type of logp


@pytest.mark.parametrize("case", CASES)
def test_a_ratio_beyond_every_number_leaves_the_loss_finite(case: str) -> None:
    batch = np.array([[-0.1, -5e4]]), np.array([[-6e4, -0.1]]), np.array([[-1.0, -1.0]]), np.array([[True, True]])
    value, gradient, _ = compute(LOSSES[case], batch, torch.float16)
    assert math.isfinite(value)
    assert not np.isnan(gradient).any()


def test_advantages_of_rows_and_of_tokens_are_the_same() -> None:
    logp, old, adv, mask = (torch.tensor(array) for array in draw_batch(2))
    losses = {cispo_loss(logp, old, advantage, mask, 4.0)[0].item() for advantage in (adv, adv[:, 0], adv[:, :1])}
    assert len(losses) == 1


@pytest.mark.parametrize(("loss", "key"), [(partial(cispo_loss, eps_high=4.0), "n_tokens"), (grpo_loss, "n_rows")])
def test_micro_batches_add_up_to_the_batch(loss, key: str) -> None:
    batch = draw_batch(2)
    logp, old, adv, mask = (torch.tensor(array) for array in batch)
    assert len(mask) > 1
    number = mask.sum().item() if key == "n_tokens" else (mask.sum(1) > 0).sum().item()
    parts = [
        loss(logp[i : i + 1], old[i : i + 1], adv[i : i + 1], mask[i : i + 1], **{key: number})[0].item()
        for i in range(len(mask))
    ]
    assert sum(parts) == pytest.approx(compute(loss, batch)[0])


def test_truncated_weights_multiply_tokens_and_have_no_gradient() -> None:
    logp, infer, adv, mask = (torch.tensor(array) for array in draw_batch(2))
    logp.requires_grad_()
    weights = truncated_weights(logp, infer, mask, cap=2.0)
    assert not weights.requires_grad
    assert weights.max() == 2.0
    torch.testing.assert_close(weights, torch.where(mask, (logp - infer).exp().clamp(max=2), 0).float())
    loss, _ = cispo_loss(logp, logp.detach(), adv, mask, 4.0, weights=weights)
    loss.backward()
    torch.testing.assert_close(logp.grad, -adv * weights.double() * mask / mask.sum())


def test_grpo_adds_the_divergence_from_a_reference_policy() -> None:
    logp, old, adv, mask = (torch.tensor(array) for array in draw_batch(2, spread=0.1))
    reference_logp = logp + 0.3
    plain, _ = grpo_loss(logp, old, adv, mask)
    with_term, _ = grpo_loss(logp, old, adv, mask, logp_ref=reference_logp, kl_weight=0.04)
    assert (with_term - plain).item() == pytest.approx(0.04 * (math.exp(0.3) - 0.3 - 1))
