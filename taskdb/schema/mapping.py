"""Mapping between records and rows, for all tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Table
from sqlmodel import SQLModel

from taskdb.records import (
    Bundle,
    Candidate,
    Certificate,
    Environment,
    PullRequest,
    Record,
    Rejection,
    RunVariant,
    Task,
    Verification,
)
from taskdb.records.audits import Audit
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.images import ImageCopy
from taskdb.records.questions import (
    Corpus,
    Question,
    QuestionCertificate,
    QuestionRejection,
    SampleCount,
    Walk,
)
from taskdb.records.rollouts import Rollout, Trajectory, TrajectorySelection
from taskdb.records.simulations import SimulatedConversation, SimulationRejection
from taskdb.records.simulator_measurements import SimulatorMeasurement
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.records.worlds import Scenario, ScenarioCertificate, Theme, World, WorldCertificate, WorldRejection
from taskdb.schema import tables
from taskdb.schema.stored_records import ListBatch, pack_body
from taskdb.schema.task_columns import DECLARED

ColumnFunction = Callable[[Any], object]
_COMMON_COLUMNS = ("seq", "id", "body", "added_at")


def clean_value(value: object) -> object:
    """Return a value that databases accept: texts without lone surrogates and, for PostgreSQL, without NUL."""
    return value.encode(errors="replace").decode().replace("\0", "?") if isinstance(value, str) else value


def _get_strength(audit: Audit) -> float | None:
    """Return the share of faults that the tests detected; None where it was not measured."""
    score = (audit.strength or {}).get("score")
    return None if score is None else float(score)


def _format_untested_hunks(audit: Audit) -> str | None:
    """Return the places of the hunks that no test misses, separated by commas; None where it was not measured."""
    strength = audit.strength or {}
    return ", ".join(strength["untested_hunks"]) if strength.get("score") is not None else None


def _count_gold_runs(verification: Verification) -> int:
    return sum(run.variant is RunVariant.GOLD and run.killed_by is None for run in verification.runs)


_COUNTS: dict[str, ColumnFunction] = {
    "n_fail_to_pass": lambda record: len(record.FAIL_TO_PASS),
    "n_pass_to_pass": lambda record: len(record.PASS_TO_PASS),
}
_TASK: dict[str, ColumnFunction] = {
    **_COUNTS,
    "n_controls": lambda task: len(task.controls),
    **{name: declared.record for name, declared in DECLARED.items() if declared.record is not None},
}

_TAGS: dict[str, ColumnFunction] = {
    "change_kind": lambda tags: tags.primary.value,
    "language": lambda tags: tags.languages[0].language if tags.languages else "",
}

_VERDICT: dict[str, ColumnFunction] = {
    "n_findings": lambda verdict: len(verdict.findings),
    "n_opinions": lambda verdict: sum(not opinion.invalid_reason for opinion in verdict.opinions),
}

_AUDIT: dict[str, ColumnFunction] = {
    "n_findings": lambda audit: len(audit.findings),
    "strength": _get_strength,
    "untested_hunks": _format_untested_hunks,
}


def _compute_mean_turns(solvers: Sequence[SampleCount]) -> float | None:
    """Return the average turns of the right samples of all solvers; None without any."""
    turns = [number for solver in solvers for number in solver.turns]
    return sum(turns) / len(turns) if turns else None


_SOLVERS: dict[str, ColumnFunction] = {
    "attempts": lambda record: sum(solver.attempts for solver in record.solvers) if record.solvers else None,
    "solved": lambda record: sum(solver.solved for solver in record.solvers) if record.solvers else None,
    "mean_turns": lambda record: _compute_mean_turns(record.solvers),
}

RECORD_TABLES: dict[type[Record], tuple[type[tables.RecordRow], Mapping[str, ColumnFunction]]] = {
    PullRequest: (tables.PullRequestRow, {}),
    Tags: (tables.TaggingRow, _TAGS),
    Candidate: (tables.CandidateRow, {"n_gold_files": lambda candidate: len(candidate.gold_files)}),
    Environment: (tables.EnvironmentRow, {"language_version": lambda e: e.plan.language_version}),
    Verification: (
        tables.VerificationRow,
        {**_COUNTS, "n_flaky": lambda v: len(v.list_flaky()), "n_gold_runs": _count_gold_runs},
    ),
    Verdict: (tables.VerdictRow, _VERDICT),
    Task: (tables.TaskRow, _TASK),
    Certificate: (tables.CertificateRow, {"n_gold_runs": lambda certificate: certificate.gold.count(1.0)}),
    Audit: (tables.AuditRow, _AUDIT),
    Rollout: (tables.RolloutRow, {"n_leaks": lambda rollout: len(rollout.leaks)}),
    Trajectory: (tables.TrajectoryRow, {}),
    TrajectorySelection: (tables.TrajectorySelectionRow, {}),
    SimulatorMeasurement: (tables.SimulatorMeasurementRow, {"predicted": lambda measurement: measurement.first}),
    BenchSet: (tables.BenchSetRow, {"n_subjects": lambda bench_set: len(bench_set.subjects)}),
    BenchRun: (tables.BenchRunRow, {"n_rollouts": lambda run: len(run.rollouts)}),
    Rejection: (tables.RejectionRow, {}),
    Bundle: (tables.BundleRow, {"n_tasks": lambda bundle: len(bundle.tasks)}),
    ImageCopy: (tables.ImageCopyRow, {}),
    Theme: (tables.ThemeRow, {}),
    World: (tables.WorldRow, {}),
    WorldCertificate: (tables.WorldCertificateRow, {}),
    Scenario: (tables.ScenarioRow, {}),
    ScenarioCertificate: (tables.ScenarioCertificateRow, {}),
    WorldRejection: (tables.WorldRejectionRow, {}),
    SimulatedConversation: (tables.SimulatedConversationRow, {}),
    SimulationRejection: (tables.SimulationRejectionRow, {}),
    Corpus: (tables.CorpusRow, {}),
    Walk: (
        tables.WalkRow,
        {"n_pages": lambda walk: len(walk.pages), "n_facts": lambda walk: len(walk.facts)},
    ),
    Question: (tables.QuestionRow, {"n_clues": lambda question: len(question.clues)}),
    QuestionCertificate: (tables.QuestionCertificateRow, _SOLVERS),
    QuestionRejection: (tables.QuestionRejectionRow, _SOLVERS),
}
"""Record class -> its table, and the columns that are not the field of the same name."""


def get_table(row: type[SQLModel]) -> Table:
    """Return the table of a row class."""
    return tables.METADATA.tables[str(row.__tablename__)]


def build_rows(
    kind: type[Record], records: Sequence[Record], at: str, lists: ListBatch | None = None
) -> list[dict[str, object]]:
    """Return records of a class as rows of their table; `lists` receives their lists of tests, to be stored."""
    lists = ListBatch() if lists is None else lists
    row, columns = RECORD_TABLES[kind]
    names = [column.name for column in get_table(row).columns if column.name not in _COMMON_COLUMNS]
    return [
        {"id": record.id, "body": pack_body(record.model_dump(mode="json"), lists), "added_at": at}
        | {name: clean_value(columns[name](record) if name in columns else getattr(record, name)) for name in names}
        for record in records
    ]


def build_tag_rows(tags: Tags) -> list[dict[str, object]]:
    """Return a row for each kind of a change."""
    return [
        {
            "tagging": tags.id,
            "change_kind": tag.change_kind.value,
            "rank": rank,
            "confidence": tag.confidence,
            "rule": tag.evidence[0].rule if tag.evidence else "",
            "quote": clean_value(tag.evidence[0].quote if tag.evidence else ""),
            "route": " ".join(tags.route),
        }
        for rank, tag in enumerate(tags.change_kinds, 1)
    ]


def build_finding_rows(verdict: Verdict) -> list[dict[str, object]]:
    """Return a row for each finding of a verdict."""
    return [
        {"verdict": verdict.id}
        | {name: clean_value(str(value)) for name, value in finding.model_dump(mode="json").items()}
        for finding in verdict.findings
    ]
