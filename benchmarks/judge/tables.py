"""What the benchmark prints, as markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.judge.measure import CALIBRATION, METRICS, measured, reliability
from benchmarks.judge.rows import Rows
from verifiers.judge.rules import DECISIVE

Scores = dict[str, np.ndarray]
"""Label -> probability (or any score) of each row."""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def slices(rows: Rows) -> dict[str, np.ndarray]:
    """Name -> rows it means. Only the first was selected without knowing the labels."""
    return {
        "Lite": rows.unselected,
        "Lite, not Verified": rows.unselected & ~rows.verified,
        "Verified": rows.verified,
        "all": np.ones(len(rows.cases), bool),
    }


def ranking(rows: Rows, judges: dict[str, Scores]) -> str:
    """How well each judge puts bad rows before others."""
    found = []
    for label, truth in rows.bad.items():
        for where, chosen in slices(rows).items():
            for name, scores in judges.items():
                values = [measured(metric, truth[chosen], scores[label][chosen]) for metric in METRICS.values()]
                found.append([label, where, chosen.sum(), f"{truth[chosen].mean():.2f}", name, *values])
    return table(["label", "rows", "n", "bad", "judge", *METRICS], found)


def calibration(rows: Rows, judges: dict[str, Scores]) -> str:
    """How far the probabilities can be believed, on the rows that were not selected."""
    found = []
    own = rows.unselected
    for label, truth in rows.bad.items():
        for name, scores in judges.items():
            told, said = truth[own], scores[label][own]
            bins = "; ".join(f"{p:.2f} -> {share:.2f}" for _, p, share in reliability(told, said))
            found.append([label, name, *(measured(metric, told, said) for metric in CALIBRATION.values()), bins])
    return table(["label", "judge", *CALIBRATION, "said -> seen, by fifths"], found)


def findings(rows: Rows) -> str:
    """Each finding: how often, and how many of the rows it speaks of are bad."""
    own = rows.unselected
    found = []
    counted = Counter(rule for told in rows.findings for rule in {finding.rule for finding in told})
    for rule, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        hit = np.array([any(finding.rule == rule for finding in told) for told in rows.findings])
        shares = list(_shares(rows, hit & own))
        decisive = "yes" if rule in DECISIVE else ""
        found.append([rule, decisive, (hit & own).sum(), *shares, (hit & ~own).sum()])
    return table(
        ["finding", "enough alone", "Lite rows", "underspecified", "unfair_tests", "either", "rows of Verified alone"],
        found,
    )


def _shares(rows: Rows, hit: np.ndarray) -> Iterator[str]:
    """For each label and for either: bad rows of those hit, their share, and how many times the usual one that is."""
    either = np.logical_or(*rows.bad.values())
    for truth in (*rows.bad.values(), either):
        if not hit.any():
            yield "-"
            continue
        share = truth[hit].mean()
        yield f"{truth[hit].sum()} ({share:.0%}, {share / truth[rows.unselected].mean():.2f}x)"
