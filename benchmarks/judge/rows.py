"""Published tasks with what three people said of each, as OpenAI's annotations of SWE-bench have it.

The labels are 0..3, the worst of three; 2 and more counts as bad, as it did where SWE-bench Verified was selected *by*
these labels. A row of Verified is therefore never bad, and says nothing on how well bad rows are told. Rows of Lite
were selected without knowing the labels: on these the judge is measured.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mergemill.judging import cases_of
from miner.instances import lines
from taskdb.verdicts import Finding
from verifiers.judge.case import Case
from verifiers.judge.rules import findings_of
from verifiers.judge.signals import OF_THE_STATEMENT, SIGNALS, signals_of

BAD = 2.0
LABELS = {"underspecified": "underspecified", "unfair_tests": "false_negative"}
"""Our word -> column of the labels' file."""
NAMES = tuple(signal.__name__ for signal in SIGNALS)
JUDGED_BY = {"underspecified": tuple(signal.__name__ for signal in OF_THE_STATEMENT), "unfair_tests": NAMES}
"""Label -> signals whose weights it has."""


@dataclass(frozen=True)
class Rows:
    """Cases with their labels, in one order. `unselected`: whether a row was chosen without knowing the labels."""

    cases: tuple[Case, ...]
    bad: dict[str, np.ndarray]
    unselected: np.ndarray
    verified: np.ndarray

    @cached_property
    def repositories(self) -> np.ndarray:
        """Repository of each row: folds never part one."""
        return np.array([case.repo for case in self.cases])

    @cached_property
    def findings(self) -> list[tuple[Finding, ...]]:
        """What the rules see."""
        return [findings_of(case) for case in self.cases]

    @cached_property
    def table(self) -> np.ndarray:
        """Rows by signals; NaN where a signal has nothing to say."""
        every = [signals_of(case, found) for case, found in zip(self.cases, self.findings, strict=True)]
        return np.array([[np.nan if told[name] is None else told[name] for name in NAMES] for told in every], float)


def read(texts: Path, labels: Path) -> Rows:
    """The rows that have both texts and labels."""
    with labels.open(encoding="utf-8", newline="") as file:
        known = {row["instance_id"]: row for row in csv.DictReader(file)}
    chosen_by = {
        row["instance_id"]: " ".join(row.get("in", ())) for _, line in lines(texts) if (row := json.loads(line))
    }
    cases = tuple(case for case in cases_of(texts) if isinstance(case, Case) and case.name in known)
    return Rows(
        cases=cases,
        bad={
            ours: np.array([float(known[case.name][theirs]) >= BAD for case in cases])
            for ours, theirs in LABELS.items()
        },
        unselected=np.array(["Lite" in chosen_by[case.name] for case in cases]),
        verified=np.array(["Verified" in chosen_by[case.name] for case in cases]),
    )


def base_rates(labels: Path) -> dict[str, float]:
    """Share of bad rows among all that are labelled, with texts or without."""
    with labels.open(encoding="utf-8", newline="") as file:
        every = list(csv.DictReader(file))
    return {ours: float(np.mean([float(row[theirs]) >= BAD for row in every])) for ours, theirs in LABELS.items()}
