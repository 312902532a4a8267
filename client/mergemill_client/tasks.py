"""Databases of tasks, and selections of their tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from mergemill_client.columns import TASK_COLUMNS
from mergemill_client.errors import ClientError, TaskNotFoundError
from mergemill_client.filters import format_filters

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = dict[str, Any]
"""Task as column -> value."""


class TaskSource(Protocol):
    """Where tasks are read from. Filters are texts, as `filters.format_filters` returns them."""

    def iterate_rows(self, filters: dict[str, str], limit: int | None, after: str | None) -> Iterator[Row]:
        """Yield the selected tasks, newest change first."""

    def count_rows(self, filters: dict[str, str]) -> int:
        """Return the number of the selected tasks."""

    def load_details(self, name: str) -> Row:
        """Return what the source knows of a task besides its columns."""

    def close(self) -> None:
        """Close connections."""


class TaskDatabase:
    """Open database, bundle or server."""

    def __init__(self, url: str, source: TaskSource) -> None:
        self.url = url
        self._source = source

    def __repr__(self) -> str:
        return f"TaskDatabase({type(self._source).__name__})"

    def __enter__(self) -> TaskDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close connections."""
        self._source.close()

    def tasks(
        self,
        *,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
        **filters: Any,
    ) -> Tasks:
        """Return a selection of tasks; nothing is read yet.

        Args:
            columns: some of `TASK_COLUMNS`; None for all.
            limit: at most so many tasks.
            after: name of a task; only those behind it in the same order.
            filters: filters of `mergemill tasks list`, with underscores: `language="python,go"` or a list of words,
                `changed_lines="1:50"` or `(1, 50)`, `created=("2024-01", None)`, `where="strength > 0.5"`,
                `sample=100, seed=7, per_repo=5`.

        Raises:
            ClientError: there is no such filter or column.
        """
        for name in columns or ():
            if name not in TASK_COLUMNS:
                raise ClientError(f"there is no column {name!r}; columns: {', '.join(TASK_COLUMNS)}")
        return Tasks(self._source, format_filters(filters), tuple(columns or TASK_COLUMNS), limit, after)

    def count(self, **filters: Any) -> int:
        """Return the number of tasks that filters select."""
        return self._source.count_rows(format_filters(filters))

    def task(self, name: str) -> Row:
        """Return one task by its name or id. The HTTP API adds statement, patches and lists of tests.

        Raises:
            TaskNotFoundError: there is none.
        """
        rows = list(self._source.iterate_rows({"ids": name}, None, None))
        if len(rows) != 1:
            raise TaskNotFoundError(f"there {'is no task' if not rows else 'are several tasks'} {name}")
        return {**self._source.load_details(rows[0]["id"]), **_decode_row(rows[0], TASK_COLUMNS)}


class Tasks:
    """Selection of tasks. Iteration yields one dict a task, newest change first, and reads them as they are needed."""

    def __init__(
        self,
        source: TaskSource,
        filters: dict[str, str],
        columns: Sequence[str],
        limit: int | None,
        after: str | None,
    ) -> None:
        self.columns = tuple(columns)
        self.filters = filters
        self._source = source
        self._limit = limit
        self._after = after

    def __iter__(self) -> Iterator[Row]:
        for row in self._source.iterate_rows(self.filters, self._limit, self._after):
            yield _decode_row(row, self.columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return the tasks as a data frame; needs pandas."""
        try:
            import pandas as pd  # noqa: PLC0415 - an optional dependency
        except ImportError as error:
            raise ClientError("pandas is not installed: pip install 'mergemill-client[pandas]'") from error
        return pd.DataFrame.from_records(list(self), columns=list(self.columns))

    def to_arrow(self) -> pa.Table:
        """Return the tasks as a table; needs pyarrow. `difficulty` is JSON there."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - an optional dependency
        except ImportError as error:
            raise ClientError("pyarrow is not installed: pip install 'mergemill-client[arrow]'") from error
        types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
        schema = pa.schema([(name, types[TASK_COLUMNS[name]]) for name in self.columns])
        return pa.Table.from_pylist([_encode_row(row) for row in self], schema=schema)


def _decode_row(row: Row, columns: Sequence[str] | dict[str, type]) -> Row:
    values = {name: row.get(name) for name in columns}
    difficulty = values.get("difficulty")
    if isinstance(difficulty, str):
        values["difficulty"] = json.loads(difficulty)
    return values


def _encode_row(row: Row) -> Row:
    difficulty = row.get("difficulty")
    return {**row, "difficulty": json.dumps(difficulty, sort_keys=True)} if isinstance(difficulty, dict) else row


def open_database(url: str | Path, *, token: str | None = None, timeout: float = 60.0) -> TaskDatabase:
    """Open a source of tasks for reading.

    Args:
        url: `sqlite:///FILE` or a file, `postgresql://...`, a bundle's folder, or the address of `mergemill serve`.
        token: token of the server, where it asks for one.
        timeout: seconds to wait for the database or an answer.

    Raises:
        ClientError: it is none of these or cannot be read.
    """
    # Modules are loaded here, so that importing the client loads little.
    text = str(url)
    scheme = text.partition(":")[0].lower() if "://" in text or text.startswith("sqlite:") else ""
    source: TaskSource
    if scheme in ("http", "https"):
        from mergemill_client.server import ServerSource  # noqa: PLC0415

        source = ServerSource(text, token, timeout)
    elif scheme in ("postgresql", "postgresql+psycopg", "postgres"):
        from mergemill_client.postgresql import PostgresSource  # noqa: PLC0415

        source = PostgresSource(text, timeout)
    elif scheme in ("", "sqlite"):
        path = Path(text.split("sqlite:///", 1)[-1]) if scheme else Path(text)
        source = _open_path(path, timeout)
    else:
        raise ClientError(f"{scheme}:// is not supported: sqlite, postgresql, http or a folder")
    return TaskDatabase(text, source)


def _open_path(path: Path, timeout: float) -> TaskSource:
    if path.is_dir():
        from mergemill_client.bundle import open_bundle  # noqa: PLC0415

        return open_bundle(path)
    from mergemill_client.sqlite import SqliteSource, connect_file  # noqa: PLC0415

    return SqliteSource(connect_file(path, timeout))
