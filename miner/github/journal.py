"""Journal of a forge's answers about a repository: a file beside the clone, from which mining reads.

The first answer about a merged pull request is kept and later answers are dropped, so that mining again gives the same
records. Pages are ordered by date of update, newest first. The dates that were read are stored as spans: an interrupted
crawl leaves two spans with a hole between them, and the next crawl continues there.

Each step of a crawl is a transaction, which also merges the answers that another process wrote in the meantime: a kill
at any moment costs a step, and two concurrent crawls of a repository cost requests only.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from core.closable import Closable
from core.errors import InputError, Transient, make_write_error

JOURNAL_FILE = "journal.sqlite"
OVERLAP = timedelta(seconds=60)
"""Period that is read again: a forge's lists may lag behind its clock."""
BEFORE_ALL_DATES = ""
"""Lower end of a span that reaches the end of the list."""

_SECONDS_LOCKED = 30
_BATCH_SIZE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS spans (high TEXT PRIMARY KEY, low TEXT NOT NULL, cursor TEXT);
CREATE TABLE IF NOT EXISTS pulls (number INTEGER PRIMARY KEY, merged_at TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS pulls_by_merge ON pulls (merged_at DESC, number DESC);
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, body TEXT NOT NULL);
"""
_FROM_RANGE = """FROM pulls
WHERE (merged_at, number) < (:at, :number) AND merged_at > :frontier AND merged_at >= :first AND merged_at < :last"""
_NEWEST = f"SELECT number, merged_at, body {_FROM_RANGE} ORDER BY merged_at DESC, number DESC LIMIT :part"
_LATEST = "9999"


class MergedPull(NamedTuple):
    """A merged pull request. `merged_at`: ISO 8601 in the forge's format; `body`: its answer as JSON data."""

    number: int
    merged_at: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CrawlSpan:
    """Period of update dates that was read; `cursor` continues the list below, None for nowhere.

    Dates are ISO 8601 in the forge's format, which sorts as text. `low` is `BEFORE_ALL_DATES` at the end of the list.
    """

    high: str
    low: str
    cursor: str | None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left below."""
        return self.cursor is None

    def is_adjacent_to(self, older: CrawlSpan) -> bool:
        """Return whether there is certainly nothing between this span and an older."""
        return self.is_complete or self.low < _subtract(older.high, OVERLAP)


class CrawlJournal(Closable):
    """Journal in a folder. A context manager; to be used by a single thread at a time."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    @classmethod
    def open(cls, folder: Path) -> CrawlJournal:
        """Open the journal of a folder; create it when there is none.

        Raises:
            InputError: the file is damaged.
            Transient: it cannot be written now.
        """
        path = folder / JOURNAL_FILE
        with _translate_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
            # Transactions are begun explicitly, because the module's own would start only with the first write.
            connection = sqlite3.connect(path, timeout=_SECONDS_LOCKED, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(_SCHEMA)
            except sqlite3.Error:
                connection.close()
                raise
        return cls(folder, connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -------------------------------------------------------------------------------------------------- state

    def get_state(self, key: str, default: Any = None) -> Any:
        """Return a part of the state, as JSON data."""
        rows = self._read("SELECT value FROM state WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else default

    def put_state(self, **values: Any) -> None:
        """Set parts of the state. A transaction."""
        with self._write_transaction() as connection:
            _upsert_state(connection, values)

    def newest_span(self) -> CrawlSpan | None:
        """Contiguous span from the newest date on, or None."""
        spans = self.list_spans()
        return spans[0] if spans else None

    def list_spans(self) -> list[CrawlSpan]:
        """Return all spans, newest first; there is a hole between each and the next."""
        return [CrawlSpan(*row) for row in self._read("SELECT high, low, cursor FROM spans ORDER BY high DESC")]

    # -------------------------------------------------------------------------------------------------- writing

    def add_page(self, pulls: Sequence[MergedPull], span: CrawlSpan | None, **state: Any) -> int:
        """Store a page, its span and parts of the state; return the number of new pull requests. A transaction.

        Args:
            pulls: the merged pull requests of the page.
            span: its dates, from where it was requested: the top, or the low end of a span.
            state: state as in `put_state`.
        """
        with self._write_transaction() as connection:
            rows = ((pull.number, pull.merged_at, _dump_json(pull.body)) for pull in pulls)
            added = connection.executemany("INSERT OR IGNORE INTO pulls VALUES (?, ?, ?)", rows).rowcount
            if span:
                known = [CrawlSpan(*row) for row in connection.execute("SELECT high, low, cursor FROM spans")]
                connection.execute("DELETE FROM spans")
                merged = [(s.high, s.low, s.cursor) for s in merge_spans([*known, span])]
                connection.executemany("INSERT INTO spans VALUES (?, ?, ?)", merged)
            _upsert_state(connection, state)
            return max(added, 0)

    def add_answers(self, answers: Mapping[str, Any]) -> None:
        """Store answers under the caller's keys, unless an answer is stored there already. A transaction."""
        with self._write_transaction() as connection:
            rows = ((key, _dump_json(body)) for key, body in answers.items())
            connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)

    # -------------------------------------------------------------------------------------------------- reading

    def iter_newest(
        self,
        *,
        frontier: str = BEFORE_ALL_DATES,
        since: str = "",
        until: str = "",
        below: tuple[str, int] | None = None,
        most: int | None = None,
    ) -> Iterator[MergedPull]:
        """Yield pull requests by date of merge, then number, newest first, read in parts.

        Args:
            frontier: only those merged after it.
            since: only those merged then or later.
            until: only those merged before.
            below: only those after this date and number in that order.
            most: greatest number.
        """
        left = most if most is not None else -1
        while left:
            part = min(_BATCH_SIZE, left) if left > 0 else _BATCH_SIZE
            rows = self._read(_NEWEST, _build_bounds(frontier, since, until, below) | {"part": part})
            for number, merged_at, body in rows:
                yield MergedPull(number, merged_at, json.loads(body))
            if len(rows) < part:
                return
            below, left = (rows[-1][1], rows[-1][0]), max(left - part, -1) if left > 0 else left

    def count_pulls(
        self,
        *,
        frontier: str = BEFORE_ALL_DATES,
        since: str = "",
        until: str = "",
        below: tuple[str, int] | None = None,
    ) -> int:
        """Return how many pull requests the same arguments would yield."""
        query = f"SELECT count(*) {_FROM_RANGE}"
        return int(self._read(query, _build_bounds(frontier, since, until, below))[0][0])

    def get_answers(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the stored answers of these keys."""
        wanted, answers = list(dict.fromkeys(keys)), dict[str, Any]()
        for start in range(0, len(wanted), _BATCH_SIZE):
            part = wanted[start : start + _BATCH_SIZE]
            marks = ",".join("?" * len(part))
            rows = self._read(f"SELECT key, body FROM answers WHERE key IN ({marks})", part)  # noqa: S608 - marks only
            answers.update((key, json.loads(body)) for key, body in rows)
        return answers

    def find_known_keys(self, keys: Iterable[str]) -> set[str]:
        """Return those keys that have an answer."""
        wanted, known = list(dict.fromkeys(keys)), set[str]()
        for start in range(0, len(wanted), _BATCH_SIZE):
            part = wanted[start : start + _BATCH_SIZE]
            marks = ",".join("?" * len(part))
            rows = self._read(f"SELECT key FROM answers WHERE key IN ({marks})", part)  # noqa: S608 - marks only
            known.update(key for (key,) in rows)
        return known

    def _read(self, query: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with _translate_errors(self.folder / JOURNAL_FILE):
            return self._connection.execute(query, parameters).fetchall()

    @contextmanager
    def _write_transaction(self) -> Iterator[sqlite3.Connection]:
        with _translate_errors(self.folder / JOURNAL_FILE):
            # Another process may write the same journal: the lock is taken before the first read of the transaction.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def merge_spans(spans: Iterable[CrawlSpan]) -> list[CrawlSpan]:
    """Merge spans into as few as possible, newest first."""
    merged: list[CrawlSpan] = []
    for span in sorted(spans, key=lambda s: (s.high, s.low), reverse=True):
        above = merged[-1] if merged else None
        if above is None or not (_is_continued_by(above, span) or above.is_adjacent_to(span)):
            merged.append(span)
        # A page may cover a single second only, so a span with an equal lower end still moves the cursor on.
        elif not above.is_complete and (span.is_complete or span.low <= above.low):
            merged[-1] = CrawlSpan(above.high, span.low, span.cursor)
    return merged


def _is_continued_by(above: CrawlSpan, span: CrawlSpan) -> bool:
    """Return whether a page was requested where `above` ends (or starts as it does)."""
    return span.high in (above.low, above.high)


def _build_bounds(frontier: str, since: str, until: str, below: tuple[str, int] | None) -> dict[str, Any]:
    at, number = below or (_LATEST, 0)
    return {"at": at, "number": number, "frontier": frontier, "first": since, "last": until or _LATEST}


def _subtract(when: str, gap: timedelta) -> str:
    """Return the date reduced by `gap`, in the same format."""
    if when == BEFORE_ALL_DATES:
        return when
    at = datetime.fromisoformat(when) - gap
    return at.isoformat(timespec="seconds").replace("+00:00", "Z" if when.endswith("Z") else "+00:00")


def _upsert_state(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    rows = ((key, _dump_json(value)) for key, value in values.items())
    connection.executemany("INSERT INTO state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", rows)


def _dump_json(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Translate SQLite's errors."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise Transient(f"cannot write the journal {path}: {error}") from error
    except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
        raise InputError(f"the journal {path} is damaged: {error}", advice="delete it to crawl again") from error
    except OSError as error:
        raise make_write_error(f"cannot write the journal {path}", error) from error
