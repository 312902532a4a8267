"""The task database: adds records and finds them again.

The database is the queue: a stage is pending for the records of its input that have neither a child nor a rejection
(`find_pending`). Records are only added, never changed; of two lineages of one change the newest one is used
(`ChangeRow`), and a record with a child is not rejected, whatever rejections it has from before (`--retry`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Row, RowMapping, bindparam, select, text
from sqlalchemy.exc import OperationalError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from core.closable import Closable
from core.errors import InputError
from taskdb import environments, renewals
from taskdb.pending import (
    CAN_PAIR,
    count_candidates,
    count_open_changes,
    find_older_neighbours,
    find_open_states,
    select_open_changes,
)
from taskdb.records import (
    Candidate,
    Environment,
    Kind,
    PullRequest,
    Record,
    Rejection,
    Score,
    Stage,
    Task,
    Verification,
)
from taskdb.records.kinds import MAX_NEIGHBOURS
from taskdb.records.lineage import Lineage
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.records.work import STAGE_COLUMNS, ChangeState, PendingWork, Scope, StageResult, find_pending_work
from taskdb.schema.batches import execute_in_batches, split_batches
from taskdb.schema.database import (
    NoAnswerError,
    database_exists,
    open_engine,
    parse_sqlite_path,
    translate_errors,
)
from taskdb.schema.empty_databases import remove_empty_database
from taskdb.schema.record_tables import TABLE_NAMES, build_change_key, get_record_clause
from taskdb.schema.stored_records import unpack_bodies, unpack_field

R = TypeVar("R", bound=Record)
Written = TypeVar("Written")
Column = Callable[[Any], object]


@dataclass
class Store(Closable):
    """Database behind a URL, with any number of readers; SQLite has a single writer at a time, PostgreSQL many."""

    url: str
    engine: Engine
    clock: Callable[[], str] = field(repr=False)
    patience: float = 0.0
    """Seconds that a transaction waits for a server that does not answer."""
    is_new: bool = False
    """Whether there was no database before this store."""
    _is_discarded: bool = field(default=False, init=False, repr=False)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = True,
        clock: Callable[[], str] | None = None,
        writes: bool = False,
        patience: float = 0.0,
    ) -> Store:
        """Open the database and upgrade its schema; errors as in `taskdb.schema.database.open_engine`.

        Raises:
            InputError: with `writes`, it can only be read. The check comes before work whose result would be lost.
        """
        is_new = create and not database_exists(url)
        store = cls(url, open_engine(url, create=create), clock or _format_now, patience)
        store.is_new = is_new
        if writes and store.is_read_only:
            store.close()
            advice = "make the file and its folder writable, then run this again"
            raise InputError(f"{url} is read-only", advice=advice)
        return store

    @property
    def is_read_only(self) -> bool:
        """Whether the database was opened for reading only, since its file or folder cannot be written."""
        return self.engine.url.query.get("mode") == "ro"

    def close(self) -> None:
        """Close all connections; remove the file where `discard_if_empty` or an error demands it."""
        self.engine.dispose()
        path = parse_sqlite_path(self.url)
        if self._is_discarded and path is not None:
            remove_empty_database(path)

    def discard_if_empty(self) -> None:
        """Have `close` remove the database if this store made it and nothing is stored: the command has failed."""
        self._is_discarded = self.is_new

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store; after an error it leaves no new database without content."""
        if error is not None:
            self.discard_if_empty()
        super().__exit__(kind, error, trace)

    @contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """Open a connection that reads a state of the database."""
        with translate_errors(self.url), self._connect() as connection:
            if self.engine.dialect.name == "postgresql":
                # its default level gives each statement a state of its own; SQLite's transactions have one
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Open a write transaction.

        On SQLite other writers wait for its end. On PostgreSQL they wait for the rows that both write, in this order:
        records by class and id, changes, counters; nobody writes in another order, so nobody waits in a circle.
        """
        with (
            translate_errors(self.url),
            self._connect().execution_options(write=True) as connection,
            connection.begin(),
        ):
            yield connection

    def _connect(self) -> Connection:
        return self._wait_for_server(OperationalError)(self.engine.connect)

    def _write(self, write: Callable[[Connection], Written]) -> Written:
        """Run a write transaction, once more where the server ended it: records are not added twice."""

        def run() -> Written:
            with self.write_transaction() as connection:
                return write(connection)

        return self._wait_for_server(NoAnswerError)(run)

    def _wait_for_server(self, error: type[Exception]) -> Retrying:
        """Return the policy of retries after an error while a server is being restarted."""
        wait = wait_exponential(multiplier=0.2, max=10)
        return Retrying(
            retry=retry_if_exception_type(error), stop=stop_after_delay(self.patience), wait=wait, reraise=True
        )

    # -------------------------------------------------------------------------------------------------- writing

    def add(self, *records: Record) -> list[Record]:
        """Add records, parents first, in a single transaction; return those that are new."""
        # Loaded at the first write: the module makes the classes of the tables, which a reader can do without.
        from taskdb import writing  # noqa: PLC0415

        return self._write(lambda connection: writing.add_records(connection, records, self.clock))

    def add_once(self, record: R, *parts: Record) -> R:
        """Add a record with its parts in one transaction, or neither where it is stored already; return the stored one.

        Another process may have stored one of the same id with other contents, whose parts are not ours.
        """
        from taskdb import writing  # noqa: PLC0415

        with self.write_transaction() as connection:
            # Nothing is returned for a record that was there, and its parts belong to the process that stored it.
            if writing.add_records(connection, [record], self.clock):
                writing.add_records(connection, parts, self.clock)
                return record
        return self.get(type(record), record.id)

    def add_stage_results(self, *finished: StageResult) -> list[StageResult]:
        """Add results of stages and their events in a single transaction; return those that are new."""
        from taskdb import writing  # noqa: PLC0415

        return self._write(lambda connection: writing.add_stage_results(connection, finished, self.clock))

    def add_mined_changes(
        self,
        *pairs: tuple[PullRequest, Candidate | Rejection, float],
        tags: Sequence[Tags] = (),
        sketches: Mapping[str, Sequence[int]] | None = None,
    ) -> list[StageResult]:
        """Add mined changes (change, candidate or rejection, seconds) in a single transaction; return the new results.

        `tags` are those of the changes, in any order; `sketches`: candidate's id -> keys for `find_similar`.
        """
        from taskdb import writing  # noqa: PLC0415

        if not pairs:
            return []
        return self._write(
            lambda connection: writing.add_mined_changes(connection, pairs, tags, sketches or {}, self.clock)
        )

    def add_score(self, score: Score, task: str, submission: str) -> str:
        """Add the score of a submission; return the row's id. `task`: id; `submission`: sha256 of its patch."""
        from taskdb import writing  # noqa: PLC0415

        with self.write_transaction() as connection:
            return writing.add_score(connection, score, task, submission, self.clock())

    # -------------------------------------------------------------------------------------------------- finding

    def find_similar(self, pull: PullRequest, keys: Sequence[int], most: int = 20) -> list[Candidate]:
        """Return earlier candidates that share keys with a change, those with most of them first.

        Of two similar changes the change stored first is kept, in whatever order they are mined again.
        """
        if not keys:
            return []
        with self.read_transaction() as connection:
            # A change that is mined again is compared only with those before it, as when it was mined first.
            asked = {"keys": list(keys), "most": most, **build_change_key(pull)}
            candidates = [row.candidate for row in connection.execute(_SIMILAR, asked)]
            loaded = self._load_records(connection, Candidate, candidates)
        return [loaded[key] for key in candidates]

    def get(self, kind: type[R], key: str) -> R:
        """Return a record by its full id.

        Raises:
            InputError: there is none.
        """
        with self.read_transaction() as connection:
            return load_record(connection, kind, key)

    def load_all(self, kind: type[R]) -> list[R]:
        """Return all records of a class in the order they were written, superseded records included."""
        table = get_record_clause(kind)
        with self.read_transaction() as connection:
            rows = connection.execute(select(table.c.id, table.c.body).order_by(table.c.seq)).all()
            return read_records(connection, kind, rows)

    def get_many(self, kind: type[R], keys: Sequence[str]) -> dict[str, R]:
        """Return the existing records of some records, by id."""
        with self.read_transaction() as connection:
            return self._load_records(connection, kind, keys)

    def _load_records(self, connection: Connection, kind: type[R], keys: Sequence[str]) -> dict[str, R]:
        table = get_record_clause(kind)
        query = select(table.c.id, table.c.body).where(table.c.id.in_(bindparam("keys", expanding=True)))
        rows = list(execute_in_batches(connection, query, keys))
        return {record.id: record for record in read_records(connection, kind, rows)}

    def find_pending(self, stage: Stage, scope: Scope) -> Iterator[Lineage]:
        """Yield the changes for which a stage is pending, newest first, read in batches."""
        return self._find_open(scope, [stage])

    def find_open_lineages(self, scope: Scope) -> Iterator[Lineage]:
        """Yield the changes for which a stage of the scope is pending, newest first."""
        return self._find_open(scope, scope.stages)

    def _find_open(self, scope: Scope, stages: Collection[Stage]) -> Iterator[Lineage]:
        def is_open(todo: PendingWork) -> bool:
            return todo.includes_any(stages)

        with self.read_transaction() as connection:
            states = find_open_states(connection, scope, is_open)
            changes = select_open_changes(connection, scope, states)
        yield from self._load_open(changes, scope, is_open)

    def count_lineages(self, scope: Scope) -> tuple[int, int]:
        """Return the numbers of candidates in the scope, and of those for which one of its stages is pending."""
        with self.read_transaction() as connection:
            states = find_open_states(connection, scope, lambda todo: todo.includes_any(scope.stages))
            return count_candidates(connection, scope), count_open_changes(connection, scope, states)

    def find_open_lineages_of(self, candidates: Sequence[Candidate], scope: Scope) -> Iterator[Lineage]:
        """Yield the changes of some candidates for which a stage of the scope is pending, in the same order."""
        with self.read_transaction() as connection:
            change_by_candidate = {
                row.candidate: row.change
                for row in execute_in_batches(connection, _CHANGES_OF, [c.id for c in candidates])
            }
        changes = [change_by_candidate[c.id] for c in candidates if c.id in change_by_candidate]
        return self._load_open(changes, scope, lambda todo: todo.includes_any(scope.stages))

    def find_open_pairs(self, scope: Scope) -> Iterator[Lineage]:
        """Yield judged changes with open kinds of several changes, each with the judged changes before it.

        All of them bring tests; there are at most MAX_NEIGHBOURS, the nearest first.
        """

        def is_open(todo: PendingWork) -> bool:
            return todo.has_ready_kind

        with self.read_transaction() as connection:
            states = find_open_states(connection, scope, is_open, paired=True)
            changes = select_open_changes(connection, scope, states, CAN_PAIR)
        # A transaction each: deriving the tasks of a pair takes minutes, and an open transaction keeps old rows alive.
        for change in changes:
            with self.read_transaction() as connection:
                row = connection.execute(_ONE_CHAIN, {"key": change}).one()
                older = find_older_neighbours(connection, row, MAX_NEIGHBOURS)
            if not older:
                continue
            others = tuple(self._load_open(older, scope, lambda _: True))
            for lineage in self._load_open([change], scope, is_open, paired=True):
                yield replace(lineage, neighbours=others)

    def find_renewals(self, scope: Scope) -> Iterator[Lineage]:
        """Yield the changes whose tasks rest on copies of tests, newest first, each to be verified again."""
        with self.read_transaction() as connection:
            changes = renewals.select_changes(connection, scope)
        # A transaction each: a renewal takes minutes, and another driver may have done it meanwhile.
        for change in changes:
            if lineage := self._load_renewal(change, scope):
                yield lineage

    def count_renewals(self, scope: Scope) -> int:
        """Return the number of changes that `find_renewals` yields."""
        with self.read_transaction() as connection:
            return len(renewals.select_changes(connection, scope))

    def reload_renewal(self, lineage: Lineage, scope: Scope) -> Lineage | None:
        """Return a change that is to be verified again as it is stored now; None where it was done meanwhile."""
        with self.read_transaction() as connection:
            (row,) = execute_in_batches(connection, _CHANGES_OF, [lineage.candidate.id])
        return self._load_renewal(row.change, scope)

    def _load_renewal(self, change: int, scope: Scope) -> Lineage | None:
        with self.read_transaction() as connection:
            if not renewals.is_renewable(connection, change):
                return None
            row = connection.execute(_ONE_CHAIN, {"key": change}).one()
            kinds, certified = renewals.load_kinds(connection, change, scope.kinds)
            todo = PendingWork(stage=Stage.VERIFY, rejected_by=None, kinds=kinds, has_ready_kind=True, tasks=())
            (lineage,) = self._load_lineages(connection, [(row, todo)])
            older = find_older_neighbours(connection, row, MAX_NEIGHBOURS) if Kind.COMBINED in kinds else []
        neighbours = tuple(self._load_open(older, scope, lambda _: True))
        return replace(lineage, is_renewal=True, certified=certified, neighbours=neighbours)

    def find_environments(self, scope: Scope, kind: Kind) -> list[environments.EnvironmentState]:
        """Return the states of the environments of a scope for a kind, newest change first."""
        with self.read_transaction() as connection:
            return list(environments.find_environments(connection, scope, kind))

    def load_environment_states(self, changes: list[int], kind: Kind) -> list[environments.EnvironmentState]:
        """Return the states of the environments of some changes (`seq`) for a kind."""
        with self.read_transaction() as connection:
            return list(environments.load_environment_states(connection, changes, kind))

    def count_tasks_by_repository(self, kind: Kind) -> dict[str, int]:
        """Return repository -> number of its tasks of a kind, certified or not."""
        with self.read_transaction() as connection:
            return environments.count_tasks_by_repository(connection, kind)

    def count_tasks_by_environment(self, kind: Kind, repo: str) -> dict[str, int]:
        """Return id of an environment of a repository -> number of tasks of a kind that its change has given."""
        with self.read_transaction() as connection:
            return environments.count_tasks_by_environment(connection, kind, repo)

    def load_environment(self, change: int, kind: Kind) -> Lineage | None:
        """Return a change (`seq`) with its environment for further tasks of a kind; None where it has none now.

        `tasks` are those that are neither certified nor rejected, `wanted` is 0.
        """
        with self.read_transaction() as connection:
            row = connection.execute(_ONE_CHAIN, {"key": change}).one()
            if row.environment is None:
                return None
            listed = environments.list_tasks_of_kind(connection, change, kind)
            existing = self._load_records(connection, Task, [key for key, _ in listed])
            todo = PendingWork(
                stage=None,
                rejected_by=Stage(row.rejected_by) if row.rejected_by in STAGE_COLUMNS else None,
                kinds=(kind,),
                has_ready_kind=True,
                tasks=(),
            )
            (lineage,) = self._load_lineages(connection, [(row, todo)])
        return replace(
            lineage,
            existing=tuple(existing[key] for key, _ in listed),
            tasks=tuple(existing[key] for key, is_open in listed if is_open),
            wanted=0,
        )

    def reload_environment(self, lineage: Lineage) -> Lineage | None:
        """Return an environment that is to give further tasks as it is stored now; None where nothing is left to do."""
        (kind,), n_before = lineage.kinds, len(lineage.existing)
        with self.read_transaction() as connection:
            (row,) = execute_in_batches(connection, _CHANGES_OF, [lineage.candidate.id])
        stored = self.load_environment(row.change, kind)
        if stored is None:
            return None
        n_new = len(stored.existing) - n_before
        wanted = max(0, (lineage.wanted or 0) - n_new)
        if not n_new:
            return replace(stored, wanted=wanted, step=lineage.step, progress=lineage.progress)
        # The tasks of a step are stored together, so that they are all that was to be derived.
        wanted = wanted if lineage.step is None else 0
        return replace(stored, wanted=wanted) if wanted or stored.tasks else None

    def _load_open(
        self, changes: Sequence[int], scope: Scope, is_open: Callable[[PendingWork], bool], *, paired: bool = False
    ) -> Iterator[Lineage]:
        """Yield the changes (`seq`) whose pending work, as it is when they are read, meets a condition, in order."""
        # Read in batches and not all at once: between two batches another driver may have finished some of them.
        for keys in split_batches(changes, _LINEAGES_AT_ONCE):
            with self.read_transaction() as connection:
                rows = {row.change: row for row in connection.execute(_CHAINS, {"keys": keys})}
                derived: dict[int, list[RowMapping]] = {}
                for row in connection.execute(_DERIVED, {"keys": keys}).mappings():
                    derived.setdefault(row["change"], []).append(row)
                pending: list[tuple[Row[Any], PendingWork]] = []
                for change in (rows[key] for key in keys if key in rows):
                    state = ChangeState.from_rows(change._mapping, derived.get(change.change, ()))
                    todo = find_pending_work(state, scope, paired=paired)
                    # Checked again, as the states were read in an earlier transaction.
                    if change.candidate is not None and is_open(todo):
                        pending.append((change, todo))
                lineages = self._load_lineages(connection, pending)
            yield from lineages

    def _load_lineages(self, connection: Connection, rows: Sequence[tuple[Row[Any], PendingWork]]) -> list[Lineage]:
        candidates = self._load_records(connection, Candidate, _collect_ids(rows, "candidate"))
        environments = self._load_records(connection, Environment, _collect_ids(rows, "environment"))
        verifications = self._load_records(connection, Verification, _collect_ids(rows, "verification"))
        verdicts = self._load_records(connection, Verdict, _collect_ids(rows, "verdict"))
        derived = self._load_records(connection, Task, [key for _, todo in rows for key in todo.tasks])
        return [
            Lineage(
                candidate=candidates[row.candidate],
                environment=environments.get(row.environment),
                verification=verifications.get(row.verification),
                verdict=verdicts.get(row.verdict),
                rejected_by=todo.rejected_by,
                next_stage=todo.stage,
                kinds=todo.kinds,
                tasks=tuple(derived[key] for key in todo.tasks),
            )
            for row, todo in rows
        ]


