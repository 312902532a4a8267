"""Filters of tasks: columns of view `tasks`, filters over them, and their form as text.

A filter has the name and the effect of an option of the command line, a query parameter of the HTTP API, a field of
`TaskFilters` and a keyword of the client. `FILTERS` is the table of all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache, wraps
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    ColumnElement,
    Float,
    Select,
    String,
    column,
    exists,
    func,
    literal,
    or_,
    select,
    table,
    true,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from core.errors import UsageError
from taskdb.records import TestOrigin
from taskdb.records.kinds import LIST_KINDS
from taskdb.schema.columns import TASK_COLUMNS, build_clause
from taskdb.schema.task_columns import (
    ALL,
    COMMON,
    MORE,
    NEVER,
    RANGE_FILTERS,
    WORD_FILTERS,
    ColumnFilter,
    ColumnFilters,
    Range,
    TaskColumns,
    Words,
)
from taskdb.schema.word_lists import match_words, select_words

TASKS = build_clause("tasks", TaskColumns)
"""View `tasks`, with the types of its columns."""
_TAGS = table("tags", column("candidate"), column("change_kind"))


class Allocation(StrEnum):
    """Shares of the strata in a sample."""

    PROPORTIONAL = "proportional"
    EQUAL = "equal"


class DateRange(NamedTuple):
    """ISO dates: those from `first` and those before `end`; None leaves an end open."""

    first: str | None = None
    end: str | None = None


class PassRate(NamedTuple):
    """Range of the pass rate of a model and scaffold (`MODEL/SCAFFOLD`); None for any of them."""

    model: str | None
    rate: Range


class JsonPairs(FunctionElement[Any]):
    """Rows of a JSON object in a text, as columns `key` and `value`."""

    name = "json_pairs"
    inherit_cache = True


class JsonNumber(FunctionElement[float]):
    """Number of a key in a JSON object."""

    name = "json_number"
    type = Float()
    inherit_cache = True


@compiles(JsonPairs)
def _compile_json_pairs_sqlite(element: JsonPairs, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(JsonPairs, "postgresql")
def _compile_json_pairs(element: JsonPairs, compiler: Any, **options: Any) -> str:
    return f"jsonb_each(CAST({compiler.process(element.clauses, **options)} AS jsonb))"


@compiles(JsonNumber)
def _compile_json_number(element: JsonNumber, compiler: Any, **options: Any) -> str:
    value, key = (compiler.process(clause, **options) for clause in element.clauses)
    return f"json_extract({value}, '$.' || {key})"


@compiles(JsonNumber, "postgresql")
def _compile_json_number_postgresql(element: JsonNumber, compiler: Any, **options: Any) -> str:
    value, key = (compiler.process(clause, **options) for clause in element.clauses)
    return f"CAST({value} ->> {key} AS double precision)"


@dataclass(frozen=True, kw_only=True)
class TaskFilters(ColumnFilters):
    """Filters of tasks: those over columns, and others.

    Simulated tasks are excluded unless `kind`, `environment` or `ids` select them, and tasks with model-written tests
    unless `tests` or `ids` do. The last fields need the database or files and are resolved by
    `mergemill.bundles.filter_resolution.resolve_filters` before a query.
    """

    min_f2p: int | None = None
    created: DateRange | None = None
    difficulty: PassRate | None = None
    controlled: bool = False
    """Whether tasks of `LIST_KINDS` must have controls, unless they are as they were published."""
    max_underspecified: float | None = None
    """Highest probability of a vague statement; tasks that were not judged are selected, too."""
    max_unfair: float | None = None
    """The same of unfair tests."""
    where: str | None = None
    ids: Words | None = None
    """Full ids."""
    excluded_ids: Words = ()

    named: Words | None = None
    """Ids, beginnings of ids, or names."""
    selection: str | None = None
    """Name of a saved selection, whose filters hold where none is given."""
    decontaminated: Words = ()
    """Benchmark lists whose changes are excluded."""
    sample: int | None = None
    seed: str = "0"
    stratify: Words = ()
    allocate: Allocation = Allocation.PROPORTIONAL
    per_repo: int | None = None
    per_family: int | None = None
    per_functions: int | None = None
    per_operators: int | None = None
    per_edit_group: int | None = None
    per_failing_set: int | None = None

    @property
    def is_resolved(self) -> bool:
        """Whether `apply` expresses everything."""
        return self.named is None and self.selection is None and not self.decontaminated and not self.is_sampled

    @property
    def is_sampled(self) -> bool:
        """Whether only some of the matching tasks are selected."""
        return self.sample is not None or bool(self.caps)

    @property
    def caps(self) -> dict[str, int]:
        """Column of `CAPPED` -> greatest number of tasks that share a value of it, in the order of `CAPPED`."""
        limits = {name: getattr(self, f"per_{name}") for name in CAPPED}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def apply(self, query: Select[Any], columns: Mapping[str, ColumnElement[Any]] | None = None) -> Select[Any]:
        """Return the query with these filters.

        Args:
            query: a query over view `tasks`, or over another table with its columns.
            columns: the columns, by the names of `TASK_COLUMNS`; None for those of the view.
        """
        if not self.is_resolved:
            raise ValueError("these filters need resolve_filters first")
        return query.where(*self.build_conditions(columns if columns is not None else dict(TASKS.c)))

    def build_conditions(self, columns: Mapping[str, ColumnElement[Any]]) -> list[ColumnElement[bool]]:
        """Return the conditions whose conjunction these filters are."""
        given = {name: getattr(self, name) for name in (*WORD_FILTERS, *RANGE_FILTERS)}
        conditions = [
            _match_words(name, words, columns) for name in WORD_FILTERS if (words := _as_words(given[name])) is not None
        ]
        if not (self.kind or self.environment or self.ids is not None):
            conditions.append(columns["environment"] != "simulated")
        if not (self.tests or self.ids is not None):
            conditions.append(columns["tests"] == TestOrigin.HUMAN)
        for name in RANGE_FILTERS:
            if given[name] is not None:
                conditions += _match_bounds(columns[name], given[name])
        return conditions + self._build_single_conditions(columns)

    def _build_single_conditions(self, columns: Mapping[str, ColumnElement[Any]]) -> list[ColumnElement[bool]]:
        """Return the conditions of the filters that are alone in their sort."""
        conditions: list[ColumnElement[bool]] = []
        if self.min_f2p is not None:
            conditions.append(columns["n_fail_to_pass"] >= self.min_f2p)
        if self.created is not None:
            conditions += _match_dates(columns["created_at"], self.created)
        if self.difficulty is not None:
            conditions.append(_match_pass_rate(columns["difficulty"], self.difficulty))
        if self.controlled:
            conditions.append(
                or_(
                    columns["kind"].not_in(LIST_KINDS),
                    columns["control_bound"] < 1,
                    columns["environment"] == "imported",
                )
            )
        for name, limit in (("underspecified", self.max_underspecified), ("unfair_tests", self.max_unfair)):
            if limit is not None:
                conditions.append(or_(columns[name].is_(None), columns[name] <= limit))
        if self.where is not None:
            conditions.append(_compile_where(self.where, columns))
        if self.ids is not None:
            conditions.append(columns["id"].in_(select_words(self.ids)))
        if self.excluded_ids:
            conditions.append(columns["id"].not_in(select_words(self.excluded_ids)))
        return conditions

    def merge(self, other: Self) -> Self:
        """Return these filters with those that `other` sets."""
        defaults = TaskFilters()
        given = {f.name: getattr(other, f.name) for f in fields(self)}
        return replace(self, **{name: value for name, value in given.items() if value != getattr(defaults, name)})


def keep_queries(build: Callable[..., Select[Any]]) -> Callable[..., Select[Any]]:
    """Return a function of filters and more that keeps the queries it builds, but for filters that hold many ids.

    Building a query takes as long as reading a page of a list.
    """
    kept = lru_cache(maxsize=128)(build)

    @wraps(build)
    def choose(filters: TaskFilters, *further: Any) -> Select[Any]:
        has_ids = filters.ids is not None or filters.excluded_ids
        return build(filters, *further) if has_ids else kept(filters, *further)

    return choose


def _compile_where(text: str, columns: Mapping[str, ColumnElement[Any]]) -> ColumnElement[bool]:
    # Loads sqlglot, which few commands need.
    from taskdb.queries.where import compile_where  # noqa: PLC0415

    return compile_where(text, columns)


def _as_words(value: Words | str | None) -> Words | None:
    return (value,) if isinstance(value, str) else value


def _match_words(name: str, words: Words, columns: Mapping[str, ColumnElement[Any]]) -> ColumnElement[bool]:
    lowered = [str(word).lower() for word in words]
    if name == "change_kind":
        return columns["candidate"].in_(select(_TAGS.c.candidate).where(match_words(_TAGS.c.change_kind, lowered)))
    value = columns[name]
    if name == "audited" and NEVER in lowered:
        return or_(value.is_(None), match_words(value, lowered))
    if name == "tests" and ALL in lowered:
        return true()
    if WORD_FILTERS[name].is_list:
        return _match_lists(value, lowered)
    # Values of the other columns are lower-case, so that their indices are used.
    value = func.lower(value) if WORD_FILTERS[name].has_mixed_case else value
    return match_words(value, lowered)


def _match_lists(value: ColumnElement[Any], words: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a list of words has any of some words; `none` stands for an empty or absent list."""
    listed = literal(",").concat(func.lower(func.coalesce(value, ""))).concat(",")
    escaped = ("" if word == NEVER else re.sub(r"[/%_]", r"/\g<0>", word) for word in words)
    word = select_words(escaped).subquery().c.value
    return exists().where(listed.like(literal("%,").concat(word).concat(",%"), escape="/"))


