"""Full-text search over tasks: FTS5 on SQLite, a stored tsvector on PostgreSQL.

Texts and questions are split into words here, so that both databases find the same: a word is a run of letters and
digits, compared without case, and a question's word is the beginning of a text's word. All words must match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Subquery, TextClause, bindparam, column, text

from taskdb.records import Record, Task
from taskdb.schema.batches import KeyedQuery, split_batches
from taskdb.schema.stored_records import decompress_body, parse_json

_WORD = re.compile(r"[^\W_]+")
_MAX_WORDS = 20_000
_MAX_LENGTH = 200
"""Longest part of a word that is compared; PostgreSQL refuses words of more than 2 kB."""
_MAX_POSITION = 16_383
"""The largest position in a tsvector."""
_SNIPPET_BEFORE, _SNIPPET_AFTER = 60, 120

_CREATE_SQLITE = (
    """CREATE VIRTUAL TABLE task_search USING fts5
       (title, statement, content='', tokenize='unicode61 remove_diacritics 0', prefix='2 3')""",
    "INSERT INTO task_search (task_search, rank) VALUES ('rank', 'bm25(10.0, 1.0)')",
)
_CREATE_POSTGRESQL = (
    "CREATE TABLE task_search (task INTEGER PRIMARY KEY, words TSVECTOR NOT NULL)",
    "CREATE INDEX ix_task_search_words ON task_search USING gin (words)",
)
_ADD_SQLITE = text("INSERT INTO task_search (rowid, title, statement) VALUES (:task, :title, :statement)")
_ADD_POSTGRESQL = text("INSERT INTO task_search (task, words) VALUES (:task, CAST(:words AS tsvector))")
_CLEAR_SQLITE = text("INSERT INTO task_search (task_search) VALUES ('delete-all')")
_CLEAR_POSTGRESQL = text("DELETE FROM task_search")
_FIND_SQLITE = text("SELECT rowid AS task, rank AS badness FROM task_search WHERE task_search MATCH :words")
_FIND_POSTGRESQL = text("""SELECT task, -ts_rank(words, CAST(:words AS tsquery)) AS badness FROM task_search
                           WHERE words @@ CAST(:words AS tsquery)""")
_PART = 500
_BODIES = text("SELECT seq, body FROM task WHERE seq > :last ORDER BY seq LIMIT :most")
_BODIES_OF = KeyedQuery("SELECT seq, body FROM task WHERE seq IN :keys")
_SEQS = text("SELECT id, seq FROM task WHERE id IN :keys").bindparams(bindparam("keys", expanding=True))


def read_statements(connection: Connection, tasks: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield `seq` and problem statement of tasks (`seq`); the rest of their records is not read."""
    for keys in split_batches(tasks, _PART):
        for seq, body in _BODIES_OF.fetch(connection, keys):
            yield seq, parse_json(decompress_body(body))["problem_statement"]


def split_words(content: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word[:_MAX_LENGTH] for word in _WORD.findall(content.lower())[:_MAX_WORDS]]


def create_index(connection: Connection) -> None:
    """Create the table of the index."""
    for statement in _CREATE_SQLITE if _is_sqlite(connection) else _CREATE_POSTGRESQL:
        connection.execute(text(statement))


def rebuild_index(connection: Connection) -> None:
    """Write the index of all tasks again."""
    connection.execute(_CLEAR_SQLITE if _is_sqlite(connection) else _CLEAR_POSTGRESQL)
    last = 0
    while rows := connection.execute(_BODIES, {"last": last, "most": _PART}).all():
        tasks = [(row.seq, parse_json(decompress_body(row.body))) for row in rows]
        add_texts(
            connection, ((seq, f"{task['name']} {task['repo']}", task["problem_statement"]) for seq, task in tasks)
        )
        last = rows[-1].seq


def index_tasks(connection: Connection, records: Sequence[Record]) -> None:
    """Add those of stored records that are tasks to the index."""
    if tasks := [record for record in records if isinstance(record, Task)]:
        seqs = {row.id: row.seq for row in connection.execute(_SEQS, {"keys": [task.id for task in tasks]})}
        add_texts(connection, ((seqs[task.id], f"{task.name} {task.repo}", task.problem_statement) for task in tasks))


def add_texts(connection: Connection, texts: Iterable[tuple[int, str, str]]) -> None:
    """Add texts of tasks: `seq`, title and statement."""
    is_sqlite = _is_sqlite(connection)
    build_row = _build_sqlite_row if is_sqlite else _build_postgresql_row
    rows = [build_row(task, split_words(title), split_words(statement)) for task, title, statement in texts]
    if rows:
        connection.execute(_ADD_SQLITE if is_sqlite else _ADD_POSTGRESQL, rows)


def build_match(connection: Connection, words: Sequence[str], *, is_any: bool = False) -> str | None:
    """Return the parameter `words` of `get_hits` for tasks that contain all words, or None without a word.

    `is_any`: for tasks that contain any of them.
    """
    wanted = [part for word in words for part in split_words(word)]
    if _is_sqlite(connection):
        return (" OR " if is_any else " ").join(f'"{word}"*' for word in wanted) or None
    return (" | " if is_any else " & ").join(f"'{word}':*" for word in wanted) or None


def get_hits(connection: Connection) -> Subquery:
    """Return the tasks that match as columns `task` (its `seq`) and `badness`, the best match lowest."""
    return _HITS_SQLITE if _is_sqlite(connection) else _HITS_POSTGRESQL


def _build_hits(query: TextClause) -> Subquery:
    return query.columns(column("task"), column("badness")).subquery("hits")


_HITS_SQLITE, _HITS_POSTGRESQL = _build_hits(_FIND_SQLITE), _build_hits(_FIND_POSTGRESQL)


def make_snippet(statement: str, words: Sequence[str]) -> str:
    """Return the part of a statement around the first of the words in it, on a single line."""
    at = _find_first(statement, [part for word in words for part in split_words(word)])
    start, end = max(0, at - _SNIPPET_BEFORE), at + _SNIPPET_AFTER
    middle = " ".join(statement[start:end].split())
    return f"{'...' if start else ''}{middle}{'...' if end < len(statement) else ''}"


def _find_first(statement: str, beginnings: Sequence[str]) -> int:
    """Return where the first word begins that begins so, or 0 without a match."""
    lowered = statement.lower()
    if len(lowered) != len(statement):  # a capital letter whose small form is two characters
        lowered = "".join(letter if len(letter.lower()) > 1 else letter.lower() for letter in statement)
    positions = [at for beginning in beginnings if (at := _find_word(lowered, beginning)) >= 0]
    return min(positions, default=0)


def _find_word(content: str, beginning: str) -> int:
    """Return where the first word begins that begins so, or -1: a pattern would visit every character."""
    at = content.find(beginning)
    while at > 0 and _WORD.match(content, at - 1):
        at = content.find(beginning, at + 1)
    return at


def _build_sqlite_row(task: int, title: Sequence[str], statement: Sequence[str]) -> dict[str, Any]:
    return {"task": task, "title": " ".join(title), "statement": " ".join(statement)}


def _build_postgresql_row(task: int, title: Sequence[str], statement: Sequence[str]) -> dict[str, Any]:
    weighted = [(word, "A") for word in title] + [(word, "D") for word in statement]
    places = (f"'{word}':{min(at, _MAX_POSITION)}{weight}" for at, (word, weight) in enumerate(weighted, 1))
    return {"task": task, "words": " ".join(places)}


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
