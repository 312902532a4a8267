"""What mergemill remembers, written and found again. The mapping between records and rows stands here, once.

The database is the queue: what a stage has still to do are the records of its input that have neither child nor
rejection (`pending`). Records are only ever added; of two chains of one change the miner's last word counts
(`ChangeRow`), and a record that has a child is not rejected, whatever was said of it before (`--retry`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Row, Table, bindparam, insert, select, text, update

from mergemill.errors import InputError
from taskdb import tables
from taskdb.chains import Finished, Scope, Waiting, waiting
from taskdb.closing import Closing
from taskdb.lineage import Lineage
from taskdb.mapping import KINDS, clean, finding_rows, rows_of, table_of, tag_rows
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
from taskdb.schema import open_engine, speaking
from taskdb.tags import Tags
from taskdb.verdicts import Verdict

R = TypeVar("R", bound=Record)
Column = Callable[[Any], object]


@dataclass
class Store(Closing):
    """The database behind one URL. One writer at a time; any number of readers."""

    url: str
    engine: Engine
    clock: Callable[[], str] = field(repr=False)

    @classmethod
    def open(cls, url: str, *, create: bool = True, clock: Callable[[], str] | None = None) -> Store:
        """Open the database and bring its schema up to date; errors as in `taskdb.schema.open_engine`."""
        return cls(url, open_engine(url, create=create), clock or _now)

    def close(self) -> None:
        """Let go of the file."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the database."""
        with speaking(self.url), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: all of it, or nothing."""
        with speaking(self.url), self.engine.connect().execution_options(write=True) as connection, connection.begin():
            yield connection

    # -------------------------------------------------------------------------------------------------- writing

    def add(self, *records: Record) -> list[Record]:
        """Keep records, parents first; those that were new. One transaction."""
        with self.writing() as connection:
            return self._add(connection, records)

    def finish(self, *finished: Finished) -> list[Finished]:
        """Keep results of stages and what `why` tells of them; those that were new. One transaction."""
        with self.writing() as connection:
            new = {record.id for record in self._add(connection, [f.result for f in finished])}
            fresh = [f for f in finished if f.result.id in new]
            self._tell(connection, fresh)
            return fresh

    def mined(
        self,
        *pairs: tuple[PullRequest, Candidate | Rejection, float],
        tags: Sequence[Tags] = (),
        sketches: Mapping[str, Sequence[int]] | None = None,
    ) -> list[Finished]:
        """Keep what the miner says of changes (change, verdict, seconds); verdicts that are new. One transaction.

        `tags` are those of the changes, in any order; `sketches`: candidate's id -> keys by which `alike` finds it.
        """
        finished = [
            Finished(stage=Stage.MINE, result=result, source=pull.source, name=pull.name, seconds=seconds, parent=pull)
            for pull, result, seconds in pairs
        ]
        if not pairs:
            return []
        with self.writing() as connection:
            self._add(connection, [pull for pull, _, _ in pairs])
            new = {record.id for record in self._add(connection, tags)}
            if rows := [row for told in tags if told.id in new for row in tag_rows(told)]:
                connection.execute(insert(table_of(tables.TagRow)), rows)
            self._add(connection, [result for _, result, _ in pairs])
            changed = self._point(connection, pairs, {kinds.parent: kinds.id for kinds in tags})
            self._index(connection, pairs, sketches or {})
            fresh = [f for f in finished if f.result.id in changed]
            self._tell(connection, fresh)
            return fresh

    def add_score(self, score: Score, task: str, submission: str) -> str:
        """Keep what a submission was worth; the row's id. `task`: id; `submission`: sha256 of its patch."""
        body = score.model_dump_json()
        key = hashlib.sha256(f"{task} {submission} {body}".encode()).hexdigest()
        row = {
            "id": key, "body": body, "added_at": self.clock(), "task": task, "submission": submission,
            "value": score.value, "resolved": score.resolved,
        }  # fmt: skip
        with self.writing() as connection:
            table = table_of(tables.ScoreRow)
            if not _known(connection, table, [key]):
                connection.execute(insert(table), row)
        return key

    def _add(self, connection: Connection, records: Sequence[Record]) -> list[Record]:
        added: list[Record] = []
        for kind, (row, _) in KINDS.items():  # in the order of the data path: parents first
            of_kind = {record.id: record for record in records if type(record) is kind}
            if not of_kind:
                continue
            table = table_of(row)
            known = _known(connection, table, list(of_kind))
            new = [record for key, record in of_kind.items() if key not in known]
            if new:
                connection.execute(insert(table), rows_of(kind, new, self.clock()))
            if found := [row for record in new if isinstance(record, Verdict) for row in finding_rows(record)]:
                connection.execute(insert(table_of(tables.FindingRow)), found)
            added += new
        return added

    def _point(
        self,
        connection: Connection,
        pairs: Sequence[tuple[PullRequest, Candidate | Rejection, float]],
        tags: Mapping[str, str],
    ) -> set[str]:
        """Let each change point to its newest chain; ids of the results that were not pointed to before.

        `tags`: id of a pull request -> id of its tags.
        """
        table = table_of(tables.ChangeRow)
        names = [pull.name for pull, _, _ in pairs]
        found = _in_parts(connection, select(table).where(table.c.name.in_(bindparam("keys", expanding=True))), names)
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

    def _index(
        self,
        connection: Connection,
        pairs: Sequence[tuple[PullRequest, Candidate | Rejection, float]],
        sketches: Mapping[str, Sequence[int]],
    ) -> None:
        """Keep the keys of candidates; those that are there stay."""
        table = table_of(tables.SketchRow)
        for pull, result, _ in pairs:
            if keys := sketches.get(result.id):
                seq = connection.execute(_SEQ, _key_of(pull)).scalar_one()
                here = table.c.key.in_(bindparam("keys", expanding=True)) & (table.c.change == seq)
                known = set(connection.execute(select(table.c.key).where(here), {"keys": list(keys)}).scalars())
                if rows := [{"key": key, "change": seq} for key in sorted(set(keys) - known)]:
                    connection.execute(insert(table), rows)

    def _tell(self, connection: Connection, finished: Sequence[Finished]) -> None:
        rows = [
            {
                "stage": f.stage.value, "name": f.name, "source": f.source, "record": f.result.id,
                "parent": f.parent.id if f.parent else getattr(f.result, "parent", None), "ok": f.ok,
                "reason": f.reason, "detail": clean(getattr(f.result, "detail", "")), "seconds": f.seconds,
                "kind": f.kind,
                "at": self.clock(),
            }
            for f in finished
        ]  # fmt: skip
        if rows:
            connection.execute(insert(table_of(tables.EventRow)), rows)

    # -------------------------------------------------------------------------------------------------- finding

    def alike(self, pull: PullRequest, keys: Sequence[int], most: int = 20) -> list[Candidate]:
        """Candidates that share keys with a change, those with most of them first, of changes that were there before.

        Thus of two changes that are alike the one first seen stays, in whatever order they are mined again.
        """
        if not keys:
            return []
        with self.reading() as connection:
            seq = connection.execute(_SEQ, _key_of(pull)).scalar()
            asked = {"keys": list(keys), "before": _NEVER if seq is None else seq, "most": most}
            found = [row.candidate for row in connection.execute(_ALIKE, asked)]
            loaded = self._load(connection, Candidate, found)
        return [loaded[key] for key in found]

    def get(self, kind: type[R], key: str) -> R:
        """A record by its full id.

        Raises:
            InputError: there is none.
        """
        with self.reading() as connection:
            found = self._load(connection, kind, [key])
        if key not in found:
            raise InputError(f"there is no {kind.__name__} {key[:12]}")
        return found[key]

    def all(self, kind: type[R]) -> list[R]:
        """All records of a kind, in the order they were written; also of chains that no longer count."""
        table = table_of(KINDS[kind][0])
        with self.reading() as connection:
            bodies = connection.execute(select(table.c.body).order_by(table.c.seq)).scalars()
            return [kind.model_validate_json(body) for body in bodies]

    def get_many(self, kind: type[R], keys: Sequence[str]) -> dict[str, R]:
        """Those of the records that exist, by id."""
        with self.reading() as connection:
            return self._load(connection, kind, keys)

    def _load(self, connection: Connection, kind: type[R], keys: Sequence[str]) -> dict[str, R]:
        table = table_of(KINDS[kind][0])
        query = select(table.c.id, table.c.body).where(table.c.id.in_(bindparam("keys", expanding=True)))
        return {row.id: kind.model_validate_json(row.body) for row in _in_parts(connection, query, keys)}

    def pending(self, stage: Stage, scope: Scope) -> Iterator[Lineage]:
        """What a stage has still to do, newest first, read in parts: memory does not grow with the queue."""
        yield from self._lineages([(row, todo) for row, todo in self._chains(scope) if todo.waits_for([stage])])

    def open_chains(self, scope: Scope) -> Iterator[Lineage]:
        """Candidates that one of the scope's stages has still to do, with what there is of them, newest first."""
        yield from self._lineages([(row, todo) for row, todo in self._chains(scope) if todo.waits_for(scope.stages)])

    def open_chains_of(self, candidates: Sequence[Candidate], scope: Scope) -> Iterator[Lineage]:
        """Those of the candidates that one of the scope's stages has still to do, in the order given."""
        with self.reading() as connection:
            found = _in_parts(connection, _CHAINS_OF, [c.id for c in candidates])
            rows = {row.candidate: (row, todo) for row, todo in self._waiting(connection, list(found), scope)}
        return self._lineages([row for c in candidates if (row := rows.get(c.id)) and row[1].waits_for(scope.stages)])

    def open_pairs(self, scope: Scope) -> Iterator[Lineage]:
        """Judged changes with tasks of several changes still to be made, each with the judged one before it."""
        with self.reading() as connection:
            judged = connection.execute(text(f"{_CHAIN} WHERE verdict IS NOT NULL ORDER BY merged_at DESC, name"))
            every = [row for row in judged if row.test_lines]  # what brings no tests is no part of a pair
            older: dict[str, Row[Any]] = {}
            for newer, row in _neighbours(every):
                older[newer.candidate] = row
            chosen = [row for row in scope.choose(every) if row.candidate in older]
            meant = self._waiting(connection, chosen, scope, paired=True)
        for row, todo in meant:
            if todo.ready:
                (lineage,), (other,) = self._lineages([(row, todo)]), self._lineages([(older[row.candidate], todo)])
                yield replace(lineage, others=(other,))

    def _chains(self, scope: Scope) -> list[tuple[Row[Any], Waiting]]:
        with self.reading() as connection:
            rows = connection.execute(text(f"{_CHAIN} WHERE candidate IS NOT NULL ORDER BY merged_at DESC, name"))
            return self._waiting(connection, scope.choose(rows), scope)

    def _waiting(
        self, connection: Connection, rows: Sequence[Row[Any]], scope: Scope, *, paired: bool = False
    ) -> list[tuple[Row[Any], Waiting]]:
        """The rows, each with what it waits for."""
        derived: dict[str, list[Row[Any]]] = {}
        for one in _in_parts(connection, _DERIVED, [row.candidate for row in rows]):
            derived.setdefault(one.candidate, []).append(one)
        return [(row, waiting(row, derived.get(row.candidate, ()), scope, paired=paired)) for row in rows]

    def _lineages(self, rows: Sequence[tuple[Row[Any], Waiting]], part: int = 50) -> Iterator[Lineage]:
        for start in range(0, len(rows), part):
            some = rows[start : start + part]
            with self.reading() as connection:
                candidates = self._load(connection, Candidate, _ids(some, "candidate"))
                environments = self._load(connection, Environment, _ids(some, "environment"))
                verifications = self._load(connection, Verification, _ids(some, "verification"))
                verdicts = self._load(connection, Verdict, _ids(some, "verdict"))
                derived = self._load(connection, Task, [key for _, todo in some for key in todo.tasks])
            for row, todo in some:
                yield Lineage(
                    candidate=candidates[row.candidate],
                    environment=environments.get(row.environment),
                    verification=verifications.get(row.verification),
                    verdict=verdicts.get(row.verdict),
                    stopped=todo.stopped,
                    due=todo.stage,
                    kinds=todo.kinds,
                    derived=tuple(derived[key] for key in todo.tasks),
                )


