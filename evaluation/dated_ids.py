"""Ids of tests with a date of the run: tomorrow's run gives the test another id, so it belongs in no list.

A date in an id counts where it is near the day of the run and the test's source does not hold it. The day of the run is
that of the clock in the container of the tests, in any time zone; the day to which packages are pinned plays no part.
"""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from backends.git import GitError
from backends.index import ScratchIndex
from evaluation.lists import OutcomeLists, make_lists
from evaluation.runner.evaluator import EvaluationRun
from evaluation.weak_tests.find import MAX_FILE_BYTES, TreeSource
from evaluation.weak_tests.source import parse_file
from languages.lines import LineSyntax
from languages.paths import is_test_path
from taskdb.records import TestId

MAX_FILES = 200
"""Files read in place of a test's own, where its id names no file."""

_MONTHS = [
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
]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH = r"(?P<month>" + "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + "|sept)"
# Between the parts of a date: `-`, `/`, `, `, and in sources `Month.` or `time.`, too.
_SEPARATOR = r"(?:[^\w\n]{1,4}|[_年月])(?:[A-Za-z]\w*\.)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
# Each is a lookahead, so that matches may overlap: of `1-11-28-2026` the last three numbers are a date.
_NUMERIC_DATES = tuple(
    re.compile(rf"(?<!\d)(?={pattern}(?!\d))")
    for pattern in (
        rf"{_YEAR}{_SEPARATOR}(?P<month>\d{{1,2}}){_SEPARATOR}(?P<day>\d{{1,2}})(?:T\d{{2,6}})?",
        rf"(?P<day>\d{{1,2}}){_SEPARATOR}(?P<month>\d{{1,2}}){_SEPARATOR}{_YEAR}",
        rf"(?P<month>\d{{1,2}}){_SEPARATOR}(?P<day>\d{{1,2}}){_SEPARATOR}{_YEAR}",
        r"(?P<year>\d\d)([-/._])(?P<month>\d\d)\2(?P<day>\d\d)",
        r"(?P<day>\d\d)([-/._])(?P<month>\d\d)\2(?P<year>\d\d)",
        r"(?P<month>\d\d)([-/._])(?P<day>\d\d)\2(?P<year>\d\d)",
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)(?:T?\d{4}|T?\d{6}|\d{9}|\d{12})?",
        r"(?P<day>\d\d)(?P<month>\d\d)(?P<year>\d{4})",
        r"(?P<month>\d\d)(?P<day>\d\d)(?P<year>\d{4})",
        r"(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d)",
        r"(?P<day>\d\d)(?P<month>\d\d)(?P<year>\d\d)",
        r"(?P<month>\d\d)(?P<day>\d\d)(?P<year>\d\d)",
    )
)
_FILLER = r"(?:[^\w\n]{0,4}|_)(?:of[ _])?(?:[A-Za-z]\w*\.)?"
_NAMED_DATES = tuple(
    re.compile(rf"(?<![^\W_])(?={pattern}(?![^\W_]))", re.IGNORECASE)
    for pattern in (
        rf"{_DAY}{_FILLER}{_MONTH}{_FILLER}{_YEAR}",
        rf"{_MONTH}{_FILLER}{_DAY}{_FILLER}{_YEAR}",
        rf"{_YEAR}{_FILLER}{_MONTH}{_FILLER}{_DAY}",
    )
)
_NAMED_DAYS = tuple(
    re.compile(rf"(?<![^\W_])(?={pattern}(?![^\W_]))", re.IGNORECASE)
    for pattern in (rf"{_DAY}{_FILLER}{_MONTH}", rf"{_MONTH}{_FILLER}{_DAY}")
)
_SLASHED_DAYS = tuple(
    re.compile(rf"(?<![\d/])(?={pattern}(?![\d/]))")
    for pattern in (
        r"(?P<day>\d\d)/(?P<month>\d\d)",
        r"(?P<month>\d\d)/(?P<day>\d\d)",
        r"(?P<day>\d\d)\.(?P<month>\d\d)\.",
    )
)
_MONTHS_OF_YEARS = (
    re.compile(rf"(?<!\d)(?={_YEAR}[-/._ ]?(?P<month>0[1-9]|1[0-2])(?!\d|[-/._]\d))"),
    re.compile(rf"(?<![\d/.-])(?=(?P<month>0?[1-9]|1[0-2])[-/._]{_YEAR}(?!\d))"),
    re.compile(rf"(?<![^\W_])(?={_MONTH}{_FILLER}{_YEAR}(?!\d))", re.IGNORECASE),
    re.compile(rf"(?<!\d)(?={_YEAR}{_FILLER}{_MONTH}(?![^\W_]))", re.IGNORECASE),
)
_WEEK = re.compile(
    r"(?<![^\W_])(?:(?P<year>\d{4})[-_ ]?)?(?:K?W|[Ww]eek|WEEK)[-_ ]?(?P<week>\d{1,2})(?:-?[1-7])?(?![^\W_])"
)
_ORDINAL = re.compile(r"(?<!\d)(?P<year>\d{4})[-.]?(?P<ordinal>\d{3})(?!\d)")
_EPOCH = re.compile(r"(?<!\d)(?P<seconds>\d{10})(?:\d{3}|\d{6}|\d{9})?(?!\d)")
_ANY_YEAR = re.compile(
    r"(?<!\d)(?:(?:[0-3]\d[01]\d|[01]\d[0-3]\d)?(20\d\d)|(20\d\d)(?:0[1-9]|1[0-2])(?:[0-3]\d(?:\d{4}|\d{6})?)?)(?!\d)"
)
_OTHER_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![\d.])0\.\d+(?![.\d])")
_YEAR_RANGE = re.compile(
    r"(?i:range|seq|between)\W{1,3}((?:19|20)\d\d)\W{1,4}(20\d\d)(?!\d)"
    r"|(?<!\d)((?:19|20)\d\d)(?:\s*(?:\.\.[.=<]?|:)\s*|\s+(?:to|until|through)\s+|\.(?:to|upto)\W|;[^\d\n]{1,12}<=?\s*)(20\d\d)(?!\d)"
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_WORD = re.compile(r"[^\W\d_]{4,}")


def extract_dates(text: str, *, is_source: bool = False) -> set[date]:
    """Return the dates in a text, in any usual notation and each possible order of its numbers.

    Args:
        text: text of an id or of a source.
        is_source: whether months may count from 0, as those of JavaScript do.
    """
    dates = set()
    for pattern in (*_NUMERIC_DATES, *_NAMED_DATES):
        for match in pattern.finditer(text):
            month = _parse_month(match["month"])
            for number in (month, month + 1) if is_source and match["month"].isdigit() else (month,):
                if (day := _make_date(int(match["year"]), number, int(match["day"]))) is not None:
                    dates.add(day)
    return dates


def _parse_month(text: str) -> int:
    names = [name[:3] for name in _MONTHS]
    return int(text) if text.isdigit() else names.index(text[:3].lower()) + 1


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year + 2000 if year < 100 else year, month, day)
    except ValueError:
        return None