_LINEAGES_AT_ONCE = 50
# One statement: between two of them another driver may store the change itself, which would be its own duplicate.
_SIMILAR = text("""SELECT c.id AS candidate, count(*) AS shared, h.seq
                 FROM sketch s JOIN change h ON h.seq = s.change JOIN candidate c ON c.id = h.result
                 WHERE s.key IN :keys AND s.change < coalesce(
                     (SELECT seq FROM change
                      WHERE source = :source AND name = :name AND merge_commit = :merge_commit), 2147483647)
                 GROUP BY c.id, h.seq ORDER BY shared DESC, h.seq LIMIT :most""").bindparams(
    bindparam("keys", expanding=True)
)
_CHAIN = """SELECT change, source, name, merged_at, language, change_kind, candidate, environment, verification,
                   verdict, set_aside, rejected_by, reason, test_lines
            FROM change_listing"""
_CHAINS = text(f"{_CHAIN} WHERE change IN :keys").bindparams(bindparam("keys", expanding=True))
_ONE_CHAIN = text(f"{_CHAIN} WHERE change = :key")
_CHANGES_OF = text("SELECT change, candidate FROM change_listing WHERE candidate IN :keys").bindparams(
    bindparam("keys", expanding=True)
)
_DERIVED = text("""SELECT change, kind, task, certificate, reason FROM derivation_listing
                   WHERE change IN :keys AND status <> 'imported' ORDER BY change, task_name""").bindparams(
    bindparam("keys", expanding=True)
)


