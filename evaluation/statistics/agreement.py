"""Agreement of a judge with labels: Cohen's kappa (Cohen 1960), with an interval over families."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 2_000
SEED = 20_240_503
"""Of resampling: the same labels always give the same interval."""


def compute_kappa(labels: Sequence[str], verdicts: Sequence[str]) -> float | None:
    """Return kappa; None without labels, and where agreement by chance is certain, so that it is undefined.

    Args:
        labels: label of each finding.
        verdicts: verdict of the judge on it, as long as `labels`; words that are no label agree with none.
    """
    kappas = _compute_kappas(_count_pairs(labels, verdicts, ["all"] * len(labels)))
    return None if len(labels) == 0 or np.isnan(kappas[0]) else float(kappas[0])


def compute_kappa_interval(
    labels: Sequence[str], verdicts: Sequence[str], families: Sequence[str]
) -> tuple[float, float] | None:
    """Return the 95 % interval of kappa, by resampling whole families with a fixed seed.

    None for fewer than two families, or where kappa is undefined for most samples.
    """
    tables = _count_pairs(labels, verdicts, families)
    if len(tables) < 2:
        return None
    drawn = np.random.default_rng(SEED).multinomial(len(tables), [1 / len(tables)] * len(tables), size=RESAMPLES)
    kappas = _compute_kappas(np.tensordot(drawn, tables, axes=1))
    defined = kappas[~np.isnan(kappas)]
    if 2 * len(defined) < len(kappas):
        return None
    low, high = np.quantile(defined, (0.025, 0.975))
    return float(low), float(high)


def _count_pairs(labels: Sequence[str], verdicts: Sequence[str], families: Sequence[str]) -> np.ndarray:
    """Return a table for each family, by name: how often a label (row) has a verdict (column)."""
    words = {word: place for place, word in enumerate(sorted({*labels, *verdicts}))}
    places = {name: place for place, name in enumerate(sorted(set(families)))}
    tables = np.zeros((max(len(places), 1), len(words), len(words)))
    for label, verdict, family in zip(labels, verdicts, families, strict=True):
        tables[places[family], words[label], words[verdict]] += 1
    return tables


def _compute_kappas(tables: np.ndarray) -> np.ndarray:
    """Return kappa of each table, nan where it is undefined."""
    totals = tables.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.trace(tables, axis1=1, axis2=2) / totals
        expected = np.sum(tables.sum(axis=2) * tables.sum(axis=1), axis=1) / totals**2
        kappas: np.ndarray = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    return kappas
