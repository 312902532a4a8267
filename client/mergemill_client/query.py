"""Reading of tasks by SQL, the same for SQLite and PostgreSQL."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from mergemill_client.errors import ClientError, TaskNotFoundError
from mergemill_client.filters import FILTERS, split_words
from mergemill_client.sql import (
    NEWEST_FIRST,
    SAMPLING,
    Dialect,
    SampleQuery,
    SqlText,
    allocate,
    build_condition,
    build_id_query,
    build_selection,
)

SELECTION_KEY = "selection "
"""Beginning of the keys of saved selections in table `meta`."""
HEX_DIGITS = frozenset("0123456789abcdef")


class SqlSource(ABC):
    """Tasks behind a connection that can only read."""

    dialect: Dialect

    @abstractmethod
    def execute(self, query: SqlText) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query as they are needed.

        Raises:
            ClientError: the database rejects it.
        """

    @abstractmethod
    def iterate_dicts(self, query: SqlText) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query with the names of their columns."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def load_details(self, name: str) -> dict[str, Any]:
        """Return nothing: statement and patches are not in the columns."""
        del name
        return {}

    def iterate_rows(self, filters: dict[str, str], limit: int | None, after: str | None) -> Iterator[dict[str, Any]]:
        """Yield the selected tasks, newest change first."""
        condition = self._resolve(filters)
        text, values = condition.text, list(condition.values)
        if after is not None:
            at, name, key = self._find_position(after)
            mark = self.dialect.mark
            behind = f"created_at < {mark} OR name > {mark} OR (name = {mark} AND id > {mark})"
            text += f" AND created_at <= {mark} AND ({behind})"
            values += [at, at, name, name, key]
        end = "" if limit is None else f" LIMIT {int(limit)}"
        yield from self.iterate_dicts(SqlText(f"SELECT * FROM tasks WHERE {text} ORDER BY {NEWEST_FIRST}{end}", values))

    def count_rows(self, filters: dict[str, str]) -> int:
        """Return the number of the selected tasks."""
        condition = self._resolve(filters)
        (row,) = self.execute(SqlText(f"SELECT count(*) FROM tasks WHERE {condition.text}", condition.values))
        return int(row[0])

    def _resolve(self, filters: dict[str, str]) -> SqlText:
        """Return the condition of filters, samples and names resolved to ids."""
        if "decontaminated" in filters:
            raise ClientError("decontaminated: benchmark lists are read by the command line alone")
        if "selection" in filters:
            filters = {**self._load_selection(filters["selection"]), **filters}
        ids = self._find_ids(split_words(filters["ids"])) if "ids" in filters else None
        condition = build_selection(build_condition(filters, self.dialect), ids, self.dialect)
        if not set(SAMPLING) & set(filters):
            return condition
        sampled = self._draw(SampleQuery(filters, condition, self.dialect))
        return build_selection(SqlText("1 = 1"), sampled, self.dialect)

    def _draw(self, sample: SampleQuery) -> list[str]:
        if sample.size is None or not sample.strata:
            return [row[0] for row in self.execute(sample.build_draw(sample.size))]
        sizes = {tuple(row[1:]): int(row[0]) for row in self.execute(sample.build_sizes())}
        quotas = allocate(sizes, sample.size, sample.filters.get("allocate", "proportional"))
        rows = self.execute(sample.build_draw(max(quotas.values(), default=0)))
        return [row[0] for row in rows if row[1] <= quotas[tuple(row[2:])]]

    def _find_ids(self, words: Sequence[str]) -> list[str]:
        ids: dict[str, list[str]] = {}
        for key, name in self.execute(build_id_query(words, self.dialect)):
            ids.setdefault(key, []).append(key)
            ids.setdefault(name, []).append(key)
        for word in words:
            if word not in ids and word and HEX_DIGITS.issuperset(word):
                mark = self.dialect.mark
                beginning = SqlText(
                    f"SELECT id FROM tasks WHERE id >= {mark} AND id < {mark} LIMIT 2", [word, f"{word}g"]
                )
                if len(matches := [row[0] for row in self.execute(beginning)]) == 1:
                    ids[word] = matches
        if missing := [word for word in words if word not in ids]:
            raise TaskNotFoundError(f"{len(missing)} of {len(words)} tasks are not found: {', '.join(missing[:10])}")
        return [key for word in words for key in ids[word]]

    def _find_position(self, word: str) -> Sequence[Any]:
        mark = self.dialect.mark
        query = (
            f"SELECT created_at, name, id FROM tasks WHERE id = {mark} OR name = {mark} ORDER BY created_at, id DESC"
        )
        for row in self.execute(SqlText(query, [word, word])):
            return row
        raise TaskNotFoundError(f"there is no task {word}")

    def _load_selection(self, name: str) -> dict[str, str]:
        query = SqlText(f"SELECT value FROM meta WHERE key = {self.dialect.mark}", [SELECTION_KEY + name])
        for row in self.execute(query):
            return {key: value for key, value in json.loads(row[0]).items() if key in FILTERS}
        raise ClientError(f"there is no selection {name}")
