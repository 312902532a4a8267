"""The task database: adds records and finds them again.

The database is the queue: a stage is pending for the records of its input that have neither a child nor a rejection
(`find_pending`). Records are only added, never changed; of two chains of one change the newest one is used
(`ChangeRow`), and a record with a child is not rejected, whatever rejections it has from before (`--retry`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Row, Table, bindparam, insert, select, text, update

from core.closable import Closable
from core.errors import InputError
from taskdb import tables
from taskdb.chains import PendingWork, Scope, StageResult, find_pending_work
from taskdb.lineage import Lineage
from taskdb.mapping import RECORD_TABLES, build_finding_rows, build_rows, build_tag_rows, clean_value, get_table
from taskdb.records import (
    Candidate,
    Environment,
    PullRequest,
    Record,
    Rejection,
    Score,
    Stage,
    Task,
    Verification,
)
from taskdb.schema import open_engine, translate_errors
from taskdb.tags import Tags
from taskdb.verdicts import Verdict

R = TypeVar("R", bound=Record)
Column = Callable[[Any], object]


@dataclass
class Store(Closable):
    """Database behind one URL, with one writer at a time and any number of readers."""

    url: str
    engine: Engine
    clock: Callable[[], str] = field(repr=False)

    @classmethod
    def open(cls, url: str, *, create: bool = True, clock: Callable[[], str] | None = None) -> Store:
        """Open the database and upgrade its schema; errors as in `taskdb.schema.open_engine`."""
        return cls(url, open_engine(url, create=create), clock or _format_now)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """Open a connection that reads one state of the database."""
        with translate_errors(self.url), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Open a write transaction; other writers wait for its end."""
        with (
            translate_errors(self.url),
            self.engine.connect().execution_options(write=True) as connection,
            connection.begin(),
        ):
            if self.engine.dialect.name == "postgresql":  # SQLite's writers lock the file
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})"))
            yield connection

    # -------------------------------------------------------------------------------------------------- writing

    def add(self, *records: Record) -> list[Record]:
        """Add records, parents first, in one transaction; return the new ones."""
        with self.write_transaction() as connection:
            return self._add_records(connection, records)

    def add_stage_results(self, *finished: StageResult) -> list[StageResult]:
        """Add results of stages and their events in one transaction; return the new ones."""
        with self.write_transaction() as connection:
            new = {record.id for record in self._add_records(connection, [f.result for f in finished])}
            fresh = [f for f in finished if f.result.id in new]
            self._add_events(connection, fresh)
            return fresh

    def add_mined_changes(
        self,
        *pairs: tuple[PullRequest, Candidate | Rejection, float],
        tags: Sequence[Tags] = (),
        sketches: Mapping[str, Sequence[int]] | None = None,
    ) -> list[StageResult]:
        """Add mined changes (change, candidate or rejection, seconds) in one transaction; return the new results.

        `tags` are those of the changes, in any order; `sketches`: candidate's id -> keys for `find_similar`.
        """
        finished = [
            StageResult(
                stage=Stage.MINE, result=result, source=pull.source, name=pull.name, seconds=seconds, parent=pull
            )
            for pull, result, seconds in pairs
        ]
        if not pairs:
            return []
        with self.write_transaction() as connection:
            self._add_records(connection, [pull for pull, _, _ in pairs])
            new = {record.id for record in self._add_records(connection, tags)}
            if rows := [row for record in tags if record.id in new for row in build_tag_rows(record)]:
                connection.execute(insert(get_table(tables.TagRow)), rows)
            self._add_records(connection, [result for _, result, _ in pairs])
            changed = self._update_changes(connection, pairs, {kinds.parent: kinds.id for kinds in tags})
            self._add_sketches(connection, pairs, sketches or {})
            fresh = [f for f in finished if f.result.id in changed]
            self._add_events(connection, fresh)
            return fresh

    def add_score(self, score: Score, task: str, submission: str) -> str:
        """Add the score of a submission; return the row's id. `task`: id; `submission`: sha256 of its patch."""
        body = score.model_dump_json()
        key = hashlib.sha256(f"{task} {submission} {body}".encode()).hexdigest()
        row = {
            "id": key,
            "body": body,
            "added_at": self.clock(),
            "task": task,
            "submission": submission,
            "value": score.value,
            "resolved": score.resolved,
        }
        with self.write_transaction() as connection:
            table = get_table(tables.ScoreRow)
            if not _select_known_ids(connection, table, [key]):
                connection.execute(insert(table), row)
        return key

    def _add_records(self, connection: Connection, records: Sequence[Record]) -> list[Record]:
        added: list[Record] = []
        for kind, (row, _) in RECORD_TABLES.items():  # in the order of the data path: parents first
            of_kind = {record.id: record for record in records if type(record) is kind}
            if not of_kind:
                continue
            table = get_table(row)
            known = _select_known_ids(connection, table, list(of_kind))
            new = [record for key, record in of_kind.items() if key not in known]
            if new:
                connection.execute(insert(table), build_rows(kind, new, self.clock()))
            if found := [row for record in new if isinstance(record, Verdict) for row in build_finding_rows(record)]:
                connection.execute(insert(get_table(tables.FindingRow)), found)
            added += new
        return added

    def _update_changes(
        self,
        connection: Connection,
        pairs: Sequence[tuple[PullRequest, Candidate | Rejection, float]],
        tags: Mapping[str, str],
    ) -> set[str]:
        """Set each change's reference to its newest chain; return the ids of results that are newly referenced.

        `tags`: id of a pull request -> id of its tags.
        """
        table = get_table(tables.ChangeRow)
        names = [pull.name for pull, _, _ in pairs]
        found = _execute_in_batches(
            connection, select(table).where(table.c.name.in_(bindparam("keys", expanding=True))), names
        )
        points = ("pull_request", "result", "tagging")
        old = {(r.source, r.name, r.merge_commit): tuple(getattr(r, point) for point in points) for r in found}
        changed: set[str] = set()
        for pull, result, _ in pairs:
            key = (pull.source, pull.name, pull.merge_commit)
            before, now = old.get(key), (pull.id, result.id, tags.get(pull.id))
            if before is None:
                columns = ("source", "name", "merge_commit", *points)
                connection.execute(insert(table), dict(zip(columns, key + now, strict=True)))
            elif before != now:
                here = (table.c.source == key[0]) & (table.c.name == key[1]) & (table.c.merge_commit == key[2])
                connection.execute(update(table).where(here).values(dict(zip(points, now, strict=True))))
            old[key] = now
            if before is None or before[1] != result.id:
                changed.add(result.id)
        return changed

    def _add_sketches(
        self,
        connection: Connection,
        pairs: Sequence[tuple[PullRequest, Candidate | Rejection, float]],
        sketches: Mapping[str, Sequence[int]],
    ) -> None:
        """Add the similarity keys of candidates that are missing."""
        table = get_table(tables.SketchRow)
        for pull, result, _ in pairs:
            if keys := sketches.get(result.id):
                seq = connection.execute(_SEQ, _build_change_key(pull)).scalar_one()
                here = table.c.key.in_(bindparam("keys", expanding=True)) & (table.c.change == seq)
                known = set(connection.execute(select(table.c.key).where(here), {"keys": list(keys)}).scalars())
                if rows := [{"key": key, "change": seq} for key in sorted(set(keys) - known)]:
                    connection.execute(insert(table), rows)

    def _add_events(self, connection: Connection, finished: Sequence[StageResult]) -> None:
        rows = [
            {
                "stage": f.stage.value,
                "name": f.name,
                "source": f.source,
                "record": f.result.id,
                "parent": f.parent.id if f.parent else getattr(f.result, "parent", None),
                "ok": f.ok,
                "reason": f.reason,
                "detail": clean_value(getattr(f.result, "detail", "")),
                "seconds": f.seconds,
                "kind": f.kind,
                "at": self.clock(),
            }
            for f in finished
        ]
        if rows:
            connection.execute(insert(get_table(tables.EventRow)), rows)

    # -------------------------------------------------------------------------------------------------- finding

    def find_similar(self, pull: PullRequest, keys: Sequence[int], most: int = 20) -> list[Candidate]:
        """Return earlier candidates that share keys with a change, those with most of them first.

        Of two similar changes the one stored first is kept, in whatever order they are mined again.
        """
        if not keys:
            return []
        with self.read_transaction() as connection:
            seq = connection.execute(_SEQ, _build_change_key(pull)).scalar()
            asked = {"keys": list(keys), "before": _MAX_SEQ if seq is None else seq, "most": most}
            found = [row.candidate for row in connection.execute(_SIMILAR, asked)]
            loaded = self._load_records(connection, Candidate, found)
        return [loaded[key] for key in found]

    def get(self, kind: type[R], key: str) -> R:
        """Return a record by its full id.

        Raises:
            InputError: there is none.
        """
        with self.read_transaction() as connection:
            found = self._load_records(connection, kind, [key])
        if key not in found:
            raise InputError(f"there is no {kind.__name__} {key[:12]}")
        return found[key]

    def load_all(self, kind: type[R]) -> list[R]:
        """Return all records of a class in the order they were written, superseded ones included."""
        table = get_table(RECORD_TABLES[kind][0])
        with self.read_transaction() as connection:
            bodies = connection.execute(select(table.c.body).order_by(table.c.seq)).scalars()
            return [kind.model_validate_json(body) for body in bodies]

    def get_many(self, kind: type[R], keys: Sequence[str]) -> dict[str, R]:
        """Return the existing ones of some records, by id."""
        with self.read_transaction() as connection:
            return self._load_records(connection, kind, keys)

    def _load_records(self, connection: Connection, kind: type[R], keys: Sequence[str]) -> dict[str, R]:
        table = get_table(RECORD_TABLES[kind][0])
        query = select(table.c.id, table.c.body).where(table.c.id.in_(bindparam("keys", expanding=True)))
        return {row.id: kind.model_validate_json(row.body) for row in _execute_in_batches(connection, query, keys)}

    def find_pending(self, stage: Stage, scope: Scope) -> Iterator[Lineage]:
        """Yield the changes for which a stage is pending, newest first, read in batches."""
        yield from self._load_lineages(
            [(row, todo) for row, todo in self._select_pending(scope) if todo.includes_any([stage])]
        )

    def find_open_chains(self, scope: Scope) -> Iterator[Lineage]:
        """Yield the changes for which a stage of the scope is pending, newest first."""
        yield from self._load_lineages(
            [(row, todo) for row, todo in self._select_pending(scope) if todo.includes_any(scope.stages)]
        )

    def find_open_chains_of(self, candidates: Sequence[Candidate], scope: Scope) -> Iterator[Lineage]:
        """Yield the changes of some candidates for which a stage of the scope is pending, in the same order."""
        with self.read_transaction() as connection:
            found = _execute_in_batches(connection, _CHAINS_OF, [c.id for c in candidates])
            rows = {
                row.candidate: (row, todo) for row, todo in self._attach_pending_work(connection, list(found), scope)
            }
        return self._load_lineages(
            [row for c in candidates if (row := rows.get(c.id)) and row[1].includes_any(scope.stages)]
        )

    def find_open_pairs(self, scope: Scope) -> Iterator[Lineage]:
        """Yield judged changes with open kinds of several changes, each with the judged change before it."""
        with self.read_transaction() as connection:
            judged = connection.execute(text(f"{_CHAIN} WHERE verdict IS NOT NULL ORDER BY merged_at DESC, name"))
            every = [row for row in judged if row.test_lines]  # a pair consists of changes that bring tests
            older: dict[str, Row[Any]] = {}
            for newer, row in _pair_neighbours(every):
                older[newer.candidate] = row
            chosen = [row for row in scope.filter_rows(every) if row.candidate in older]
            selected = self._attach_pending_work(connection, chosen, scope, paired=True)
        for row, todo in selected:
            if todo.has_ready_kind:
                (lineage,), (other,) = (
                    self._load_lineages([(row, todo)]),
                    self._load_lineages([(older[row.candidate], todo)]),
                )
                yield replace(lineage, neighbours=(other,))

    def _select_pending(self, scope: Scope) -> list[tuple[Row[Any], PendingWork]]:
        with self.read_transaction() as connection:
            rows = connection.execute(text(f"{_CHAIN} WHERE candidate IS NOT NULL ORDER BY merged_at DESC, name"))
            return self._attach_pending_work(connection, scope.filter_rows(rows), scope)

    def _attach_pending_work(
        self, connection: Connection, rows: Sequence[Row[Any]], scope: Scope, *, paired: bool = False
    ) -> list[tuple[Row[Any], PendingWork]]:
        """Return the rows, each with its pending work."""
        derived: dict[str, list[Row[Any]]] = {}
        for one in _execute_in_batches(connection, _DERIVED, [row.candidate for row in rows]):
            derived.setdefault(one.candidate, []).append(one)
        return [(row, find_pending_work(row, derived.get(row.candidate, ()), scope, paired=paired)) for row in rows]

    def _load_lineages(self, rows: Sequence[tuple[Row[Any], PendingWork]], part: int = 50) -> Iterator[Lineage]:
        for start in range(0, len(rows), part):
            some = rows[start : start + part]
            with self.read_transaction() as connection:
                candidates = self._load_records(connection, Candidate, _collect_ids(some, "candidate"))
                environments = self._load_records(connection, Environment, _collect_ids(some, "environment"))
                verifications = self._load_records(connection, Verification, _collect_ids(some, "verification"))
                verdicts = self._load_records(connection, Verdict, _collect_ids(some, "verdict"))
                derived = self._load_records(connection, Task, [key for _, todo in some for key in todo.tasks])
            for row, todo in some:
                yield Lineage(
                    candidate=candidates[row.candidate],
                    environment=environments.get(row.environment),
                    verification=verifications.get(row.verification),
                    verdict=verdicts.get(row.verdict),
                    rejected_by=todo.rejected_by,
                    next_stage=todo.stage,
                    kinds=todo.kinds,
                    tasks=tuple(derived[key] for key in todo.tasks),
                )


