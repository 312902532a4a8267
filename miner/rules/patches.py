"""Rules on what the two patches are and do."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from languages.paths import is_protected, is_source, is_test_file
from languages.registry import all_languages, family, language_of, language_of_file
from mergemill.config import Settings
from miner.changes import Change, FileChange, Unparsable
from miner.python_code import Sameness, sameness
from miner.rules.files import is_for_speed_alone

MAX_TESTS_LOST = 4
"""So many tests may go beyond those that come: suites are also tidied up."""

_VERSION_LINE = re.compile(
    r"^\s*([\"']?\w*(version|release)\w*[\"']?\s*(:\s*\w+\s*)?[=:]\s*[\"'(\[]*v?\d[\w.,\s\"'+-]*[)\]]?,?\s*)?(#.*)?$",
    re.IGNORECASE,
)
"""An assignment of a literal version, a comment or a blank line."""
_CONFLICT = re.compile(r"^(<{7}|>{7}|\|{7}) \S")
_TEST = re.compile(r"^\s*(async\s+)?def test")
_UNMARKED = re.compile(r"\b(xfail|skip|skipif|expectedFailure|importorskip|todo)\b", re.IGNORECASE)


def can_be_taken_apart(change: Change, _: Settings) -> str | None:
    """Git's diff and unidiff's reading of it agree, and both sides hold something, where both are asked for."""
    try:
        split = change.split
    except Unparsable as fault:
        return str(fault)
    if not split.gold.files:
        return "the gold patch is empty"
    return None if split.test.files or is_for_speed_alone(change) else "the test patch is empty"


def small_enough(change: Change, settings: Settings) -> str | None:
    """At most `max_gold_lines` and `max_test_lines` changed lines, and `max_patch_kb` of text (binary files)."""
    sides = (("gold", change.split.gold, settings.max_gold_lines), ("test", change.split.test, settings.max_test_lines))
    for side, patch, most in sides:
        if patch.lines > most:
            return f"{patch.lines} {side} lines, {most} allowed"
        if (size := len(patch.text) // 1024) > settings.max_patch_kb:
            return f"the {side} patch has {size} KB, {settings.max_patch_kb} allowed"
    return None


def has_no_conflict_markers(change: Change, _: Settings) -> str | None:
    """Nobody merged the marks of an unresolved conflict."""
    for patch in (change.split.gold, change.split.test):
        for path, text, added in patch.changed:
            if added and _CONFLICT.match(text):
                return f"{path} gains {text[:20].strip()!r}"
    return None


def is_mostly_in_its_language(change: Change, settings: Settings) -> str | None:
    """At least `min_language_share` of the gold patch's program lines are in its language or one of its family.

    Documentation is not counted.
    """
    own = language_of_change(change)
    lines = [name for line in change.split.gold.changed if (name := language_of_file(line.path))]
    share = sum(name in family(own) for name in lines) / len(lines) if lines else 1.0
    if share >= settings.min_language_share:
        return None
    return f"{share:.0%} of its program lines are {own}, {settings.min_language_share:.0%} are asked for"


def language_of_change(change: Change) -> str:
    """The language of the project that a change is about: of its sources, else of all it touches, else of its tree.

    A published change may be of data alone: the program that reads them is tested.
    """
    sources = [path for path in change.split.gold.files if is_source(path)]
    return language_of(sources) or language_of(change.paths) or _language_of_tree(change) or "python"


def _language_of_tree(change: Change) -> str:
    return language_of(path for path in change.tree if language_of_file(path) in all_languages())


def changes_more_than_a_version(change: Change, _: Settings) -> str | None:
    """The source lines changed are not all of them about a version number."""
    lines = [line.text for line in change.split.gold.changed if is_source(line.path)]
    if lines and len(lines) <= 4 and all(_VERSION_LINE.search(line) for line in lines):
        about = any(line.strip() and not line.strip().startswith("#") for line in lines)
        return "only a version number changes" if about else None
    return None


def does_more_than_move(change: Change, _: Settings) -> str | None:
    """A line of its sources changes: nobody could guess where a file is to be moved."""
    if any(is_source(line.path) for line in change.split.gold.changed):
        return None
    sources = _sources(change)
    if not sources or any(file.status in "AD" for file in sources):
        return None  # an empty file came or went
    return "its sources are only moved, or change their mode"


def changes_code(change: Change, _: Settings) -> str | None:
    """The sources' syntax trees change: more than comments and layout."""
    if _same(change, _sources(change), at_most=Sameness.LAYOUT):
        return "only comments and layout of its sources change"
    return None


def changes_more_than_docstrings(change: Change, _: Settings) -> str | None:
    """The sources' syntax trees change, docstrings aside."""
    return "only docstrings of its sources change" if _same(change, _sources(change)) else None


def tests_change(change: Change, _: Settings) -> str | None:
    """The tests' syntax trees or their data change: otherwise nothing could fail before and pass after."""
    tests = [file for file in change.files if any(map(is_protected, file.paths))]
    return "the code of the tests stays as it is" if _same(change, tests) else None


def keeps_tests(change: Change, _: Settings) -> str | None:
    """A test line is added (or a skip taken away), and not many more tests go than come."""
    lines = [line for line in change.split.test.changed if is_test_file(line.path)]
    came, went = (sum(_TEST.match(text) is not None for _, text, added in lines if added is which) for which in (1, 0))
    if went - came > MAX_TESTS_LOST:
        return f"{went} tests go, {came} come"
    if lines and not any(line.added or _UNMARKED.search(line.text) for line in lines):
        return "test lines are only taken away"
    return None


def patches_make_the_merge(change: Change, _: Settings) -> str | None:
    """Applying both patches to the base gives the merge's tree, byte for byte."""
    return change.split.fault or None


def _sources(change: Change) -> list[FileChange]:
    """Its program files on the gold side."""
    return [file for file in change.files if any(map(is_source, file.paths)) and not is_protected(file.new_path)]


def _same(change: Change, files: list[FileChange], at_most: Sameness = Sameness.DOCSTRINGS) -> bool:
    """Whether all of these are Python files whose code stays as it is."""
    if not files or any(file.status != "M" or _suffix(file.new_path) != ".py" for file in files):
        return False
    return all(sameness(change.content(file, before=True), change.content(file)) <= at_most for file in files)


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()