def _match_bounds(value: ColumnElement[Any], bounds: Range) -> list[ColumnElement[bool]]:
    lowest = [value >= _simplify_number(bounds.low)] if bounds.low is not None else []
    highest = [value <= _simplify_number(bounds.high)] if bounds.high is not None else []
    return [*lowest, *highest] or [value.is_not(None)]


def _simplify_number(number: float) -> float:
    """Return a whole number as `int`: for a bound of another type PostgreSQL takes a third of the rows to match."""
    return int(number) if float(number).is_integer() and abs(number) <= _MOST_INTEGER else float(number)


_MOST_INTEGER = 2**31 - 1
"""Largest value of an integer column on PostgreSQL."""


def _match_dates(value: ColumnElement[Any], bounds: DateRange) -> list[ColumnElement[bool]]:
    first = [value >= bounds.first] if bounds.first is not None else []
    return [*first, *([value < bounds.end] if bounds.end is not None else [])]


def _match_pass_rate(value: ColumnElement[Any], wanted: PassRate) -> ColumnElement[bool]:
    pairs = JsonPairs(value).table_valued(column("key", String()), column("value", String()))
    passed, tried = (JsonNumber(pairs.c.value, literal(key, String())) for key in ("c", "n"))
    rate = passed * 1.0 / func.nullif(tried, 0)
    query = select(literal(1)).select_from(pairs).where(*_match_bounds(rate, wanted.rate))
    if wanted.model is not None:
        query = query.where(func.lower(pairs.c.key) == wanted.model.lower())
    return query.exists()


