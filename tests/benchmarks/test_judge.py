"""The judge's benchmark on a few rows, with the rules and a scripted model."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from tests.backends.llm.conftest import server
from tests.backends.llm.server import ModelServer, ScriptedAnswer
from tests.verifiers.judge.change import CASE, STATEMENT, make_answer_json

np = pytest.importorskip("numpy")
pytest.importorskip("sklearn")
from benchmarks.judge.opinions import collect_panels, score_judges, summarize_panels  # noqa: E402 - needs scikit-learn
from benchmarks.judge.rows import read_rows  # noqa: E402 - needs scikit-learn
from benchmarks.judge.tables import render_completions  # noqa: E402 - needs scikit-learn

__all__ = ["server"]
ROWS = 6


def write_rows(folder: Path) -> tuple[Path, Path]:
    """Write rows of which every third is bad for both labels; return (texts, labels)."""
    texts, labels = folder / "texts.jsonl", folder / "labels.csv"
    rows = [
        {
            "instance_id": f"ada__greet-{n}",
            "repo": "ada/greet",
            "base_commit": f"{n:040x}",
            "patch": CASE.gold_patch,
            "test_patch": CASE.test_patch,
            "problem_statement": f"{STATEMENT}\nRow {n}.",
            "hints_text": "",
            "version": "1.0",
            "created_at": "2024-03-01T12:00:00Z",
            "FAIL_TO_PASS": list(CASE.fail_to_pass),
            "PASS_TO_PASS": [],
            "in": ["Lite", "Verified"] if n % 3 == 1 else ["Lite"],
        }
        for n in range(1, ROWS + 1)
    ]
    texts.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with labels.open("w", newline="") as file:
        result = csv.writer(file)
        result.writerow(["instance_id", "underspecified", "false_negative"])
        result.writerows([[row["instance_id"], 3 * (n % 3 == 0), 3 * (n % 3 == 0)] for n, row in enumerate(rows, 1)])
    return texts, labels


def test_a_model_is_measured_beside_the_rules(server: ModelServer, tmp_path: Path) -> None:
    def knows(request: dict[str, Any]) -> ScriptedAnswer:
        asked = request["messages"][1]["content"]
        bad = any(f"Row {n}.\n" in asked for n in range(3, ROWS + 1, 3))
        return ScriptedAnswer(
            text="Row 1 is fine." if "Row 1.\n" in asked else make_answer_json(underspecified=3 * bad, unfair_tests=2)
        )

    server.script = knows
    rows = read_rows(*write_rows(tmp_path))
    settings = Settings(llm=server.url, model="scripted", store=tmp_path / "store", judge_samples=2)
    panels = collect_panels(rows, settings)
    assert summarize_panels(panels) == "12 opinions, 2 invalid; agreement 1.00, alpha 1.00; 1540 tokens, 0.00 paid"
    rules = {label: np.full(ROWS, 0.2) for label in rows.bad}
    judges = score_judges(panels, rules)
    assert judges["opinions"]["underspecified"] == pytest.approx([0.4, 0, 1, 0, 0, 1])
    assert judges["opinions"]["unfair_tests"] == pytest.approx([2 / 3] * ROWS)
    assert judges["rules and opinions"]["underspecified"] == pytest.approx([0.2, 0.1, 0.6, 0.1, 0.1, 0.6])


def test_completions_are_counted_with_the_mean_scores_of_both_versions(tmp_path: Path) -> None:
    cases = read_rows(*write_rows(tmp_path)).cases
    stated = replace(cases[0], statement=f"{STATEMENT}whom shall I greet")
    head, _, row = render_completions([stated, *cases[1:]]).splitlines()
    assert head == "| rows | set aside | completed | underspecified | unfair_tests |"
    assert row.startswith(f"| {ROWS} | {ROWS - 1} | {ROWS - 1} | ")
    before, after = map(float, row.split(" | ")[3].split(" -> "))
    assert after < before
    assert render_completions([stated]).splitlines()[-1] == "| 1 | 0 | 0 | - | - |"
