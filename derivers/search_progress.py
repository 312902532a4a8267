"""Progress of a search for tasks of an environment, so that its next step neither tries nor measures anything again.

A search gives its tasks in steps, each a call of the deriver, perhaps in another process and after a kill. The progress
of a step travels with its tasks and comes back in `Lineage.progress`. Each step begins from there, whether the one
before ran in the same process or not, so that a search gives the same tasks however often it is interrupted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import zstandard

from backends.sandbox.execution import ExecResult
from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.run import EvaluationResult
from taskdb.records import Task
from taskdb.records.lineage import Lineage, StepTasks

VERSION = 1
"""Version of the form; progress of another one is not used."""


@dataclass(kw_only=True)
class SearchProgress:
    """Results of the earlier steps of a search; empty for a search that begins."""

    target: int
    """Tasks that the environment is to give in all."""
    n_before: int
    """Tasks that it had when the search began."""
    seconds: float = 0.0
    """Seconds of earlier steps."""
    tally: Counter[str] = field(default_factory=Counter)
    """Reason -> number of rejections."""
    tried: list[str] = field(default_factory=list)
    """Keys of all bugs, removals or changes that were tried."""
    base: EvaluationResult | None = None
    """Run of the base tree, without its output."""
    state: dict[str, Any] = field(default_factory=dict)
    """Further facts that the kind of task needs, as JSON."""

    @property
    def n_wanted(self) -> int:
        """Tasks that the search is to give in all its steps."""
        return self.target - self.n_before

    def to_bytes(self) -> bytes:
        """Return the progress as compressed JSON."""
        data = {
            "version": VERSION,
            "target": self.target,
            "n_before": self.n_before,
            "seconds": self.seconds,
            "tally": self.tally,
            "tried": self.tried,
            "base": self.base and _list_base_fields(self.base),
            "state": self.state,
        }
        return zstandard.ZstdCompressor(level=6).compress(json.dumps(data, sort_keys=True).encode())

    def make_step(self, tasks: Iterable[Task]) -> StepTasks:
        """Return the tasks of a step with the progress for the next one."""
        return StepTasks(tasks, self.to_bytes())


def load_progress(lineage: Lineage, services: Services) -> SearchProgress:
    """Return the progress of the search of an environment; that of a new one where none can be used.

    Where another number of tasks is wanted by now, nothing is tried again, but numbers and budgets start from zero.
    """
    n_before = len(lineage.existing)
    target = services.settings.derive.per_environment if lineage.wanted is None else n_before + lineage.wanted
    try:
        data = json.loads(zstandard.ZstdDecompressor().decompress(lineage.progress)) if lineage.progress else {}
        progress = _read_progress(data) if data.get("version") == VERSION else None
    except (zstandard.ZstdError, ValueError, KeyError, TypeError):
        progress = None
    if progress is None:
        return SearchProgress(target=target, n_before=n_before)
    if progress.target != target:
        progress.target, progress.n_before = target, n_before
        progress.seconds, progress.tally = 0.0, Counter()
    return progress


def _read_progress(data: Mapping[str, Any]) -> SearchProgress:
    return SearchProgress(
        target=data["target"],
        n_before=data["n_before"],
        seconds=data["seconds"],
        tally=Counter(data["tally"]),
        tried=data["tried"],
        base=_read_base(data["base"]) if data["base"] else None,
        state=data["state"],
    )


def _list_base_fields(result: EvaluationResult) -> dict[str, Any]:
    return {
        "seconds": result.exec_result.seconds,
        "test_seconds": result.test_seconds,
        "cpu_seconds": result.cpu_seconds,
        "report": list_report_fields(result.report) if result.report else None,
        "covered": list_covered_lines(result.covered_lines),
    }


def _read_base(data: Mapping[str, Any]) -> EvaluationResult:
    seconds = data["seconds"]
    return EvaluationResult(
        exec_result=ExecResult(exit_code=0, output="", files={}, seconds=seconds, killed_by=None),
        report=read_report(data["report"]) if data["report"] else None,
        test_seconds=data["test_seconds"],
        cpu_seconds=data.get("cpu_seconds"),
        script_sha256="",
        log="",
        is_applied=True,
        canary_status="none",
        covered_lines=read_covered_lines(data["covered"]),
    )


def list_report_fields(report: EvaluationReport) -> dict[str, Any]:
    """Return a report as JSON, without durations."""
    fields: dict[str, Any] = json.loads(report.to_bytes())
    return fields


def read_report(data: Mapping[str, Any]) -> EvaluationReport:
    """Return the report that `list_report_fields` described."""
    return EvaluationReport.from_bytes(json.dumps(data).encode())


def list_covered_lines(covered: Mapping[str, frozenset[int]] | None) -> dict[str, list[int]] | None:
    """Return executed lines as JSON."""
    return None if covered is None else {path: sorted(lines) for path, lines in covered.items()}


def read_covered_lines(data: Mapping[str, list[int]] | None) -> dict[str, frozenset[int]] | None:
    """Return the lines that `list_covered_lines` described."""
    return None if data is None else {path: frozenset(lines) for path, lines in data.items()}
