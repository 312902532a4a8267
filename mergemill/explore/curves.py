"""Turns and accuracy by round of evolution, and their differences to the first round, paired by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.comparisons import compare_pairs
from evaluation.statistics.intervals import compute_share_interval

ROUND_KEYS = ("round", "questions", "accuracy", "low", "high", "turns", "pairs", "accuracy_change", "turns_change")


def compute_curves(samples: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each round: share of right samples with its interval, turns of right samples, changes.

    Args:
        samples: rows of `taskdb.queries.questions.list_samples`.

    Returns:
        Rows under ROUND_KEYS. A change has `difference`, `low`, `high` (95 %, over walks) and `pairs`: walks with both
        rounds; null for round 0 and below two pairs.
    """
    rounds: dict[int, dict[str, Mapping[str, Any]]] = {}
    for sample in samples:
        rounds.setdefault(sample["round"], {})[sample["walk"]] = sample
    first = rounds.get(0, {})
    return [_make_row(number, rounds[number], first if number else {}) for number in sorted(rounds)]


def _make_row(
    number: int, walks: Mapping[str, Mapping[str, Any]], first: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    shares = [row["solved"] / row["attempts"] for row in walks.values()]
    accuracy = compute_clustered_mean(shares, list(walks))
    interval = compute_share_interval(accuracy)
    turns = [row["mean_turns"] for row in walks.values() if row["mean_turns"] is not None]
    paired = [walk for walk in walks if walk in first]
    return {
        "round": number,
        "questions": len(walks),
        "accuracy": accuracy.mean,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        "turns": sum(turns) / len(turns) if turns else None,
        "pairs": len(paired),
        "accuracy_change": _compare(paired, walks, first, lambda row: row["solved"] / row["attempts"]),
        "turns_change": _compare(paired, walks, first, lambda row: row["mean_turns"]),
    }


def _compare(
    paired: Sequence[str],
    walks: Mapping[str, Mapping[str, Any]],
    first: Mapping[str, Mapping[str, Any]],
    get: Any,
) -> dict[str, float | int] | None:
    values = {walk: (get(first[walk]), get(walks[walk])) for walk in paired}
    known = {walk: pair for walk, pair in values.items() if None not in pair}
    if not known:
        return None
    change = compare_pairs([pair[0] for pair in known.values()], [pair[1] for pair in known.values()], list(known))
    if change is None:
        return None
    return {"difference": change.difference, "low": change.low, "high": change.high, "pairs": change.n}