_WRITE_LOCK = 7245892
"""Number of the advisory lock that serialises writers on PostgreSQL: two of them may add the same record."""
_MAX_SEQ = (1 << 31) - 1
_SEQ = text("SELECT seq FROM change WHERE source = :source AND name = :name AND merge_commit = :merge_commit")
_SIMILAR = text("""SELECT c.id AS candidate, count(*) AS shared, h.seq
                 FROM sketch s JOIN change h ON h.seq = s.change JOIN candidate c ON c.id = h.result
                 WHERE s.key IN :keys AND s.change < :before
                 GROUP BY c.id, h.seq ORDER BY shared DESC, h.seq LIMIT :most""").bindparams(
    bindparam("keys", expanding=True)
)
_CHAIN = """SELECT source, name, merged_at, language, change_kind, candidate, environment, verification, verdict,
                   (SELECT x.set_aside FROM verdict x WHERE x.id = changes.verdict) AS set_aside, rejected_by, reason,
                   (SELECT c.test_lines FROM candidate c WHERE c.id = changes.candidate) AS test_lines
            FROM changes"""
_CHAINS_OF = text(f"{_CHAIN} WHERE candidate IN :keys").bindparams(bindparam("keys", expanding=True))
_DERIVED = text("""SELECT candidate, kind, task, certificate, reason FROM derivations
                   WHERE candidate IN :keys ORDER BY candidate, task_name""").bindparams(
    bindparam("keys", expanding=True)
)


