"""Mapping between records and rows, for all tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Table
from sqlmodel import SQLModel

from taskdb import tables
from taskdb.images import ImageCopy
from taskdb.records import (
    Bundle,
    Candidate,
    Certificate,
    Environment,
    PullRequest,
    Record,
    Rejection,
    Task,
    Verification,
)
from taskdb.tags import Tags
from taskdb.verdicts import Verdict

ColumnFunction = Callable[[Any], object]
_COMMON_COLUMNS = ("seq", "id", "body", "added_at")


def clean_value(value: object) -> object:
    """Return a value that databases accept: texts without lone surrogates and, for PostgreSQL, without NUL."""
    return value.encode(errors="replace").decode().replace("\0", "?") if isinstance(value, str) else value


def _build_search_text(task: Task) -> str:
    return f"{task.name} {task.repo} {task.problem_statement}".lower()


_COUNTS: dict[str, ColumnFunction] = {
    "n_fail_to_pass": lambda record: len(record.FAIL_TO_PASS),
    "n_pass_to_pass": lambda record: len(record.PASS_TO_PASS),
}
_TASK: dict[str, ColumnFunction] = {
    **_COUNTS,
    "published": lambda task: task.published.verdict if task.published else None,
    "search_text": _build_search_text,
}

_TAGS: dict[str, ColumnFunction] = {
    "change_kind": lambda tags: tags.primary.value,
    "language": lambda tags: tags.languages[0].language if tags.languages else "",
}

_VERDICT: dict[str, ColumnFunction] = {
    "n_findings": lambda verdict: len(verdict.findings),
    "n_opinions": lambda verdict: sum(not opinion.invalid_reason for opinion in verdict.opinions),
}

RECORD_TABLES: dict[type[Record], tuple[type[tables.RecordRow], Mapping[str, ColumnFunction]]] = {
    PullRequest: (tables.PullRequestRow, {}),
    Tags: (tables.TaggingRow, _TAGS),
    Candidate: (tables.CandidateRow, {}),
    Environment: (tables.EnvironmentRow, {"language_version": lambda e: e.plan.language_version}),
    Verification: (tables.VerificationRow, {**_COUNTS, "n_flaky": lambda v: len(v.flaky)}),
    Verdict: (tables.VerdictRow, _VERDICT),
    Task: (tables.TaskRow, _TASK),
    Certificate: (tables.CertificateRow, {}),
    Rejection: (tables.RejectionRow, {}),
    Bundle: (tables.BundleRow, {"n_tasks": lambda bundle: len(bundle.tasks)}),
    ImageCopy: (tables.ImageCopyRow, {}),
}
"""Record class -> its table, and the columns that are not the field of the same name."""


def get_table(row: type[SQLModel]) -> Table:
    """Return the table of a row class."""
    return tables.METADATA.tables[str(row.__tablename__)]


def build_rows(kind: type[Record], records: Sequence[Record], at: str) -> list[dict[str, object]]:
    """Return records of one class as rows of their table."""
    row, columns = RECORD_TABLES[kind]
    names = [column.name for column in get_table(row).columns if column.name not in _COMMON_COLUMNS]
    return [
        {"id": record.id, "body": to_body(record), "added_at": at}
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


def to_body(record: Record) -> str:
    """Return a record as canonical JSON: sorted keys, ASCII, measured fields included."""
    return json.dumps(record.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