def _extract_days(text: str) -> set[tuple[int, int]]:
    """Return the days without a year in a text, as (month, day)."""
    patterns = (*_NAMED_DAYS, *_SLASHED_DAYS)
    return {(_parse_month(match["month"]), int(match["day"])) for p in patterns for match in p.finditer(text)}


def _extract_months(text: str) -> set[tuple[int, int]]:
    """Return the months of a year in a text, as (year, month)."""
    return {(int(match["year"]), _parse_month(match["month"])) for p in _MONTHS_OF_YEARS for match in p.finditer(text)}


def _extract_weeks(text: str) -> set[tuple[int | None, int]]:
    """Return the weeks in a text, as (ISO year or None, week)."""
    return {(int(match["year"]) if match["year"] else None, int(match["week"])) for match in _WEEK.finditer(text)}


def _extract_years(text: str) -> set[int]:
    return {int(match[1] or match[2]) for match in _ANY_YEAR.finditer(_OTHER_NUMBER.sub(" ", text))}


@dataclass(frozen=True)
class SourceDates:
    """Dates in a test's source. `code`: the source without comments."""

    code: str

    @cached_property
    def dates(self) -> set[date]:
        """Its dates, with all orders of their numbers."""
        return extract_dates(self.code, is_source=True)

    @cached_property
    def days(self) -> set[tuple[int, int]]:
        """Its days, as (month, day)."""
        return _extract_days(self.code) | {(day.month, day.day) for day in self.dates}

    @cached_property
    def months(self) -> set[tuple[int, int]]:
        """Its months, as (year, month)."""
        return _extract_months(self.code) | {(day.year, day.month) for day in self.dates}

    @cached_property
    def words(self) -> set[str]:
        """Its words, and the names of its months and of the weekdays of its dates, in lower case."""
        months = {_MONTHS[month - 1] for month, _ in self.days} | {_MONTHS[month - 1] for _, month in self.months}
        weekdays = {_WEEKDAYS[day.weekday()] for day in self.dates}
        return {word.lower() for word in _WORD.findall(self.code)} | months | weekdays

    @cached_property
    def years(self) -> set[int]:
        """Its years, and those of ranges such as `range(2020, 2026)`."""
        ranges = [(int(match[1] or match[3]), int(match[2] or match[4])) for match in _YEAR_RANGE.finditer(self.code)]
        between = {year for first, last in ranges for year in range(first, last + 1)}
        return _extract_years(self.code) | between


