"""How a record becomes a row and a row a record again: written once, for all tables."""

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

Column = Callable[[Any], object]
_OF_EVERY_ROW = ("seq", "id", "body", "added_at")


def clean(value: object) -> object:
    """A value as databases take it: no lone surrogates and, for PostgreSQL, no NUL in texts."""
    return value.encode(errors="replace").decode().replace("\0", "?") if isinstance(value, str) else value


def _searchable(task: Task) -> str:
    return f"{task.name} {task.repo} {task.problem_statement}".lower()


_COUNTS: dict[str, Column] = {
    "n_fail_to_pass": lambda record: len(record.FAIL_TO_PASS),
    "n_pass_to_pass": lambda record: len(record.PASS_TO_PASS),
}
_TASK: dict[str, Column] = {
    **_COUNTS,
    "published": lambda task: task.published.verdict if task.published else None,
    "words": _searchable,
}

_TAGS: dict[str, Column] = {
    "kind": lambda tags: tags.primary.value,
    "language": lambda tags: tags.languages[0].language if tags.languages else "",
}

_VERDICT: dict[str, Column] = {
    "n_findings": lambda verdict: len(verdict.findings),
    "n_opinions": lambda verdict: sum(not opinion.void for opinion in verdict.opinions),
}

KINDS: dict[type[Record], tuple[type[tables.Row], Mapping[str, Column]]] = {
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
"""Kind of record -> its table, and the columns that are not simply the field of the same name."""


def table_of(row: type[SQLModel]) -> Table:
    """The table behind a row class."""
    return tables.METADATA.tables[str(row.__tablename__)]


def rows_of(kind: type[Record], records: Sequence[Record], at: str) -> list[dict[str, object]]:
    """Records of one kind as rows of their table."""
    row, columns = KINDS[kind]
    names = [column.name for column in table_of(row).columns if column.name not in _OF_EVERY_ROW]
    return [
        {"id": record.id, "body": to_body(record), "added_at": at}
        | {name: clean(columns[name](record) if name in columns else getattr(record, name)) for name in names}
        for record in records
    ]


def tag_rows(tags: Tags) -> list[dict[str, object]]:
    """A row for each kind of a change."""
    return [
        {
            "tagging": tags.id, "kind": tag.kind.value, "place": place, "confidence": tag.confidence,
            "rule": tag.signs[0].rule if tag.signs else "", "quote": clean(tag.signs[0].quote if tag.signs else ""),
            "route": " ".join(tags.route),
        }
        for place, tag in enumerate(tags.kinds, 1)
    ]  # fmt: skip


def finding_rows(verdict: Verdict) -> list[dict[str, object]]:
    """A row for each finding of a verdict."""
    return [
        {"verdict": verdict.id} | {name: clean(str(value)) for name, value in finding.model_dump(mode="json").items()}
        for finding in verdict.findings
    ]


def to_body(record: Record) -> str:
    """A record as canonical JSON: sorted keys, ASCII, measured fields too."""
    return json.dumps(record.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
