"""Blurs that a program decides on: whether a wording covers a date, a number or a place, and is less exact."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from explorers.answering.values import DateValue, fold, parse_date, parse_number
from explorers.search.tokens import normalize_text

ROUNDING = 0.1
"""Relative difference that `about` allows."""
_LEADING = re.compile(r"^(?:in|during|from|of|sometime in|at some time in)\s+")
_DECADE = re.compile(r"(?:the )?(?:(early|mid|middle|late)[- ])?(?:the )?(\d{3}0)s")
_CENTURY = re.compile(r"(?:the )?(?:(first|second) half of the )?(\d{1,2})(?:st|nd|rd|th)[- ]century")
_CHINESE = re.compile(r"(\d{1,2})世纪(?:(\d)0年代)?")
_PARTS = {"early": (0, 4), "mid": (3, 7), "middle": (3, 7), "late": (5, 9)}
_BETWEEN = re.compile(r"(?:between|from) (.+?) (?:and|to) (.+)|(\d{4})\s?[-\u2013]\s?(\d{4})")
_BOUND = re.compile(
    r"(?:(?P<less>before|until|fewer than|less than|under|below|at most|不到|少于)"
    r"|(?P<more>after|since|more than|over|above|at least|超过|多于))\s*(?P<value>.+)"
)
_ABOUT = re.compile(r"(?:about|around|roughly|approximately|some|nearly|大约|约)\s*(.+)")
_WORDS = {
    "dozens": (24, 199),
    "hundreds": (100, 1999),
    "thousands": (1000, 19_999),
    "数百": (100, 1999),
    "数千": (1000, 19_999),
}
_INFINITY = float("inf")


@dataclass(frozen=True)
class ValueRange:
    """Numbers from `low` to `high`, both included; dates are years."""

    low: float
    high: float


def check_blur(entity: str, value: str, places: Mapping[str, str]) -> bool | None:
    """Return whether a wording is true of an entity and less exact; None where a judge has to decide.

    Args:
        entity: date, number or place that the wording stands for.
        value: the wording, such as `the 1970s`.
        places: place -> larger place, names as `normalize_text` returns them.
    """
    inner, outer = normalize_text(entity).strip(), normalize_text(value).strip()
    if inner in places and (outer in places or outer in places.values()):
        return outer in list_larger_places(inner, places)
    date, number = parse_date(entity), parse_number(entity)
    if date is None and number is None:
        return None
    span = parse_range(value)
    if span is None:
        return _check_shorter_date(date, value)
    if span.low >= span.high:
        return False
    point = float(date.year) if date is not None else number
    return point is not None and span.low <= point <= span.high


def list_larger_places(place: str, places: Mapping[str, str]) -> list[str]:
    """Return the places that a place lies in, the nearest first."""
    larger: list[str] = []
    while (place := places.get(place, "")) and place not in larger:
        larger.append(place)
    return larger


def _check_shorter_date(date: DateValue | None, value: str) -> bool | None:
    """Return whether a wording is the month or year of a date; None where it is no date."""
    wider = parse_date(_LEADING.sub("", fold(value)))
    if date is None or wider is None:
        return None
    if wider.month == 0:
        return date.month > 0 and wider.year == date.year
    return wider.day == 0 and date.day > 0 and (wider.year, wider.month) == (date.year, date.month)


def parse_range(value: str) -> ValueRange | None:
    """Return the range that a wording stands for, such as `the late 1970s` or `more than 100`; None for others."""
    text = _LEADING.sub("", normalize_text(fold(value)))
    if text in _WORDS:
        return ValueRange(*_WORDS[text])
    if match := _DECADE.fullmatch(text):
        first, last = _PARTS.get(match[1] or "", (0, 9))
        return ValueRange(int(match[2]) + first, int(match[2]) + last)
    if match := _CENTURY.fullmatch(text):
        start = (int(match[2]) - 1) * 100
        first, last = {"first": (0, 50), "second": (50, 100)}.get(match[1] or "", (0, 100))
        return ValueRange(start + first, start + last)
    if match := _CHINESE.fullmatch(text):
        start = (int(match[1]) - 1) * 100
        return (
            ValueRange(start + int(match[2]) * 10, start + int(match[2]) * 10 + 9)
            if match[2]
            else ValueRange(start, start + 100)
        )
    return _parse_bounds(text)


def _parse_bounds(text: str) -> ValueRange | None:
    if match := _BETWEEN.fullmatch(text):
        low, high = _read_point(match[1] or match[3]), _read_point(match[2] or match[4])
        return ValueRange(low, high) if low is not None and high is not None else None
    if match := _BOUND.fullmatch(text):
        bound = _read_point(match["value"])
        if bound is None:
            return None
        return ValueRange(-_INFINITY, bound) if match["less"] else ValueRange(bound, _INFINITY)
    if match := _ABOUT.fullmatch(text):
        middle = parse_number(match[1])
        spread = None if middle is None else abs(middle) * ROUNDING
        return None if middle is None or spread is None else ValueRange(middle - spread, middle + spread)
    return None


def _read_point(text: str) -> float | None:
    number = parse_number(text)
    date = parse_date(text)
    return float(date.year) if date is not None else number
