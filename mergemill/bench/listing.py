"""Rows of sets and runs for lists of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from taskdb.queries.bench import name_run
from taskdb.records.bench import BenchRun, BenchSet


def summarize_set(bench_set: BenchSet) -> dict[str, Any]:
    """Return the row of a set."""
    return {
        "name": bench_set.name,
        "version": bench_set.version,
        "subjects": len(bench_set.subjects),
        "held_out": bench_set.held_out,
        "kinds": dict(sorted(Counter(subject.kind for subject in bench_set.subjects).items())),
        "id": bench_set.id,
    }


def summarize_run(run: BenchRun, bench_set: BenchSet) -> dict[str, Any]:
    """Return the row of a run; `planned`: rollouts that a complete run has."""
    return {
        "run": name_run(run),
        "set": run.name,
        "version": bench_set.version,
        "scaffold": run.scaffold,
        "model": run.model,
        "checkpoint": run.checkpoint,
        "runs": run.runs,
        "rollouts": len(run.rollouts),
        "planned": run.runs * (len(bench_set.subjects) - len(run.left_out)),
        "id": run.id,
    }
