"""The calibrated model: signals added up with weights that are pulled towards being equal, and a logistic curve.

With a hundred rows, weights fitted freely follow the noise; equal weights of signals with known directions are hard to
beat (Dawes, The robust beauty of improper linear models, 1979). So a ridge regression (scikit-learn) with weights that
cannot be negative also gets the signals' mean, three times as large: the penalty makes it take the mean and depart from
it only where the rows insist. How much they must insist, and what rows selected by the labels count, is chosen inside
the folds, which are by repository all the way down.

The share of bad rows is one number, taken from all rows that were not selected. Taken from each fold's own rows it
would be high where it is low among the judged ones, and spoil the order across folds; `base=None` does so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

CAP = 2.5
"""Spreads from the mean beyond which a signal counts no more."""
TOWARDS_EQUAL = 3.0
FOLDS = 5


@dataclass(frozen=True)
class Choice:
    """What is chosen inside the folds. `penalty`: of the ridge; `selected`: weight of rows selected by the labels."""

    penalty: float
    selected: float


CHOICES = tuple(Choice(penalty, selected) for penalty, selected in product((300.0, 3000.0), (0.0, 0.3)))


@dataclass(frozen=True)
class Data:
    """Signals (NaN: nothing to say), one label, and for each row its repository and whether it was not selected."""

    table: np.ndarray
    truth: np.ndarray
    groups: np.ndarray
    unselected: np.ndarray

    def take(self, rows: np.ndarray) -> Data:
        """Some of the rows."""
        return Data(self.table[rows], self.truth[rows], self.groups[rows], self.unselected[rows])

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from and rows to judge; no repository is on both sides."""
        folds = min(FOLDS, len(set(self.groups)))
        yield from GroupKFold(folds).split(self.table, self.truth, self.groups)


@dataclass(frozen=True)
class Fitted:
    """`odds = intercept + weights . scaled signals`, with the numbers that scale them."""

    mean: np.ndarray
    spread: np.ndarray
    weights: np.ndarray
    intercept: float
    choice: Choice

    def odds(self, table: np.ndarray) -> np.ndarray:
        """Logarithm of the odds of being bad."""
        result: np.ndarray = self.intercept + scaled(table, self.mean, self.spread) @ self.weights
        return result

    def probability(self, table: np.ndarray) -> np.ndarray:
        """0..1."""
        result: np.ndarray = 1 / (1 + np.exp(-self.odds(table)))
        return result


def scaled(table: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Signals as they count."""
    result: np.ndarray = np.nan_to_num(np.clip((table - mean) / spread, -CAP, CAP))
    return result


def spread_of(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of each signal over the rows that were not selected; a signal that never varies has spread 1."""
    own = data.table[data.unselected]
    spread = np.nanstd(own, axis=0)
    return np.nanmean(own, axis=0), np.where(spread > 0, spread, 1.0)


def weigh(data: Data, choice: Choice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and spread of the signals, and their weights, none negative; no calibration yet."""
    mean, spread = spread_of(data)
    columns = scaled(data.table, mean, spread)
    n = columns.shape[1]
    common = columns.mean(axis=1, keepdims=True) * np.sqrt(n) * TOWARDS_EQUAL
    counts = np.where(data.unselected, 1.0, choice.selected)
    some = counts > 0
    model = Ridge(alpha=choice.penalty, positive=True)
    model.fit(np.hstack([columns, common])[some], data.truth[some].astype(float), sample_weight=counts[some])
    weights = model.coef_[:n] + model.coef_[n] * TOWARDS_EQUAL / np.sqrt(n)
    return mean, spread, weights


def out_of_fold(data: Data, choice: Choice) -> np.ndarray:
    """Weighted sums of each row by weights that saw nothing of its repository."""
    sums = np.zeros(len(data.truth))
    for learn, judge in data.folds():
        mean, spread, weights = weigh(data.take(learn), choice)
        sums[judge] = scaled(data.table[judge], mean, spread) @ weights
    return sums


def fit(data: Data, base: float | None) -> Fitted:
    """The model on some rows: the choice by folds inside of them, then weights, then the curve.

    Args:
        data: the rows.
        base: share of bad rows to be expected; None: that of the rows.
    """
    own = data.unselected
    tried = [(out_of_fold(data, choice), choice) for choice in CHOICES]
    _, choice = max(tried, key=lambda one: round(float(roc_auc_score(data.truth[own], one[0][own])), 3))
    mean, spread, weights = weigh(data, choice)
    sums = (scaled(data.table, mean, spread) @ weights)[own]
    middle, width = float(sums.mean()), float(sums.std()) or 1.0
    curve = LogisticRegression(C=1.0).fit(((sums - middle) / width)[:, None], data.truth[own])
    slope = max(0.0, float(curve.coef_[0, 0])) / width
    share = float(data.truth[own].mean()) if base is None else base
    return Fitted(mean, spread, weights * slope, float(np.log(share / (1 - share))) - slope * middle, choice)


def judged_by_others(data: Data, base: float | None) -> tuple[np.ndarray, list[Choice]]:
    """Probability of each row by a model that saw nothing of its repository, choices included; and what was chosen."""
    found, chosen = np.zeros(len(data.truth)), []
    for learn, judge in data.folds():
        fitted = fit(data.take(learn), base)
        chosen.append(fitted.choice)
        found[judge] = fitted.probability(data.table[judge])
    return found, chosen


def equal_weights(data: Data) -> np.ndarray:
    """Mean of the scaled signals: nothing is fitted but their mean and spread, by other repositories."""
    found = np.zeros(len(data.truth))
    for learn, judge in data.folds():
        mean, spread = spread_of(data.take(learn))
        found[judge] = scaled(data.table[judge], mean, spread).mean(axis=1)
    return found