def _collect_ids(rows: Iterable[tuple[Row[Any], PendingWork]], column: str) -> list[str]:
    return [key for row, _ in rows if (key := getattr(row, column)) is not None]


def read_records(connection: Connection, kind: type[R], rows: Sequence[Any]) -> list[R]:
    """Return the records of rows with `id` and `body`; ids are the stored ids, whatever fields were added since."""
    unpacked = unpack_bodies(connection, [row.body for row in rows])
    return [_make_record(kind, row.id, data) for row, data in zip(rows, unpacked, strict=True)]


def read_record(connection: Connection, kind: type[R], key: str, body: bytes) -> R:
    """Return the record of an id and a body."""
    return _make_record(kind, key, unpack_bodies(connection, [body])[0])


def _make_record(kind: type[R], key: str, data: Mapping[str, Any]) -> R:
    record = kind.model_validate(data)
    # The stored id stays valid although fields were added since: computed again, it would be another id.
    record.__dict__["id"] = key
    return record


def load_record(connection: Connection, kind: type[R], key: str) -> R:
    """Return a record by its full id.

    Raises:
        InputError: there is none.
    """
    rows = connection.execute(_RECORD_OF[kind], {"id": key}).all()
    if not rows:
        raise InputError(f"there is no {kind.__name__} {key[:12]}")
    return read_records(connection, kind, rows)[0]


def load_field(connection: Connection, kind: type[Record], key: str, name: str) -> Any:
    """Return a field of a stored record as JSON data, or None where it is absent; nothing else of it is validated."""
    row = connection.execute(_RECORD_OF[kind], {"id": key}).first()
    return unpack_field(connection, row.body, name) if row else None


# Names of tables cannot be bound parameters; these are constants of this package.
_RECORD_OF = {
    kind: text(f"SELECT id, body FROM {name} WHERE id = :id")  # noqa: S608
    for kind, name in TABLE_NAMES.items()
}


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
