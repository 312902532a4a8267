"""Dates and numbers in texts, by value: `12 May 1976`, `1976-05-12` and `1976年5月12日` are the same date."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS)
_DATES = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?(?:T[\d:.+Z-]*)?"),
    re.compile(r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})"),
    re.compile(r"(?P<year>\d{4})年(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})日)?)?"),
    re.compile(rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>{_MONTH})\.?,? (?P<year>\d{{4}})"),
    re.compile(rf"(?P<name>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})"),
    re.compile(rf"(?P<name>{_MONTH})\.?,? (?P<year>\d{{4}})"),
    re.compile(r"(?P<year>1\d{3}|20\d{2})"),
)
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[, ]\d{3})+|\d+)(?:\.\d+)?")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "万": 1e4, "亿": 1e8}
_SCALED = re.compile(rf"({_NUMBER.pattern})\s*({'|'.join(_SCALES)})?")


_BEFORE, _BEHIND = r"(?<![\da-z.])", r"(?![\da-z]|\.\d|\u4ee3|\u5e74\u4ee3)"
"""A value stands alone: `1950s` and `1950\u5e74\u4ee3` are decades, and no year."""


@dataclass(frozen=True, order=True)
class DateValue:
    """A date; 0 for a month or day that is not given."""

    year: int
    month: int = 0
    day: int = 0

    def covers(self, other: DateValue) -> bool:
        """Return whether another date is this one, or a day or month of it."""
        own, theirs = (self.year, self.month, self.day), (other.year, other.month, other.day)
        return all(part in (0, their_part) for part, their_part in zip(own, theirs, strict=True))


def fold(text: str) -> str:
    """Return a text in lower case and uniform width, without blanks around it."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def parse_date(text: str) -> DateValue | None:
    """Return the date that a text is, as a whole; None where it is none."""
    folded = fold(text).strip(" .,;")
    for pattern in _DATES:
        if match := pattern.fullmatch(folded):
            parts = match.groupdict()
            month = int(parts.get("month") or 0)
            if name := parts.get("name"):
                month = 1 + next(number for number, full in enumerate(MONTHS) if full.startswith(name[:3]))
            day = int(parts.get("day") or 0)
            return DateValue(int(parts["year"]), month, day) if month <= 12 and day <= 31 else None
    return None


def parse_number(text: str) -> float | None:
    """Return the number that a text is, as a whole; None where it is none."""
    match = _SCALED.fullmatch(fold(text).strip(" .;"))
    if match is None:
        return None
    return float(re.sub("[, ]", "", match[1])) * _SCALES.get(match[2] or "", 1)


def find_dates(text: str) -> set[DateValue]:
    """Return the dates that stand in a text; a full date is no bare year."""
    folded = fold(text)
    dates: set[DateValue] = set()
    for pattern in _DATES:
        alone = rf"{_BEFORE}(?:{pattern.pattern}){_BEHIND}"
        for match in re.finditer(alone, folded):
            if date := parse_date(match[0]):
                dates.add(date)
        folded = re.sub(alone, " ; ", folded)
    return dates


def find_numbers(text: str) -> set[float]:
    """Return the numbers that stand in a text."""
    matches = re.finditer(rf"{_BEFORE}(?:{_SCALED.pattern}){_BEHIND}", fold(text))
    return {number for match in matches if (number := parse_number(match[0])) is not None}
