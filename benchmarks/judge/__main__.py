"""Run the benchmark: `python -m benchmarks.judge --texts FILE --labels FILE [--write]`.

FILE of texts: SWE-bench rows with a list `in` that names the selections they come from (.jsonl or .jsonl.gz); FILE of
labels: `instance_id`, `underspecified`, `false_negative` (0..3). Printed are the rules with the calibrated model, each
row judged by weights that saw nothing of its repository; `--write` then fits the weights to all rows and writes them to
where the judge reads them. `--shipped` prints instead what those written weights say: for rows they were not fitted to.
`--llm URL --model NAME` adds what that model says, alone and with the rules; nothing is fitted to it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from benchmarks.judge.asked import judges_of, panels_of, summary
from benchmarks.judge.fit import CAP, Data, Fitted, equal_weights, fit, judged_by_others
from benchmarks.judge.rows import JUDGED_BY, NAMES, Rows, base_rates, read
from benchmarks.judge.tables import Scores, calibration, findings, ranking
from mergemill.config import Settings
from verifiers.judge.assess import assess
from verifiers.judge.calibration import MODEL


def data_of(rows: Rows, label: str) -> Data:
    """The signals that judge a label, with it."""
    columns = [NAMES.index(name) for name in JUDGED_BY[label]]
    return Data(rows.table[:, columns], rows.bad[label], rows.repositories, rows.unselected)


def base_of(data: Data) -> float:
    """Share of bad rows among those that were not selected."""
    return float(data.truth[data.unselected].mean())


def cross_validated(rows: Rows) -> dict[str, Scores]:
    """The model by folds; the same where each fold knows only its own share of bad rows; equal weights."""
    judges: dict[str, Scores] = {"rules and model": {}, "share by fold": {}, "equal weights": {}}
    for label in rows.bad:
        data = data_of(rows, label)
        judges["rules and model"][label], chosen = judged_by_others(data, base_of(data))
        judges["share by fold"][label], _ = judged_by_others(data, None)
        judges["equal weights"][label] = equal_weights(data)
        print(f"chosen inside the folds for {label}: {dict(Counter(map(str, chosen)))}\n")
    return judges


def shipped(rows: Rows) -> dict[str, Scores]:
    """What the judge says as it is."""
    import numpy as np  # noqa: PLC0415 - beside its use

    every = [assess(case) for case in rows.cases]
    return {"as shipped": {label: np.array([getattr(one, label) for one in every]) for label in rows.bad}}


def written(rows: Rows) -> str:
    """The model's file, fitted to all rows."""
    fitted = {label: fit(data := data_of(rows, label), base_of(data)) for label in rows.bad}
    widest = max(fitted, key=lambda label: len(JUDGED_BY[label]))
    scales = {
        name: {"mean": round(float(mean), 4), "spread": round(float(spread), 4)}
        for name, mean, spread in zip(JUDGED_BY[widest], fitted[widest].mean, fitted[widest].spread, strict=True)
    }
    labels = {label: _weights(label, one) for label, one in fitted.items()}
    return json.dumps({"cap": CAP, "scales": scales, "labels": labels}, indent=2) + "\n"


def _weights(label: str, fitted: Fitted) -> dict[str, object]:
    named = zip(JUDGED_BY[label], fitted.weights, strict=True)
    return {
        "intercept": round(fitted.intercept, 4),
        "weights": {name: round(float(weight), 4) for name, weight in named},
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, required=True, metavar="FILE")
    parser.add_argument("--labels", type=Path, required=True, metavar="FILE")
    parser.add_argument("--write", action="store_true", help="fit to all rows and write the judge's weights")
    parser.add_argument("--shipped", action="store_true", help="judge by the written weights")
    parser.add_argument(
        "--llm", metavar="URL", help="ask the model at this address, too (its other settings: see docs/cli.md)"
    )
    parser.add_argument("--model", metavar="NAME")
    options = parser.parse_args()
    rows = read(options.texts, options.labels)
    rates = ", ".join(f"{label} {rate:.2f}" for label, rate in base_rates(options.labels).items())
    print(f"{len(rows.cases)} rows with texts; bad among all that are labelled: {rates}\n")
    judges = shipped(rows) if options.shipped else cross_validated(rows)
    if options.llm:
        settings = Settings(llm=options.llm, model=options.model)
        panels = panels_of(rows, settings)
        print(summary(panels), "\n")
        judges |= judges_of(panels, next(iter(judges.values())))
    print(ranking(rows, judges), "\n")
    print(calibration(rows, {name: scores for name, scores in judges.items() if name != "equal weights"}), "\n")
    print(findings(rows))
    if options.write:
        MODEL.write_text(written(rows))


if __name__ == "__main__":
    main()
