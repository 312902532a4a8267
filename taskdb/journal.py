"""What a forge said of one repository: a file of its own, beside the clone, that mining reads instead of asking again.

The first word about a merged pull request counts; what is said later of it is dropped, so that mining again gives the
same records. Pages come by date of update, newest first. Which dates were read is kept as spans: a crawl that was
interrupted leaves two with a hole between them, and the next one knows where it has to go on.

Each step of a crawl is one transaction, which also merges what another process wrote in between: a kill at any moment
costs the step it was at, and two crawls of one repository at a time cost requests and nothing else.
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

from mergemill.errors import InputError, Transient
from taskdb.closing import Closing

FILE = "journal.sqlite"
OVERLAP = timedelta(seconds=60)
"""So much of what was read before is read again: a forge's lists may lag behind its clock."""
BEGINNING = ""
"""Before all dates: the end of the list was reached."""

_SECONDS_LOCKED = 30
_PART = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS spans (high TEXT PRIMARY KEY, low TEXT NOT NULL, cursor TEXT);
CREATE TABLE IF NOT EXISTS pulls (number INTEGER PRIMARY KEY, merged_at TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS pulls_by_merge ON pulls (merged_at DESC, number DESC);
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, body TEXT NOT NULL);
"""
_MEANT = """FROM pulls
WHERE (merged_at, number) < (:at, :number) AND merged_at > :frontier AND merged_at >= :first AND merged_at < :last"""
_NEWEST = f"SELECT number, merged_at, body {_MEANT} ORDER BY merged_at DESC, number DESC LIMIT :part"
_LATEST = "9999"


class Pull(NamedTuple):
    """A merged pull request. `merged_at`: ISO 8601 as the forge writes it; `body`: all that it said, as JSON data."""

    number: int
    merged_at: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """What was updated between `high` and `low` was read; `cursor` is where the list goes on below, None for nowhere.

    Dates are ISO 8601 as the forge writes them; they sort as text. `low` is `BEGINNING` at the list's end.
    """

    high: str
    low: str
    cursor: str | None

    @property
    def complete(self) -> bool:
        """Whether nothing is left below."""
        return self.cursor is None

    def meets(self, older: Span) -> bool:
        """Whether there is certainly nothing between this span and an older one."""
        return self.complete or self.low < _before(older.high, OVERLAP)


class Journal(Closing):
    """The journal in a folder. Usable from one thread at a time, whichever that is; a context manager."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    @classmethod
    def open(cls, folder: Path) -> Journal:
        """The journal of a folder, made when there is none.

        Raises:
            InputError: the file is damaged.
            Transient: it cannot be written now.
        """
        path = folder / FILE
        with _speaking(path):
            folder.mkdir(parents=True, exist_ok=True)
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
        """Let go of the file."""
        self._connection.close()

    # -------------------------------------------------------------------------------------------------- state

    def get(self, key: str, default: Any = None) -> Any:
        """A part of the state, as JSON data."""
        rows = self._read("SELECT value FROM state WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else default

    def put(self, **values: Any) -> None:
        """Set parts of the state. One transaction."""
        with self._writing() as connection:
            _put(connection, values)

    def top(self) -> Span | None:
        """What was read from the newest date on without a hole, or None."""
        spans = self.spans()
        return spans[0] if spans else None

    def spans(self) -> list[Span]:
        """All that was read, newest first; there is a hole between each and the next."""
        return [Span(*row) for row in self._read("SELECT high, low, cursor FROM spans ORDER BY high DESC")]

    # -------------------------------------------------------------------------------------------------- writing

    def keep(self, pulls: Sequence[Pull], span: Span | None, **state: Any) -> int:
        """Keep a page, the dates it covers, and parts of the state; how many pull requests were new. One transaction.

        Args:
            pulls: the merged pull requests of the page.
            span: what it covers, beginning where it was asked for: at the top, or at the low end of a span.
            state: as in `put`.
        """
        with self._writing() as connection:
            rows = ((pull.number, pull.merged_at, _json(pull.body)) for pull in pulls)
            added = connection.executemany("INSERT OR IGNORE INTO pulls VALUES (?, ?, ?)", rows).rowcount
            if span:
                known = [Span(*row) for row in connection.execute("SELECT high, low, cursor FROM spans")]
                connection.execute("DELETE FROM spans")
                merged = [(s.high, s.low, s.cursor) for s in merge([*known, span])]
                connection.executemany("INSERT INTO spans VALUES (?, ?, ?)", merged)
            _put(connection, state)
            return max(added, 0)

    def add_answers(self, answers: Mapping[str, Any]) -> None:
        """Keep what was said under keys of the caller's, unless something is kept there. One transaction."""
        with self._writing() as connection:
            rows = ((key, _json(body)) for key, body in answers.items())
            connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)

    # -------------------------------------------------------------------------------------------------- reading

    def newest(
        self,
        *,
        frontier: str = BEGINNING,
        since: str = "",
        until: str = "",
        below: tuple[str, int] | None = None,
        most: int | None = None,
    ) -> Iterator[Pull]:
        """Pull requests by date of merge, then number, newest first, read in parts.

        Args:
            frontier: only what was merged after it.
            since: only what was merged then or later.
            until: only what was merged before.
            below: only what comes behind this date and number in that order.
            most: not more than so many.
        """
        left = most if most is not None else -1
        while left:
            part = min(_PART, left) if left > 0 else _PART
            rows = self._read(_NEWEST, _bounds(frontier, since, until, below) | {"part": part})
            for number, merged_at, body in rows:
                yield Pull(number, merged_at, json.loads(body))
            if len(rows) < part:
                return
            below, left = (rows[-1][1], rows[-1][0]), max(left - part, -1) if left > 0 else left

    def count(
        self, *, frontier: str = BEGINNING, since: str = "", until: str = "", below: tuple[str, int] | None = None
    ) -> int:
        """How many pull requests `newest` would yield."""
        query = f"SELECT count(*) {_MEANT}"
        return int(self._read(query, _bounds(frontier, since, until, below))[0][0])

    def answers(self, keys: Iterable[str]) -> dict[str, Any]:
        """What was kept under those of the keys that there are."""
        wanted, found = list(dict.fromkeys(keys)), dict[str, Any]()
        for start in range(0, len(wanted), _PART):
            part = wanted[start : start + _PART]
            marks = ",".join("?" * len(part))
            rows = self._read(f"SELECT key, body FROM answers WHERE key IN ({marks})", part)  # noqa: S608 - marks only
            found.update((key, json.loads(body)) for key, body in rows)
        return found

    def known_answers(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys under which something is kept."""
        wanted, found = list(dict.fromkeys(keys)), set[str]()
        for start in range(0, len(wanted), _PART):
            part = wanted[start : start + _PART]
            marks = ",".join("?" * len(part))
            rows = self._read(f"SELECT key FROM answers WHERE key IN ({marks})", part)  # noqa: S608 - marks only
            found.update(key for (key,) in rows)
        return found

    def _read(self, query: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with _speaking(self.folder / FILE):
            return self._connection.execute(query, parameters).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with _speaking(self.folder / FILE):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def merge(spans: Iterable[Span]) -> list[Span]:
    """The same dates in as few spans as can be, newest first."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.high, s.low), reverse=True):
        above = merged[-1] if merged else None
        if above is None or not (_continues(above, span) or above.meets(span)):
            merged.append(span)
        elif not above.complete and (span.complete or span.low <= above.low):  # a page may be of one second only
            merged[-1] = Span(above.high, span.low, span.cursor)
    return merged


def _continues(above: Span, span: Span) -> bool:
    """Whether a page was asked for where `above` ended (or begins as it does)."""
    return span.high in (above.low, above.high)


def _bounds(frontier: str, since: str, until: str, below: tuple[str, int] | None) -> dict[str, Any]:
    at, number = below or (_LATEST, 0)
    return {"at": at, "number": number, "frontier": frontier, "first": since, "last": until or _LATEST}


def _before(when: str, gap: timedelta) -> str:
    """The date so much earlier, written the same way."""
    if when == BEGINNING:
        return when
    at = datetime.fromisoformat(when) - gap
    return at.isoformat(timespec="seconds").replace("+00:00", "Z" if when.endswith("Z") else "+00:00")


def _put(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    rows = ((key, _json(value)) for key, value in values.items())
    connection.executemany("INSERT INTO state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", rows)


def _json(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


@contextmanager
def _speaking(path: Path) -> Iterator[None]:
    """SQLite's errors in the project's words."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise Transient(f"cannot write the journal {path}: {error}") from error
    except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
        raise InputError(f"the journal {path} is damaged: {error}", advice="delete it to crawl anew") from error
    except OSError as error:
        raise Transient(f"cannot write the journal {path}: {error.strerror}") from error
