"""Published tasks with the labels of three annotators each, from OpenAI's annotations of SWE-bench.

The labels are 0..3, the worst of three; 2 and more counts as bad, as in the selection of SWE-bench Verified. Verified
was selected *by* these labels, so none of its rows is bad and it cannot show how well bad rows are recognized. Lite was
selected without the labels: it is used for the measurements.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mergemill.pipeline.instances import read_cases
from miner.row_files import read_row_file
from taskdb.records.verdicts import Finding
from verifiers.judge.case import JudgeCase
from verifiers.judge.rules import apply_rules
from verifiers.judge.signals import SIGNALS, STATEMENT_SIGNALS, compute_signals

BAD_LEVEL = 2.0
LABELS = {"underspecified": "underspecified", "unfair_tests": "false_negative"}
"""Name of a label -> column of the labels' file."""
NAMES = tuple(SIGNALS)
SIGNALS_BY_LABEL = {"underspecified": tuple(STATEMENT_SIGNALS), "unfair_tests": NAMES}
"""Label -> signals with a weight for it."""


@dataclass(frozen=True)
class LabelledRows:
    """Labelled cases in a fixed order. `unselected`: whether a row was chosen independently of the labels."""

    cases: tuple[JudgeCase, ...]
    bad: dict[str, np.ndarray]
    unselected: np.ndarray
    verified: np.ndarray

    @cached_property
    def repositories(self) -> np.ndarray:
        """Repository of each row; folds are grouped by it."""
        return np.array([case.repo for case in self.cases])

    @cached_property
    def findings(self) -> list[tuple[Finding, ...]]:
        """Findings of the rules for each row."""
        return [apply_rules(case) for case in self.cases]

    @cached_property
    def table(self) -> np.ndarray:
        """Rows by signals; NaN where a signal is undefined."""
        rows = [compute_signals(case, finding) for case, finding in zip(self.cases, self.findings, strict=True)]
        return np.array(
            [[np.nan if signals[name] is None else signals[name] for name in NAMES] for signals in rows], float
        )


def read_rows(texts: Path, labels: Path) -> LabelledRows:
    """Read the rows that have both texts and labels."""
    with labels.open(encoding="utf-8", newline="") as file:
        known = {row["instance_id"]: row for row in csv.DictReader(file)}
    chosen_by = {
        row.value["instance_id"]: " ".join(row.value.get("in", ())) for row in read_row_file(texts) if row.value
    }
    cases = tuple(case for case in read_cases(texts) if isinstance(case, JudgeCase) and case.name in known)
    return LabelledRows(
        cases=cases,
        bad={
            ours: np.array([float(known[case.name][theirs]) >= BAD_LEVEL for case in cases])
            for ours, theirs in LABELS.items()
        },
        unselected=np.array(["Lite" in chosen_by[case.name] for case in cases]),
        verified=np.array(["Verified" in chosen_by[case.name] for case in cases]),
    )


def compute_base_rates(labels: Path) -> dict[str, float]:
    """Return the share of bad rows among all labelled ones, with or without texts."""
    with labels.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {ours: float(np.mean([float(row[theirs]) >= BAD_LEVEL for row in rows])) for ours, theirs in LABELS.items()}