# ------------------------------------------------------------------------------------------------ text of filters


@dataclass(frozen=True)
class FilterField:
    """A filter as an option or a query parameter."""

    name: str
    """Of the option, with underscores."""
    metavar: str
    help: str
    parse: Callable[[str, str], dict[str, Any]]
    """Option name and text -> fields of `TaskFilters`."""
    panel: str = "Filters"


def parse_filters(given: Mapping[str, str | Sequence[str] | int | None]) -> TaskFilters:
    """Return the filters of options or query parameters.

    Args:
        given: name of a filter, with hyphens or underscores -> its text; several texts are joined by commas, None
            stands for an absent value.

    Raises:
        UsageError: there is no such filter, or a text is not any of its values.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        option = name.replace("-", "_")
        if value is None:
            continue
        if option not in FILTERS:
            raise UsageError(f"there is no filter {name!r}", advice=f"filters: {', '.join(FILTERS)}")
        text = ",".join(value) if isinstance(value, list | tuple) else str(value)
        for field, parsed in FILTERS[option].parse(option, text).items():
            values[field] = _intersect_dates(values.get(field), parsed)
    return TaskFilters(**values)


def _intersect_dates(known: Any, parsed: Any) -> Any:
    """Return the intersection of `--since` and `--until`; other values replace each other."""
    if not (isinstance(known, DateRange) and isinstance(parsed, DateRange)):
        return parsed
    starts = [bounds.first for bounds in (known, parsed) if bounds.first is not None]
    ends = [bounds.end for bounds in (known, parsed) if bounds.end is not None]
    return DateRange(max(starts, default=None), min(ends, default=None))


def split_words(text: str) -> Words:
    """Return the words between the commas of a text."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def parse_range(option: str, text: str) -> Range:
    """Parse `LO:HI`, `LO:`, `:HI` or one number.

    Raises:
        UsageError: it is none of these, or the low end is above the high end.
    """
    low, colon, high = text.strip().partition(":")
    try:
        bounds = Range(*(float(bound) if bound.strip() else None for bound in (low, high if colon else low)))
    except ValueError:
        bounds = Range(math.nan, math.nan)
    numbers = [bound for bound in bounds if bound is not None]
    if not numbers or not all(math.isfinite(number) for number in numbers) or numbers != sorted(numbers):
        raise _build_error(option, text, "LO:HI, where one end may be missing")
    return bounds


