"""Run the benchmark: `python -m benchmarks.judge --texts FILE --labels FILE [--write]`.

The texts are SWE-bench rows with a list `in` of the selections they come from (.jsonl or .jsonl.gz); the labels have
the columns `instance_id`, `underspecified`, `false_negative` (0..3). The tables show the rules with the calibrated
model, cross-validated by repository. `--write` then fits the weights to all rows and writes the judge's model file.
`--shipped` evaluates the existing weights instead, for rows they were not fitted to. `--llm URL --model NAME` adds the
opinions of that model, alone and with the rules; nothing is fitted to it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from benchmarks.judge.fit import CAP, FitData, FittedModel, cross_validate_nested, fit, score_equal_weights
from benchmarks.judge.opinions import collect_panels, score_judges, summarize_panels
from benchmarks.judge.rows import NAMES, SIGNALS_BY_LABEL, LabelledRows, compute_base_rates, read_rows
from benchmarks.judge.tables import Scores, render_calibration, render_completions, render_findings, render_ranking
from core.config import Settings
from verifiers.judge.assess import assess
from verifiers.judge.calibration import MODEL_PATH


def build_data(rows: LabelledRows, label: str) -> FitData:
    """Return the signals used for a label, with that label."""
    columns = [NAMES.index(name) for name in SIGNALS_BY_LABEL[label]]
    return FitData(rows.table[:, columns], rows.bad[label], rows.repositories, rows.unselected)


def compute_base_rate(data: FitData) -> float:
    """Return the share of bad rows among the unselected ones."""
    return float(data.truth[data.unselected].mean())


def cross_validate(rows: LabelledRows) -> dict[str, Scores]:
    """Score the rows with the model, with a base rate per fold, and with equal weights, all cross-validated."""
    judges: dict[str, Scores] = {"rules and model": {}, "share by fold": {}, "equal weights": {}}
    for label in rows.bad:
        data = build_data(rows, label)
        judges["rules and model"][label], chosen = cross_validate_nested(data, compute_base_rate(data))
        judges["share by fold"][label], _ = cross_validate_nested(data, None)
        judges["equal weights"][label] = score_equal_weights(data)
        print(f"chosen inside the folds for {label}: {dict(Counter(map(str, chosen)))}\n")
    return judges


def score_shipped_model(rows: LabelledRows) -> dict[str, Scores]:
    """Score the rows with the judge as shipped."""
    import numpy as np  # noqa: PLC0415 - beside its use

    assessments = [assess(case) for case in rows.cases]
    return {
        "as shipped": {
            label: np.array([getattr(assessment, label) for assessment in assessments]) for label in rows.bad
        }
    }


def render_model(rows: LabelledRows) -> str:
    """Fit the model to all rows and return its file."""
    fitted = {label: fit(data := build_data(rows, label), compute_base_rate(data)) for label in rows.bad}
    widest = max(fitted, key=lambda label: len(SIGNALS_BY_LABEL[label]))
    scales = {
        name: {"mean": round(float(mean), 4), "spread": round(float(spread), 4)}
        for name, mean, spread in zip(SIGNALS_BY_LABEL[widest], fitted[widest].mean, fitted[widest].spread, strict=True)
    }
    labels = {label: _export_weights(label, assessment) for label, assessment in fitted.items()}
    return json.dumps({"cap": CAP, "scales": scales, "labels": labels}, indent=2) + "\n"


def _export_weights(label: str, fitted: FittedModel) -> dict[str, object]:
    named = zip(SIGNALS_BY_LABEL[label], fitted.weights, strict=True)
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
        "--llm", metavar="URL", help="ask the model at this address, too (its other settings: docs/reference/cli.md)"
    )
    parser.add_argument("--model", metavar="NAME")
    options = parser.parse_args()
    rows = read_rows(options.texts, options.labels)
    rates = ", ".join(f"{label} {rate:.2f}" for label, rate in compute_base_rates(options.labels).items())
    print(f"{len(rows.cases)} rows with texts; bad among all that are labelled: {rates}\n")
    judges = score_shipped_model(rows) if options.shipped else cross_validate(rows)
    if options.llm:
        settings = Settings(llm=options.llm, model=options.model)
        panels = collect_panels(rows, settings)
        print(summarize_panels(panels), "\n")
        judges |= score_judges(panels, next(iter(judges.values())))
    print(render_ranking(rows, judges), "\n")
    print(render_calibration(rows, {name: scores for name, scores in judges.items() if name != "equal weights"}), "\n")
    print(render_findings(rows), "\n")
    print(render_completions(rows.cases))
    if options.write:
        MODEL_PATH.write_text(render_model(rows))


if __name__ == "__main__":
    main()
