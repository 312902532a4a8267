"""Precision and recall of tags on labelled files: `python -m benchmarks.tags FILE.csv...` (see labelled.py).

What is learned is cross-validated: five folds by repository, each judged by weights (and a border) that never saw a
text of its repositories; for issues, which come from few repositories, also ten folds at random. What is set by hand
(performance) is judged as it stands. A keyword list is judged in the same run. Intervals: 95 %, Wilson for precision
and recall, bootstrap (1000 samples) for F1. Then kinds for which no file has labels.
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

from benchmarks.labelled import ISSUES, Labelled, read
from benchmarks.tags_learn import fit
from miner.tags.tag import tag_text
from taskdb.tags import ChangeKind

KEYWORDS = {
    "corrective": r"fix|bug", "adaptive": r"add|new|support|updat|implement",
    "perfective": r"doc|readme|comment|clean|refactor",
    "refactor": r"refactor|renam|clean|simplif|extract", "performance": r"perf|speed|fast|slow|optimi",
    "issue-bug": r"bug|error|crash|fail", "issue-feature": r"feature|request|support|would be",
    "issue-question": r"\?|how to|question",
}  # fmt: skip
"""The trivial rule of each label."""
SEEN_KINDS = {"corrective": ChangeKind.BUGFIX, "refactor": ChangeKind.REFACTOR, "performance": ChangeKind.PERFORMANCE}
FOLDS = 5
Told: TypeAlias = "np.ndarray[Any, Any]"


def by_keyword(texts: Sequence[Labelled], name: str) -> Told:
    """Whether the keywords of a label stand in the text."""
    pattern = re.compile(KEYWORDS[name], re.IGNORECASE)
    return np.array([bool(pattern.search(f"{text.title}\n{text.body}")) for text in texts])


def by_hand(texts: Sequence[Labelled], name: str) -> Told:
    """What `mergemill tags` says, nothing held back; fair only where no weight was learned from these files."""
    kind = SEEN_KINDS[name]
    found = [tag_text(text.title, text.body)[0] for text in texts]
    return np.array([any(one.kind is kind and one.confidence > 0.5 for one in kinds) for kinds in found])


def by_unseen(texts: Sequence[Labelled], name: str) -> Told:
    """Cross-validated by repository."""
    told = np.zeros(len(texts), dtype=bool)
    for learn, judge in GroupKFold(FOLDS).split(texts, groups=[text.group for text in texts]):
        output = fit([texts[i] for i in learn], name)
        told[judge] = [output.odds(texts[i].features) > 0 for i in judge]
    return told


def issues(texts: Sequence[Labelled], *, by_repository: bool) -> dict[str, Told]:
    """The likeliest of the three labels of each issue, cross-validated."""
    truth = [next(name for name in ISSUES if text.said[f"issue-{name}"]) for text in texts]
    groups = [text.group for text in texts]
    folds = (
        GroupKFold(FOLDS).split(texts, groups=groups) if by_repository
        else StratifiedKFold(10, shuffle=True, random_state=0).split(texts, truth)
    )  # fmt: skip
    odds = np.zeros((len(texts), len(ISSUES)))
    for learn, judge in folds:
        part = [texts[i] for i in learn]
        for column, name in enumerate(ISSUES):
            output = fit(part, f"issue-{name}", border=False)
            odds[judge, column] = [output.odds(texts[i].features) for i in judge]
    likeliest = odds.argmax(axis=1)
    return {f"issue-{name}": likeliest == column for column, name in enumerate(ISSUES)}


def line(label: str, way: str, told: Told, truth: Told) -> str:
    """One row of the table."""
    hits = int((told & truth).sum())
    draws = np.random.default_rng(0).integers(0, len(truth), (1000, len(truth)))
    scores = [_f1(told[draw], truth[draw]) for draw in draws]
    low, high = np.percentile(scores, (2.5, 97.5))
    precision, recall = _wilson(hits, int(told.sum())), _wilson(hits, int(truth.sum()))
    f1 = f"{_f1(told, truth):.2f} ({low:.2f}-{high:.2f})"
    return f"| {label} | {way} | {precision} | {recall} | {f1} | {int(truth.sum())} of {len(truth)} |"


def _f1(told: Told, truth: Told) -> float:
    return 2 * float((told & truth).sum()) / max(float(told.sum() + truth.sum()), 1.0)


def _wilson(hits: int, n: int, z: float = 1.96) -> str:
    if not n:
        return "-"
    share, spread = hits / n, z * (hits / n * (1 - hits / n) / n + z * z / (4 * n * n)) ** 0.5
    low, high = ((share + z * z / (2 * n) + sign * spread) / (1 + z * z / n) for sign in (-1, 1))
    return f"{share:.2f} ({low:.2f}-{high:.2f})"


def commits(texts: Sequence[Labelled]) -> None:
    """Rows for labels of commits, by file where a label stands in several."""
    names = [name for name in KEYWORDS if any(name in text.said for text in texts) and not name.startswith("issue")]
    for name in names:
        kept = [text for text in texts if name in text.said]
        truth = np.array([text.said[name] for text in kept])
        ways: dict[str, Callable[[Sequence[Labelled], str], Told]] = {"keyword": by_keyword}
        ways |= {"by hand": by_hand} if name == "performance" else {"unseen repositories": by_unseen}
        for way, judge in ways.items():
            told = judge(kept, name)
            for file in sorted({text.file for text in kept}):
                of_file = np.array([text.file == file for text in kept])
                print(line(f"{name}, {file}", way, told[of_file], truth[of_file]), flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    texts = [text for path in parser.parse_args().files for text in read(path)]
    print("| label, file | by | precision | recall | F1 | support |\n|---|---|---|---|---|---|")
    commits(texts)
    if kept := [text for text in texts if "issue-bug" in text.said]:
        ways = {"keyword": {f"issue-{name}": by_keyword(kept, f"issue-{name}") for name in ISSUES}}
        ways |= {"unseen issues": issues(kept, by_repository=False)}
        ways |= {"unseen repositories": issues(kept, by_repository=True)}
        for name in ways["keyword"]:
            for way, told in ways.items():
                print(line(name, way, told[name], np.array([text.said[name] for text in kept])), flush=True)
    unlabelled = [k.value for k in ChangeKind if k not in SEEN_KINDS.values() and k is not ChangeKind.FEATURE]
    print(f"\nno file has labels for: {', '.join(unlabelled)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