@dataclass(frozen=True)
class RunDays:
    """Days on which tests ran, and the dates that their ids might hold."""

    days: Collection[date]

    @cached_property
    def near(self) -> set[date]:
        """The days, and those before and after them: elsewhere it is yesterday or tomorrow."""
        return {day + timedelta(days=shift) for day in self.days for shift in (-1, 0, 1)}

    @cached_property
    def dates(self) -> set[date]:
        """Near days, and the same of last and next year."""
        moved = (_make_date(day.year + shift, day.month, day.day) for day in self.near for shift in (-1, 1))
        return self.near | {day for day in moved if day is not None}

    @cached_property
    def years(self) -> set[int]:
        """The years of the days, the last and the next ones."""
        return {day.year + shift for day in self.near for shift in (-1, 0, 1)}

    @cached_property
    def possible(self) -> re.Pattern[str]:
        """Matches every name with a date of the run, and few others: of a suite most names have none."""
        days = (f"{day.day:02}" for day in self.near)
        names = (name[:3] for name in (*_MONTHS, *_WEEKDAYS))
        return re.compile("|".join([*map(str, self.years), *days, *names, r"W\d", r"week", r"\d{10}"]), re.IGNORECASE)

    def find(self, name: str, source: SourceDates) -> str:
        """Return the date in a test's name that its source does not hold, as text; empty for none."""
        return next((text for text in self._iterate_dates(name, source)), "")

    def _iterate_dates(self, name: str, source: SourceDates) -> Iterator[str]:
        yield from (day.isoformat() for day in sorted((extract_dates(name) & self.dates) - source.dates))
        held = {day.year for day in extract_dates(name) & source.dates} | source.years
        yield from (f"the year {year}" for year in sorted((_extract_years(name) & self.years) - held))
        months = {(day.year, day.month) for day in self.dates}
        yield from (f"{year}-{month:02}" for year, month in sorted((_extract_months(name) & months) - source.months))
        days = {(day.month, day.day) for day in self.near}
        yield from (f"{date(2000, *day):%d %B}" for day in sorted((_extract_days(name) & days) - source.days))
        yield from self._iterate_weeks(name, source)
        yield from self._iterate_numbers(name, source)

    def _iterate_weeks(self, name: str, source: SourceDates) -> Iterator[str]:
        near = {day.isocalendar()[:2] for day in self.dates}
        held = _extract_weeks(source.code)
        held |= {(year, week) for day in source.dates for year, week, _ in (day.isocalendar(),)}
        for year, week in _extract_weeks(name):
            is_near = (year, week) in near if year else any(week == number for _, number in near)
            if is_near and not any(week == number and year in (None, other) for other, number in held):
                yield f"week {week}"

    def _iterate_numbers(self, name: str, source: SourceDates) -> Iterator[str]:
        """Yield ordinal dates, and times in seconds since 1970, that stand in the name and not in the source."""
        for match in (*_ORDINAL.finditer(name), *_EPOCH.finditer(name)):
            if match.re is _EPOCH:
                day = datetime.fromtimestamp(int(match["seconds"]), UTC).date()
            elif int(match["year"]) in self.years:
                day = date(int(match["year"]), 1, 1) + timedelta(days=int(match["ordinal"]) - 1)
            else:
                continue
            if day in self.dates and day not in source.dates and match.group() not in source.code:
                yield f"{match.group()} ({day.isoformat()})"

    def find_word(self, test: TestId, tests: Set[TestId], source: SourceDates) -> str:
        """Return the weekday or month of the run in a test's name; empty where its source or a table has them all."""
        near = {_WEEKDAYS[day.weekday()]: _WEEKDAYS for day in self.near}
        near |= {_MONTHS[day.month - 1]: _MONTHS for day in self.near}
        file, _, name = test.partition("::")
        for word in (match.group() for match in _WORD.finditer(name)):
            others = near.get(word.lower(), ())
            written = [match_case(other, word) for other in others]
            is_table = all(f"{file}::{name.replace(word, other)}" in tests for other in written)
            if others and not is_table and word.lower() not in source.words:
                return word
        return ""


