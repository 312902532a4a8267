"""Filters of tasks as keywords, and their form as text: that of options of the command line and of query parameters."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from mergemill_client.columns import CAPPED, RANGE_FILTERS, WORD_FILTERS
from mergemill_client.errors import ClientError

NUMBER_FILTERS = ("min_f2p", "sample", *(f"per_{name}" for name in CAPPED))
DATE_FILTERS = ("created", "since", "until")
TEXT_FILTERS = ("where", "selection", "difficulty", "seed", "allocate")
LIST_FILTERS = ("ids", "stratify", "decontaminated")
FILTERS = WORD_FILTERS + RANGE_FILTERS + NUMBER_FILTERS + DATE_FILTERS + TEXT_FILTERS + LIST_FILTERS

Bounds = tuple[Optional[float], Optional[float]]


def format_filters(given: Mapping[str, Any]) -> dict[str, str]:
    """Return filters as text.

    Args:
        given: name -> text as on the command line, or a number, a date, a pair of bounds (None: open), or several
            words. None stands for an absent filter.

    Raises:
        ClientError: there is no such filter, or a value is of no such sort.
    """
    filters = {}
    for name, value in given.items():
        if name not in FILTERS:
            raise ClientError(f"there is no filter {name!r}; filters: {', '.join(FILTERS)}")
        if value is not None:
            filters[name] = _format_value(name, value)
    return filters


def _format_value(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float, dt.date)):
        return _format_bound(value)
    is_range = name in RANGE_FILTERS or name == "created"
    if is_range and isinstance(value, (tuple, list)) and len(value) == 2:
        return ":".join(_format_bound(bound) for bound in value)
    if isinstance(value, Iterable) and name in WORD_FILTERS + LIST_FILTERS:
        return ",".join(str(word) for word in value)
    raise ClientError(f"{name}: {value!r} is no value of this filter")


def _format_bound(value: Any) -> str:
    if isinstance(value, dt.datetime):
        value = value.date()
    return "" if value is None else value.isoformat() if isinstance(value, dt.date) else str(value)


def split_words(text: str) -> list[str]:
    """Return the words between the commas of a text."""
    return [word.strip() for word in text.split(",") if word.strip()]


def parse_range(name: str, text: str) -> Bounds:
    """Parse `LO:HI`, `LO:`, `:HI` or one number.

    Raises:
        ClientError: it is none of these.
    """
    low, colon, high = text.strip().partition(":")
    try:
        bounds = tuple(float(bound) if bound.strip() else None for bound in (low, high if colon else low))
    except ValueError:
        bounds = (math.nan, math.nan)
    numbers = [bound for bound in bounds if bound is not None]
    if not numbers or not all(math.isfinite(number) for number in numbers) or numbers != sorted(numbers):
        raise ClientError(f"{name}: {text[:80]!r} is not LO:HI, where one end may be missing")
    return bounds[0], bounds[1]


def parse_number(name: str, text: str) -> int:
    """Parse a whole number.

    Raises:
        ClientError: it is none.
    """
    if not text.strip().isdigit():
        raise ClientError(f"{name}: {text[:80]!r} is not a whole number")
    return int(text)


def parse_dates(filters: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the first day that `created`, `since` and `until` select, and the day after the last one.

    Raises:
        ClientError: one of them is no date.
    """
    starts, ends = [], []
    low, colon, high = filters.get("created", "").partition(":")
    for name, text in (("since", filters.get("since")), ("created", low)):
        if text:
            starts.append(_parse_date(name, text)[0])
    for name, text in (("until", filters.get("until")), ("created", high if colon else low)):
        if text:
            ends.append(_parse_date(name, text)[1])
    return max(starts, default=None), min(ends, default=None)


def _parse_date(name: str, text: str) -> tuple[str, str]:
    """Return the first day of a day, month or year, and the day after its last one."""
    try:
        parts = [int(part) for part in text.strip().split("-")]
        first = dt.date(*[*parts, 1, 1][:3])
        if len(parts) == 1:
            return first.isoformat(), first.replace(year=first.year + 1).isoformat()
        if len(parts) == 2:
            return first.isoformat(), (first.replace(day=28) + dt.timedelta(days=4)).replace(day=1).isoformat()
        if len(parts) == 3:
            return first.isoformat(), (first + dt.timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        pass
    raise ClientError(f"{name}: {text[:80]!r} is not a date such as 2024-03-01, 2024-03 or 2024")
