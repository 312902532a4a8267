"""The fit of the judge's model on generated rows."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("sklearn")
from benchmarks.judge.fit import FitData, cross_validate_nested, fit  # noqa: E402 - needs scikit-learn
from benchmarks.judge.measure import METRICS, compute_precision_at_top, compute_reliability, measure_metric  # noqa: E402


def make_data(seed: int = 3, rows: int = 120) -> FitData:
    """Two informative signals, one with the wrong sign, one of noise; ten repositories."""
    random = np.random.default_rng(seed)
    truth = random.random(rows) < 0.4
    result = truth[:, None] * np.array([1.5, 1.0, -1.5, 0.0]) + random.normal(size=(rows, 4))
    result[::7, 1] = np.nan
    groups = np.array([f"ada/{n % 10}" for n in range(rows)])
    return FitData(result, truth, groups, random.random(rows) < 0.8)


def test_no_repository_is_in_training_and_test_rows() -> None:
    data = make_data()
    for learn, judge in data.folds():
        assert not set(data.groups[learn]) & set(data.groups[judge])


def test_weights_are_nonnegative_and_informative_signals_count_most() -> None:
    fitted = fit(make_data(), 0.4)
    assert (fitted.weights >= 0).all()
    assert fitted.weights[0] > fitted.weights[2]
    assert fitted.weights[0] > fitted.weights[3]


def test_probabilities_of_unseen_rows_rank_and_are_nearly_right() -> None:
    data = make_data()
    response, chosen = cross_validate_nested(data, 0.4)
    own = data.unselected
    value = measure_metric(METRICS["AUROC"], data.truth[own], response[own])
    assert value.low < value.value < value.high
    assert value.value > 0.6
    assert len(chosen) == 5
    assert abs(response.mean() - data.truth.mean()) < 0.15


def test_metrics_of_known_scores() -> None:
    truth = np.array([True, False] * 10)
    assert compute_precision_at_top(truth, truth.astype(float)) == 1.0
    assert compute_precision_at_top(truth, 1 - truth.astype(float)) == 0.0
    assert str(measure_metric(METRICS["AUROC"], np.array([False] * 5), np.arange(5.0))) == "-"
    assert [n for n, _, _ in compute_reliability(truth, np.linspace(0, 1, 20))] == [4] * 5