def _parse_words(option: str, text: str) -> dict[str, Any]:
    words = split_words(text)
    choices = WORD_FILTERS[option].choices if option in WORD_FILTERS else ()
    if not words:
        raise _build_error(option, text, "NAME[,NAME]")
    if choices and (unknown := [word for word in words if word.lower() not in choices]):
        raise _build_error(option, unknown[0], f"one of {', '.join(choices)}")
    return {option: words}


def _parse_numbers(option: str, text: str) -> dict[str, Any]:
    return {option: parse_range(option, text)}


def _parse_number(option: str, text: str) -> dict[str, Any]:
    lowest = 0 if option == "min_f2p" else 1
    if not re.fullmatch(r"\d{1,15}", text.strip()) or int(text) < lowest:
        raise _build_error(option, text, f"a whole number from {lowest}")
    return {option: int(text)}


def _parse_text(option: str, text: str) -> dict[str, Any]:
    return {option: text}


def _parse_where(option: str, text: str) -> dict[str, Any]:
    _compile_where(text, dict(TASKS.c))
    return {option: text}


def _parse_names(_option: str, text: str) -> dict[str, Any]:
    return {"named": split_words(text)}


def _parse_difficulty(option: str, text: str) -> dict[str, Any]:
    model, _, bounds = text.rpartition(":")
    model, _, low = model.rpartition(":")
    return {option: PassRate(model or None, parse_range(option, f"{low}:{bounds}"))}


def _parse_allocation(option: str, text: str) -> dict[str, Any]:
    if text not in list(Allocation):
        raise _build_error(option, text, " or ".join(Allocation))
    return {option: Allocation(text)}


def _parse_strata(option: str, text: str) -> dict[str, Any]:
    words = split_words(text)
    for word in words:
        if word not in STRATA:
            raise _build_error(option, word, f"one of {', '.join(STRATA)}")
    return {option: words}


def _parse_since(option: str, text: str) -> dict[str, Any]:
    return {"created": DateRange(_parse_date(option, text)[0], None)}


def _parse_until(option: str, text: str) -> dict[str, Any]:
    return {"created": DateRange(None, _parse_date(option, text)[1])}


def _parse_created(option: str, text: str) -> dict[str, Any]:
    low, colon, high = text.strip().partition(":")
    if not (low or high):
        raise _build_error(option, text, "DATE:DATE, where one end may be missing")
    first = _parse_date(option, low)[0] if low else None
    end = _parse_date(option, high if colon else low)[1] if high or not colon else None
    return {option: DateRange(first, end)}


def _parse_date(option: str, text: str) -> tuple[str, str]:
    """Return the first day of a date, a month or a year, and the day after its last day."""
    try:
        parts = [int(part) for part in text.strip().split("-")]
        first = date(*[*parts, 1, 1][:3])
        after = {1: first.replace(year=first.year + 1)} if len(parts) == 1 else {}
        after[2] = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
        after[3] = first + timedelta(days=1)
        return first.isoformat(), after[len(parts)].isoformat()
    except (ValueError, KeyError, OverflowError, TypeError):
        raise _build_error(option, text, "a date such as 2024-03-01, 2024-03 or 2024") from None


def _build_error(option: str, text: str, wanted: str) -> UsageError:
    return UsageError(f"--{option.replace('_', '-')}: {text[:80]!r} is not {wanted}")


STRATA = (
    "repo",
    "language",
    "kind",
    "change_kind",
    "status",
    "license",
    "source",
    "split",
    "audited",
    "family",
    "operators",
    "year",
)
"""Columns by which a sample is stratified; `year`: that of `created_at`."""
CAPPED = ("edit_group", "failing_set", "functions", "family", "operators", "repo")
"""Columns by which selected tasks can be limited, in the order in which the limits are applied.

A task without a value is a group of its own. Functions of different repositories are different.
"""
SAMPLING = "Sampling"