def match_case(word: str, model: str) -> str:
    """Return a word in the case of another: lower, upper, or with a capital."""
    return word.upper() if model.isupper() else word.capitalize() if model[0].isupper() else word


def find_dated_tests(tests: Collection[TestId], days: Collection[date], tree: TreeSource) -> dict[TestId, str]:
    """Return the tests whose ids hold a date of the run that their source does not hold, each with the date.

    Args:
        tests: ids of tests.
        days: days of the runs, by the clock of the containers, in UTC.
        tree: the tree of the gold runs.
    """
    run, nothing, known = RunDays(days), SourceDates(""), frozenset(tests)
    names = {test: test.partition("::")[2] for test in tests}
    candidates = [
        test
        for test in tests
        if run.possible.search(names[test]) and (run.find(names[test], nothing) or run.find_word(test, known, nothing))
    ]
    if not candidates:
        return {}
    dated = {}
    sources, paths = read_sources({test.partition("::")[0] for test in candidates}, tree)
    stems = sorted({stem for stem in map(_get_stem, paths) if _LETTERS.search(stem) and run.find(stem, nothing)})
    for test in candidates:
        source, name = sources.get(test.partition("::")[0], nothing), names[test]
        for stem in stems:  # a test of a file, such as `report-2026-11-28.json`, has its name
            name = name.replace(stem, "")
        if text := run.find(name, source) or run.find_word(test, known, source):
            dated[test] = text
    return dated


def _get_stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def read_sources(files: Collection[str], tree: TreeSource) -> tuple[dict[str, SourceDates], Collection[str]]:
    """Return (first part of ids -> dates in its sources, paths of the tree); empty where the tree cannot be read.

    The sources of a test are its file and each `conftest.py` above it, and all test files where no file is named.
    """
    try:
        with ScratchIndex(tree.repository, tree.base) as index:
            for patch in tree.patches:
                index.apply(patch)
            paths = set(index.run_git("ls-files", "-z").decode(errors="surrogateescape").split("\0")[:-1])
            sources = {
                file: SourceDates("\n".join(_read_code(index, path) for path in _list_sources(file, paths)))
                for file in files
            }
            return sources, paths
    except GitError:
        # Patches that git cannot apply outside of the container have been applied in it.
        return {}, ()


def _list_sources(file: str, paths: Collection[str]) -> list[str]:
    if file not in paths:
        own = sorted(path for path in paths if path.startswith(f"{file}/")) or sorted(paths)
        return [path for path in own if is_test_path(path)][:MAX_FILES]
    folders = [posixpath.dirname(file)]
    while folders[-1]:
        folders.append(posixpath.dirname(folders[-1]))
    settings = (posixpath.join(folder, "conftest.py") for folder in folders)
    return [file, *(path for path in settings if path in paths and path != file)]


def _read_code(index: ScratchIndex, path: str) -> str:
    """Return a file without its comments and docstrings; empty for one that is too large."""
    content = index.read_file(path) or b""
    if len(content) > MAX_FILE_BYTES:
        return ""
    parsed = parse_file(path, content)
    if parsed is None:
        comments = re.compile(LineSyntax().comments)
        lines = content.decode(errors="replace").splitlines()
        return "\n".join(line for line in lines if not comments.match(line.lstrip()))
    blanked = bytearray(content)
    for node in parsed.nodes:
        is_docstring = node.type == "expression_statement" and [child.type for child in node.children] == ["string"]
        if "comment" in node.type or is_docstring:
            blanked[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
    return bytes(blanked).decode(errors="replace")


def make_undated_lists(
    test_only: Sequence[EvaluationRun], gold: Sequence[EvaluationRun], tree: TreeSource
) -> OutcomeLists:
    """Return the lists as `make_lists` does, without tests whose ids hold a date of the runs.

    Args:
        test_only: the repeats of the test-only run.
        gold: the repeats of the gold run.
        tree: the tree of the gold runs.
    """
    reports = [run.report for run in test_only], [run.report for run in gold]
    lists = make_lists(*reports)
    listed = [*(test for test, _ in lists.fail_to_pass), *lists.pass_to_pass]
    seconds = {run.result.started or time.time() for run in (*test_only, *gold)}
    dated = find_dated_tests(listed, {datetime.fromtimestamp(second, UTC).date() for second in seconds}, tree)
    return make_lists(*reports, dated=dated) if dated else lists
