"""Read files of manually labelled commits and issues by their columns. None of them is part of this project.

Supported are the columns of evidencebp/commit-classification (Amit and Feitelson, The corrective commit probability
code quality metric, 2020: `message` with `Is_Corrective`, `Is_Adaptive`, `Is_Perfective`, `Is_Refactor`, `Is_Bug`,
`Is_performance`) and of the NLBSE'24 tool competition (`title`, `body`, `label`: bug, feature, question).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from miner.tags.issues import extract_issue_features
from miner.tags.words import extract_features, split_message

COLUMNS = {
    "Is_Corrective": "corrective",
    "Is_Bug": "corrective",
    "Is_Adaptive": "adaptive",
    "Is_Perfective": "perfective",
    "Is_Refactor": "refactor",
    "Is_performance": "performance",
}
"""Column -> label."""
ISSUES = ("bug", "feature", "question")
_TRUTH = {"TRUE": True, "FALSE": False}


@dataclass(frozen=True)
class Labelled:
    """One text with its labels. `group`: its repository."""

    file: str
    group: str
    title: str
    body: str
    features: Mapping[str, str]
    labels: Mapping[str, bool]
    """Label -> whether it applies; labels that nobody assigned are missing."""


def read_labelled(path: Path) -> list[Labelled]:
    """Return the labelled rows of a file, each commit once."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    labelled: dict[str, Labelled] = {}
    for number, row in enumerate(rows):
        for entry in _row(path.name, row):
            labelled.setdefault(row.get("commit") or str(number), entry)
    return list(labelled.values())


def _row(file: str, row: Mapping[str, str]) -> Iterator[Labelled]:
    if row.get("label") in ISSUES:
        title, body = row["title"], row["body"] or ""
        labels = {f"issue-{name}": row["label"] == name for name in ISSUES}
        yield Labelled(file, row.get("repo", ""), title, body, extract_issue_features(title, body), labels)
        return
    labels = {name: _TRUTH[row[column]] for column, name in COLUMNS.items() if row.get(column) in _TRUTH}
    if labels:
        title, body = split_message(row["message"])
        yield Labelled(file, row.get("repo_name", ""), title, body, extract_features(title, body), labels)