def _list_fields(
    declared: Mapping[str, ColumnFilter], parse: Callable[[str, str], dict[str, Any]], panel: str
) -> Iterator[FilterField]:
    """Yield the filters over columns that stand below a heading of help."""
    for name, option in declared.items():
        if option.panel == panel:
            yield FilterField(name, option.metavar, option.help, parse, panel)


_LIST = (
    *_list_fields(WORD_FILTERS, _parse_words, COMMON),
    FilterField("where", "SQL", "Select by an SQL expression over the columns of view `tasks`.", _parse_where, COMMON),
    FilterField("selection", "NAME", "Use the filters of this saved selection.", _parse_text, COMMON),
    FilterField("created", "DATE:DATE", "Select tasks of changes between these days, months or years.", _parse_created),
    *_list_fields(RANGE_FILTERS, _parse_numbers, COMMON),
    FilterField("difficulty", "[MODEL/SCAFFOLD:]LO:HI", "Select by the pass rate of rollouts.", _parse_difficulty),
    *_list_fields(WORD_FILTERS, _parse_words, MORE),
    FilterField("min_f2p", "N", "Select tasks with at least N FAIL_TO_PASS tests.", _parse_number, MORE),
    FilterField("since", "DATE", "Select tasks of changes from this day on.", _parse_since, MORE),
    FilterField("until", "DATE", "Select tasks of changes up to this day.", _parse_until, MORE),
    *_list_fields(RANGE_FILTERS, _parse_numbers, MORE),
    FilterField("ids", "ID[,ID]", "Select these tasks: ids, beginnings of ids or names.", _parse_names, MORE),
    FilterField(
        "decontaminated", "LIST[,LIST]", "Exclude changes that are in these benchmark lists.", _parse_words, MORE
    ),
    FilterField("sample", "N", "Select N of the matching tasks at random.", _parse_number, SAMPLING),
    FilterField(
        "seed", "TEXT", "Seed of the sample; the same seed selects the same tasks. Default: 0.", _parse_text, SAMPLING
    ),
    FilterField("stratify", "COLUMN[,...]", "Sample from each value of these columns.", _parse_strata, SAMPLING),
    FilterField(
        "allocate", "proportional|equal", "Tasks of each stratum. Default: proportional.", _parse_allocation, SAMPLING
    ),
    FilterField("per_repo", "N", "Select at most N tasks of one repository.", _parse_number, SAMPLING),
    FilterField("per_family", "N", "Select at most N tasks of one family.", _parse_number, SAMPLING),
    FilterField(
        "per_functions", "N", "Select at most N tasks that change the same functions.", _parse_number, SAMPLING
    ),
    FilterField(
        "per_operators", "N", "Select at most N tasks with bugs of the same operators.", _parse_number, SAMPLING
    ),
    FilterField(
        "per_edit_group",
        "N",
        "Select at most N tasks that change the same functions by the same operators.",
        _parse_number,
        SAMPLING,
    ),
    FilterField(
        "per_failing_set", "N", "Select at most N tasks with the same FAIL_TO_PASS tests.", _parse_number, SAMPLING
    ),
)
FILTERS: Mapping[str, FilterField] = {option.name: option for option in _LIST}
"""All filters, in the order in which help lists them."""


def format_filters(filters: TaskFilters) -> dict[str, str]:
    """Return the texts from which `parse_filters` makes the same filters."""
    texts: dict[str, str] = {}
    for field in fields(filters):
        value = getattr(filters, field.name)
        if value == field.default:
            continue
        if isinstance(value, DateRange):
            last = (date.fromisoformat(value.end) - timedelta(days=1)).isoformat() if value.end else ""
            texts[field.name] = f"{value.first or ''}:{last}"
        elif isinstance(value, Range):
            texts[field.name] = value.format()
        elif isinstance(value, PassRate):
            texts[field.name] = f"{value.model + ':' if value.model else ''}{value.rate.format()}"
        else:
            name = "ids" if field.name in ("named", "ids") else field.name
            texts[name] = ",".join(value) if isinstance(value, tuple) else str(value)
    return texts


def check_columns(names: Sequence[str]) -> Words:
    """Return the names of columns, each once.

    Raises:
        UsageError: there is no column of a name.
    """
    for name in names:
        if name not in TASK_COLUMNS:
            raise UsageError(f"there is no column {name!r}", advice=f"columns: {', '.join(TASK_COLUMNS)}")
    return tuple(dict.fromkeys(names))
