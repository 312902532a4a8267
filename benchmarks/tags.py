"""Measure precision and recall of tags on labelled files: `python -m benchmarks.tags FILE.csv...` (see labelled.py).

Learned weights are cross-validated: five folds by repository, each scored by weights (and a threshold) learned from
other repositories only; for issues, which come from few repositories, also ten random folds. Weights set by hand
(performance) are scored as they are. A list of keywords is scored in the same run. Intervals: 95 %, Wilson for
precision and recall, bootstrap (1000 samples) for F1. At the end, the kinds without labels in any file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedKFold

from benchmarks.labelled import ISSUES, Labelled, read_labelled
from benchmarks.tags_learn import fit
from miner.tags.tag import tag_text
from taskdb.records.tags import ChangeKind

KEYWORDS = {
    "corrective": r"fix|bug",
    "adaptive": r"add|new|support|updat|implement",
    "perfective": r"doc|readme|comment|clean|refactor",
    "refactor": r"refactor|renam|clean|simplif|extract",
    "performance": r"perf|speed|fast|slow|optimi",
    "issue-bug": r"bug|error|crash|fail",
    "issue-feature": r"feature|request|support|would be",
    "issue-question": r"\?|how to|question",
}
"""Keyword rule of each label."""
SEEN_KINDS = {"corrective": ChangeKind.BUGFIX, "refactor": ChangeKind.REFACTOR, "performance": ChangeKind.PERFORMANCE}
FOLDS = 5
Predictions: TypeAlias = "np.ndarray[Any, Any]"


def predict_by_keyword(texts: Sequence[Labelled], name: str) -> Predictions:
    """Return whether a keyword of a label is in the text."""
    pattern = re.compile(KEYWORDS[name], re.IGNORECASE)
    return np.array([bool(pattern.search(f"{text.title}\n{text.body}")) for text in texts])


def predict_by_hand(texts: Sequence[Labelled], name: str) -> Predictions:
    """Score by the weights of `mergemill tags`; fair only where no weight was learned from these files."""
    kind = SEEN_KINDS[name]
    predictions = [tag_text(text.title, text.body)[0] for text in texts]
    return np.array([any(tag.change_kind is kind and tag.confidence > 0.5 for tag in kinds) for kinds in predictions])


def predict_unseen(texts: Sequence[Labelled], name: str) -> Predictions:
    """Score with cross-validation by repository."""
    predicted = np.zeros(len(texts), dtype=bool)
    for train, held_out in GroupKFold(FOLDS).split(texts, groups=[text.group for text in texts]):
        output = fit([texts[i] for i in train], name)
        predicted[held_out] = [output.compute_log_odds(texts[i].features) > 0 for i in held_out]
    return predicted


def predict_issues(texts: Sequence[Labelled], *, by_repository: bool) -> dict[str, Predictions]:
    """Return the likeliest of the three labels of each issue, cross-validated."""
    truth = [next(name for name in ISSUES if text.labels[f"issue-{name}"]) for text in texts]
    groups = [text.group for text in texts]
    folds = (
        GroupKFold(FOLDS).split(texts, groups=groups)
        if by_repository
        else StratifiedKFold(10, shuffle=True, random_state=0).split(texts, truth)
    )
    odds = np.zeros((len(texts), len(ISSUES)))
    for train, held_out in folds:
        part = [texts[i] for i in train]
        for column, name in enumerate(ISSUES):
            output = fit(part, f"issue-{name}", border=False)
            odds[held_out, column] = [output.compute_log_odds(texts[i].features) for i in held_out]
    likeliest = odds.argmax(axis=1)
    return {f"issue-{name}": likeliest == column for column, name in enumerate(ISSUES)}


def format_row(label: str, method: str, predicted: Predictions, truth: Predictions) -> str:
    """Format one row of the table."""
    hits = int((predicted & truth).sum())
    draws = np.random.default_rng(0).integers(0, len(truth), (1000, len(truth)))
    scores = [_f1(predicted[draw], truth[draw]) for draw in draws]
    low, high = np.percentile(scores, (2.5, 97.5))
    precision, recall = _wilson(hits, int(predicted.sum())), _wilson(hits, int(truth.sum()))
    f1 = f"{_f1(predicted, truth):.2f} ({low:.2f}-{high:.2f})"
    return f"| {label} | {method} | {precision} | {recall} | {f1} | {int(truth.sum())} of {len(truth)} |"


def _f1(predicted: Predictions, truth: Predictions) -> float:
    return 2 * float((predicted & truth).sum()) / max(float(predicted.sum() + truth.sum()), 1.0)


def _wilson(hits: int, n: int, z: float = 1.96) -> str:
    if not n:
        return "-"
    share, spread = hits / n, z * (hits / n * (1 - hits / n) / n + z * z / (4 * n * n)) ** 0.5
    low, high = ((share + z * z / (2 * n) + sign * spread) / (1 + z * z / n) for sign in (-1, 1))
    return f"{share:.2f} ({low:.2f}-{high:.2f})"


def print_commit_rows(texts: Sequence[Labelled]) -> None:
    """Print the rows for labels of commits, by file where several files have a label."""
    names = [name for name in KEYWORDS if any(name in text.labels for text in texts) and not name.startswith("issue")]
    for name in names:
        labelled = [text for text in texts if name in text.labels]
        truth = np.array([text.labels[name] for text in labelled])
        methods: dict[str, Callable[[Sequence[Labelled], str], Predictions]] = {"keyword": predict_by_keyword}
        methods |= {"by hand": predict_by_hand} if name == "performance" else {"unseen repositories": predict_unseen}
        for method, predict in methods.items():
            predicted = predict(labelled, name)
            for file in sorted({text.file for text in labelled}):
                of_file = np.array([text.file == file for text in labelled])
                print(format_row(f"{name}, {file}", method, predicted[of_file], truth[of_file]), flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    texts = [text for path in parser.parse_args().files for text in read_labelled(path)]
    print("| label, file | by | precision | recall | F1 | support |\n|---|---|---|---|---|---|")
    print_commit_rows(texts)
    if labelled := [text for text in texts if "issue-bug" in text.labels]:
        methods = {"keyword": {f"issue-{name}": predict_by_keyword(labelled, f"issue-{name}") for name in ISSUES}}
        methods |= {"unseen issues": predict_issues(labelled, by_repository=False)}
        methods |= {"unseen repositories": predict_issues(labelled, by_repository=True)}
        for name in methods["keyword"]:
            for method, predicted in methods.items():
                print(
                    format_row(name, method, predicted[name], np.array([text.labels[name] for text in labelled])),
                    flush=True,
                )
    unlabelled = [k.value for k in ChangeKind if k not in SEEN_KINDS.values() and k is not ChangeKind.FEATURE]
    print(f"\nno file has labels for: {', '.join(unlabelled)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
