"""Learn the weights of words from labelled files: `python -m benchmarks.tags_learn FILE.csv... --out weights.json`.

One logistic regression (scikit-learn, liblinear, L2) for each output over binary features that occur in at least three
texts. The threshold is set where F1 is largest on folds by repository that were not used for the weights. The result is
deterministic.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from benchmarks.labelled import Labelled, read_labelled
from miner.tags.weights import WEIGHTS_FILE, LogisticModel

AT_LEAST = 3
"""Texts in which a feature must occur."""
FOLDS = 4
PENALTY = {"corrective": 0.4, "adaptive": 0.2, "perfective": 0.3, "refactor": 0.4, "issue": 0.05}
"""Inverse strength of regularisation, by output (issues share one)."""
WEAKEST = {"issue": 0.035}
"""Smaller weights are left out of the file: there are thousands, and they change nothing."""
OUTPUTS = ("corrective", "adaptive", "perfective", "refactor", "issue-bug", "issue-feature", "issue-question")


def fit(texts: Sequence[Labelled], name: str, *, border: bool = True) -> LogisticModel:
    """Fit the weights for one output, with its threshold at zero."""
    labelled = [text for text in texts if name in text.labels]
    truth = np.array([text.labels[name] for text in labelled])
    counted = Counter(feature for text in labelled for feature in text.features)
    names = {feature for feature, n in counted.items() if n >= AT_LEAST}
    vectorizer = DictVectorizer()
    table = vectorizer.fit_transform([{f: 1.0 for f in text.features if f in names} for text in labelled])
    table.indices, table.indptr = table.indices.astype(np.int32), table.indptr.astype(np.int32)  # liblinear's
    of = name.partition("-")[0]
    model = LogisticRegression(C=PENALTY[of], solver="liblinear", random_state=0)
    shift = 0.0
    if border:
        odds = np.zeros(len(labelled))
        for train, held_out in GroupKFold(FOLDS).split(table, truth, [text.group for text in labelled]):
            odds[held_out] = model.fit(table[train], truth[train]).decision_function(table[held_out])
        shift = _border(odds, truth)
    model.fit(table, truth)
    weights = {
        feature: round(float(weight), 2)
        for feature, weight in zip(vectorizer.get_feature_names_out(), model.coef_[0], strict=True)
        if abs(weight) >= WEAKEST.get(of, 0.02)
    }
    return LogisticModel(round(float(model.intercept_[0]) - shift, 3), weights)


def _border(odds: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> float:
    """Return the highest odds at which F1 is within a hundredth of the largest: precision is preferred."""
    tried = np.arange(-2.0, 2.01, 0.05)
    scores = []
    for border in tried:
        predicted = odds > border
        scores.append(2 * (predicted & truth).sum() / max(predicted.sum() + truth.sum(), 1))
    return float(tried[np.array(scores) >= max(scores) - 0.01].max())


def main() -> int:
    """Learn and write the weights."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    options = parser.parse_args()
    texts = [text for path in options.files for text in read_labelled(path)]
    models = {name: fit(texts, name, border=not name.startswith("issue")) for name in OUTPUTS}
    outputs = {name: {"bias": head.bias, "weights": head.weights} for name, head in models.items()}
    made_from = {path.name: len(read_labelled(path)) for path in options.files}
    held = {"made_by": "benchmarks/tags_learn.py", "from": made_from, "outputs": outputs}
    options.out.write_text(json.dumps(held, separators=(",", ":"), sort_keys=True) + "\n", encoding="ascii")
    print(
        f"{options.out}: {options.out.stat().st_size} bytes, {[len(head.weights) for head in models.values()]} weights"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
