"""Filters and samples as SQL over the view `tasks`, for SQLite and PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mergemill_client.columns import (
    CAPPED,
    LIST_COLUMNS,
    MIXED_CASE,
    RANGE_FILTERS,
    STRATA,
    TASK_COLUMNS,
    WORD_FILTERS,
)
from mergemill_client.errors import ClientError
from mergemill_client.filters import parse_dates, parse_number, parse_range, split_words

NEWEST_FIRST = "created_at DESC, name, id"
SAMPLING = ("sample", *(f"per_{name}" for name in CAPPED))


@dataclass(frozen=True)
class Dialect:
    """What SQLite and PostgreSQL spell differently."""

    mark: str
    """Placeholder of a parameter."""
    words: str
    """Query of the members of a JSON list of texts, a parameter."""
    rates: str
    """FROM clause of the members of `difficulty`."""
    rate: str
    """Pass rate of such a member."""
    model: str
    has_tags: bool = True
    """Whether there is a view `tags` with all kinds of a change."""


SQLITE = Dialect(
    mark="?",
    words="SELECT value FROM json_each(?)",
    rates="json_each(tasks.difficulty) AS d",
    rate="json_extract(d.value, '$.c') * 1.0 / nullif(json_extract(d.value, '$.n'), 0)",
    model="d.key",
)
BUNDLE = Dialect(SQLITE.mark, SQLITE.words, SQLITE.rates, SQLITE.rate, SQLITE.model, has_tags=False)
POSTGRESQL = Dialect(
    mark="%s",
    words="SELECT jsonb_array_elements_text(CAST(%s AS jsonb))",
    rates="jsonb_each(CAST(tasks.difficulty AS jsonb)) AS d",
    rate="CAST(d.value ->> 'c' AS double precision) / nullif(CAST(d.value ->> 'n' AS double precision), 0)",
    model="d.key",
)


@dataclass
class SqlText:
    """SQL and the values of its placeholders."""

    text: str
    values: list[Any] = field(default_factory=list)


def hash_text(text: str) -> str:
    """Return the function `md5` of PostgreSQL, by which samples are ordered."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def build_condition(filters: Mapping[str, str], dialect: Dialect) -> SqlText:
    """Return the condition that filters are, but for `ids` and samples.

    Raises:
        ClientError: a value of a filter is wrong.
    """
    parts = [_match_words(name, split_words(filters[name]), dialect) for name in WORD_FILTERS if name in filters]
    parts += [_match_range(name, filters[name], dialect) for name in RANGE_FILTERS if name in filters]
    if not {"kind", "environment", "ids"} & set(filters):
        parts.append(SqlText("environment <> 'simulated'"))
    if not {"tests", "ids"} & set(filters):
        parts.append(SqlText("tests = 'human'"))
    if "min_f2p" in filters:
        parts.append(SqlText(f"n_fail_to_pass >= {dialect.mark}", [parse_number("min_f2p", filters["min_f2p"])]))
    first, end = parse_dates(filters)
    for operator, day in ((">=", first), ("<", end)):
        if day is not None:
            parts.append(SqlText(f"created_at {operator} {dialect.mark}", [day]))
    if "difficulty" in filters:
        parts.append(_match_pass_rate(filters["difficulty"], dialect))
    if "where" in filters:
        # The database reads it as it is: the connection is read-only, and its owner wrote the text.
        escaped = filters["where"].replace("%", "%%") if dialect.mark == "%s" else filters["where"]
        parts.append(SqlText(f"({escaped}\n)"))
    return SqlText(" AND ".join(part.text for part in parts) or "1 = 1", [v for part in parts for v in part.values])


def build_id_query(words: Sequence[str], dialect: Dialect) -> SqlText:
    """Return a query of id and name of the tasks of ids and names."""
    listed = json.dumps(list(words))
    return SqlText(
        f"SELECT id, name FROM tasks WHERE id IN ({dialect.words}) OR name IN ({dialect.words})", [listed] * 2
    )


def build_selection(condition: SqlText, ids: Sequence[str] | None, dialect: Dialect) -> SqlText:
    """Return a condition with the restriction to some full ids; None for all."""
    if ids is None:
        return condition
    return SqlText(f"{condition.text} AND id IN ({dialect.words})", [*condition.values, json.dumps(list(ids))])