_NEVER = (1 << 31) - 1
_SEQ = text("SELECT seq FROM change WHERE source = :source AND name = :name AND merge_commit = :merge_commit")
_ALIKE = text("""SELECT c.id AS candidate, count(*) AS shared, h.seq
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


def _key_of(pull: PullRequest) -> dict[str, str]:
    return {"source": pull.source, "name": pull.name, "merge_commit": pull.merge_commit}


def _ids(rows: Iterable[tuple[Row[Any], Waiting]], column: str) -> list[str]:
    return [key for row, _ in rows if (key := getattr(row, column)) is not None]


def _neighbours(rows: Sequence[Row[Any]]) -> Iterator[tuple[Row[Any], Row[Any]]]:
    """Each change with the one before it in its source; `rows` come newest first."""
    newer: dict[str, Row[Any]] = {}
    for row in rows:
        if row.source in newer:
            yield newer[row.source], row
        newer[row.source] = row


def _known(connection: Connection, table: Table, keys: Sequence[str]) -> set[str]:
    query = select(table.c.id).where(table.c.id.in_(bindparam("keys", expanding=True)))
    return {row.id for row in _in_parts(connection, query, keys)}


def _in_parts(connection: Connection, query: Any, keys: Sequence[str], part: int = 500) -> Iterator[Row[Any]]:
    """Run a query whose `keys` are many, some at a time: databases bound the number of parameters."""
    for start in range(0, len(keys), part):
        yield from connection.execute(query, {"keys": list(keys[start : start + part])})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