def _build_change_key(pull: PullRequest) -> dict[str, str]:
    return {"source": pull.source, "name": pull.name, "merge_commit": pull.merge_commit}


def _collect_ids(rows: Iterable[tuple[Row[Any], PendingWork]], column: str) -> list[str]:
    return [key for row, _ in rows if (key := getattr(row, column)) is not None]


def _pair_neighbours(rows: Sequence[Row[Any]]) -> Iterator[tuple[Row[Any], Row[Any]]]:
    """Yield each change with the one before it in its source; `rows` are newest first."""
    newer: dict[str, Row[Any]] = {}
    for row in rows:
        if row.source in newer:
            yield newer[row.source], row
        newer[row.source] = row


def _select_known_ids(connection: Connection, table: Table, keys: Sequence[str]) -> set[str]:
    query = select(table.c.id).where(table.c.id.in_(bindparam("keys", expanding=True)))
    return {row.id for row in _execute_in_batches(connection, query, keys)}


def _execute_in_batches(connection: Connection, query: Any, keys: Sequence[str], part: int = 500) -> Iterator[Row[Any]]:
    """Run a query with many `keys` in batches, since databases limit the number of parameters."""
    for start in range(0, len(keys), part):
        yield from connection.execute(query, {"keys": list(keys[start : start + part])})


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
