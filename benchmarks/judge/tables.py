"""Tables of the benchmark in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.judge.measure import CALIBRATION, METRICS, compute_reliability, measure_metric
from benchmarks.judge.rows import LabelledRows
from taskdb.records.verdicts import Completion
from verifiers.judge.assess import assess
from verifiers.judge.case import JudgeCase
from verifiers.judge.completion import complete_by_rules, measure_completion
from verifiers.judge.rules import DECISIVE

Scores = dict[str, np.ndarray]
"""Label -> probability (or any score) of each row."""


def render_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def select_slices(rows: LabelledRows) -> dict[str, np.ndarray]:
    """Return name -> mask of rows. Only the first slice was selected independently of the labels."""
    return {
        "Lite": rows.unselected,
        "Lite, not Verified": rows.unselected & ~rows.verified,
        "Verified": rows.verified,
        "all": np.ones(len(rows.cases), bool),
    }


def render_ranking(rows: LabelledRows, judges: dict[str, Scores]) -> str:
    """Return how well each judge ranks bad rows before others."""
    lines = []
    for label, truth in rows.bad.items():
        for where, chosen in select_slices(rows).items():
            for name, scores in judges.items():
                values = [measure_metric(metric, truth[chosen], scores[label][chosen]) for metric in METRICS.values()]
                lines.append([label, where, chosen.sum(), f"{truth[chosen].mean():.2f}", name, *values])
    return render_table(["label", "rows", "n", "bad", "judge", *METRICS], lines)


def render_calibration(rows: LabelledRows, judges: dict[str, Scores]) -> str:
    """Return the calibration of the probabilities on the unselected rows."""
    lines = []
    unselected = rows.unselected
    for label, truth in rows.bad.items():
        for name, scores in judges.items():
            observed, predicted = truth[unselected], scores[label][unselected]
            bins = "; ".join(f"{p:.2f} -> {share:.2f}" for _, p, share in compute_reliability(observed, predicted))
            lines.append(
                [label, name, *(measure_metric(metric, observed, predicted) for metric in CALIBRATION.values()), bins]
            )
    return render_table(["label", "judge", *CALIBRATION, "predicted -> observed, by fifths"], lines)


def render_findings(rows: LabelledRows) -> str:
    """Return for each finding its frequency and its share of bad rows."""
    unselected = rows.unselected
    lines = []
    counted = Counter(rule for findings in rows.findings for rule in {finding.rule for finding in findings})
    for rule, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        hit = np.array([any(finding.rule == rule for finding in findings) for findings in rows.findings])
        shares = list(_format_shares(rows, hit & unselected))
        decisive = "yes" if rule in DECISIVE else ""
        lines.append([rule, decisive, (hit & unselected).sum(), *shares, (hit & ~unselected).sum()])
    return render_table(
        ["finding", "enough alone", "Lite rows", "underspecified", "unfair_tests", "either", "rows of Verified alone"],
        lines,
    )


def render_completions(cases: Sequence[JudgeCase]) -> str:
    """Return how many of the cases that are set aside rules complete, and the mean scores before and after."""
    assessments = [(case, assess(case)) for case in cases]
    aside = [(case, assessment) for case, assessment in assessments if assessment.set_aside]
    measured = [
        measure_completion(case, assessment, complete_by_rules(case, assessment))[0] for case, assessment in aside
    ]
    completed = [completion for completion in measured if completion and completion.before and completion.after]
    scores = [_format_means(completed, name) for name in ("underspecified", "unfair_tests")]
    return render_table(
        ["rows", "set aside", "completed", "underspecified", "unfair_tests"],
        [[len(cases), len(aside), len(completed), *scores]],
    )


def _format_means(completions: Sequence[Completion], score: str) -> str:
    """Return the mean of a score before and after completions that have both."""
    if not completions:
        return "-"
    before, after = (
        np.mean([getattr(getattr(completion, version), score) for completion in completions])
        for version in ("before", "after")
    )
    return f"{before:.2f} -> {after:.2f}"


def _format_shares(rows: LabelledRows, hit: np.ndarray) -> Iterator[str]:
    """Yield for each label and for either: bad rows among those hit, their share, and the lift over all rows."""
    either = np.logical_or(*rows.bad.values())
    for truth in (*rows.bad.values(), either):
        if not hit.any():
            yield "-"
            continue
        share = truth[hit].mean()
        yield f"{truth[hit].sum()} ({share:.0%}, {share / truth[rows.unselected].mean():.2f}x)"