@dataclass
class SampleQuery:
    """A sample in SQL: first `sizes` is read where there are strata, then `build_draw` gives the ids."""

    filters: Mapping[str, str]
    condition: SqlText
    dialect: Dialect

    @property
    def strata(self) -> list[str]:
        """Columns that form the strata.

        Raises:
            ClientError: there is no such column.
        """
        words = split_words(self.filters.get("stratify", ""))
        for word in words:
            if word not in STRATA:
                raise ClientError(f"stratify: {word!r} is not one of {', '.join(STRATA)}")
        return words

    @property
    def size(self) -> int | None:
        """Number of tasks wanted; None for all that the caps leave."""
        return parse_number("sample", self.filters["sample"]) if "sample" in self.filters else None

    def build_capped(self) -> SqlText:
        """Return a query of id, rank and strata of the tasks that the caps leave."""
        strata = "".join(
            f", {'substr(created_at, 1, 4)' if name == 'year' else name} AS stratum_{at}"
            for at, name in enumerate(self.strata)
        )
        capped = [name for name in CAPPED if f"per_{name}" in self.filters]
        groups = "".join(f", {_build_group(name)} AS group_{name}" for name in capped)
        query = (
            f"SELECT id, md5({self.dialect.mark} || name) AS rank{groups}{strata}"
            f" FROM tasks WHERE {self.condition.text}"
        )
        values = [f"{self.filters.get('seed', '0')} ", *self.condition.values]
        for name in capped:
            most = parse_number(f"per_{name}", self.filters[f"per_{name}"])
            place = f"row_number() OVER (PARTITION BY group_{name} ORDER BY rank, id)"
            query = f"SELECT * FROM (SELECT q.*, {place} AS in_{name} FROM ({query}) q) q WHERE in_{name} <= {most}"
        return SqlText(query, values)

    def build_sizes(self) -> SqlText:
        """Return a query of the strata and the number of tasks of each, which stands first."""
        capped = self.build_capped()
        names = ", ".join(f"stratum_{at}" for at in range(len(self.strata)))
        return SqlText(f"SELECT count(*), {names} FROM ({capped.text}) s GROUP BY {names}", capped.values)

    def build_draw(self, most: int | None) -> SqlText:
        """Return a query of id, place in its stratum and stratum of the first `most` tasks of each stratum."""
        capped = self.build_capped()
        names = [f"stratum_{at}" for at in range(len(self.strata))]
        partition = f"PARTITION BY {', '.join(names)} " if names else ""
        place = f"row_number() OVER ({partition}ORDER BY rank, id) AS place"
        end = "" if most is None else f" WHERE place <= {most}"
        columns = "".join(f", {name}" for name in names)
        query = f"SELECT id, place{columns} FROM (SELECT s.*, {place} FROM ({capped.text}) s) s{end}"
        return SqlText(query, capped.values)


def _build_group(name: str) -> str:
    """Return the value that tasks of a group share, in SQL; a task without one has its own."""
    if name == "repo":
        return "lower(repo)"
    value = "lower(repo) || ' ' || functions" if name == "functions" else name
    return f"coalesce({value}, id)"


def allocate(sizes: Mapping[tuple[Any, ...], int], total: int, allocation: str) -> dict[tuple[Any, ...], int]:
    """Return how many tasks each stratum gives: `proportional` by largest remainder, or `equal` numbers.

    Raises:
        ClientError: there is no such allocation.
    """
    if allocation not in ("proportional", "equal"):
        raise ClientError(f"allocate: {allocation[:80]!r} is not proportional or equal")
    order = sorted(sizes, key=lambda stratum: [(value is not None, value or "") for value in stratum])
    every = sum(sizes.values()) or 1
    total = min(total, sum(sizes.values()))
    given: dict[tuple[Any, ...], int] = {}
    if allocation == "equal":
        for at, stratum in enumerate(sorted(order, key=lambda stratum: sizes[stratum])):
            given[stratum] = min(sizes[stratum], (total - sum(given.values())) // (len(order) - at))
        first = [stratum for stratum in order if sizes[stratum] > given[stratum]]
    else:
        given = {stratum: sizes[stratum] * total // every for stratum in order}
        first = sorted(order, key=lambda stratum: -(sizes[stratum] * total % every))
    for stratum in first[: total - sum(given.values())]:
        given[stratum] += 1
    return given


def _match_words(name: str, words: Sequence[str], dialect: Dialect) -> SqlText:
    lowered = [word.lower() for word in words]
    marks = ", ".join([dialect.mark] * len(lowered))
    if not lowered:
        raise ClientError(f"{name}: there is no value")
    if name == "change_kind" and dialect.has_tags:
        return SqlText(f"candidate IN (SELECT candidate FROM tags WHERE change_kind IN ({marks}))", lowered)
    column = f"lower({name})" if name in MIXED_CASE else name
    if name == "audited" and "none" in lowered:
        return SqlText(f"(audited IS NULL OR audited IN ({marks}))", lowered)
    if name == "tests" and "all" in lowered:
        return SqlText("1 = 1")
    if name in LIST_COLUMNS:
        return _match_lists(name, lowered, dialect)
    return SqlText(f"{column} IN ({marks})", lowered)


def _match_lists(name: str, words: Sequence[str], dialect: Dialect) -> SqlText:
    """Return the condition that a list of words has any of some words; `none` stands for an empty or absent list."""
    escaped = [re.sub(r"([%_/])", r"/\1", "" if word == "none" else word) for word in words]
    listed = f"',' || lower(coalesce({name}, '')) || ','"
    conditions = " OR ".join(f"{listed} LIKE {dialect.mark} ESCAPE '/'" for _ in escaped)
    return SqlText(f"({conditions})", [f"%,{word},%" for word in escaped])


def _match_range(name: str, text: str, dialect: Dialect) -> SqlText:
    if name not in TASK_COLUMNS:
        raise ClientError(f"there is no column {name}")
    return _match_bounds(name, *parse_range(name, text), dialect)


def _match_bounds(value: str, low: float | None, high: float | None, dialect: Dialect) -> SqlText:
    bounds = [(operator, bound) for operator, bound in ((">=", low), ("<=", high)) if bound is not None]
    return SqlText(
        " AND ".join(f"{value} {operator} {dialect.mark}" for operator, _ in bounds), [bound for _, bound in bounds]
    )


def _match_pass_rate(text: str, dialect: Dialect) -> SqlText:
    rest, _, high = text.rpartition(":")
    model, _, low = rest.rpartition(":")
    bounds = _match_bounds(dialect.rate, *parse_range("difficulty", f"{low}:{high}"), dialect)
    if model:
        bounds = SqlText(f"{bounds.text} AND lower({dialect.model}) = {dialect.mark}", [*bounds.values, model.lower()])
    return SqlText(f"EXISTS (SELECT 1 FROM {dialect.rates} WHERE {bounds.text})", bounds.values)
