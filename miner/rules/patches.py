"""Rules on gold and test patch."""

from __future__ import annotations

import re
from collections.abc import Callable

from core.settings.mining import MiningSettings
from languages.code import CodeDifference
from languages.paths import is_protected, is_source, is_test_file
from languages.registry import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    detect_file_language,
    detect_language,
    find_parsed_language,
    language_family,
)
from miner.changes import Change, FileChange, UnparsablePatchError
from miner.rules.files import is_performance_only

MAX_TESTS_LOST = 4
"""How many more tests may be removed than added: test suites are also cleaned up."""

_VERSION_LINE = re.compile(
    r"^\s*([\"']?\w*(version|release)\w*[\"']?\s*(:\s*\w+\s*)?[=:]\s*[\"'(\[]*v?\d[\w.,\s\"'+-]*[)\]]?,?\s*)?(#.*)?$",
    re.IGNORECASE,
)
"""An assignment of a literal version, a comment or a blank line."""
_CONFLICT = re.compile(r"^(<{7}|>{7}|\|{7}) \S")
_TEST = re.compile(r"^\s*(async\s+)?def test")
_UNMARKED = re.compile(r"\b(xfail|skip|skipif|expectedFailure|importorskip|todo)\b", re.IGNORECASE)


def can_be_split(change: Change, _: MiningSettings) -> str | None:
    """Pass when git and unidiff parse the diff alike and no patch is empty.

    The test patch may be empty where the change is for performance only, or where a model writes the tests.
    """
    try:
        split = change.split
    except UnparsablePatchError as fault:
        return str(fault)
    if not split.gold.files:
        return "the gold patch is empty"
    is_complete = split.test.files or change.awaits_tests or is_performance_only(change)
    return None if is_complete else "the test patch is empty"


def is_small_enough(change: Change, mining: MiningSettings) -> str | None:
    """Pass with at most `max_gold_lines` and `max_test_lines` changed lines and `max_patch_kb` of text each."""
    sides = (
        ("gold", change.split.gold, mining.max_gold_lines),
        ("test", change.split.test, mining.max_test_lines),
    )
    for side, patch, most in sides:
        if patch.line_count > most:
            return f"{patch.line_count} {side} lines, {most} allowed"
        if (size := len(patch.text) // 1024) > mining.max_patch_kb:
            return f"the {side} patch has {size} KB, {mining.max_patch_kb} allowed"
    return None


def has_no_conflict_markers(change: Change, _: MiningSettings) -> str | None:
    """Pass when no added line is a marker of an unresolved merge conflict."""
    for patch in (change.split.gold, change.split.test):
        for path, text, added in patch.changed_lines:
            if added and _CONFLICT.match(text):
                return f"{path} gains {text[:20].strip()!r}"
    return None


def is_mostly_in_candidate_language(change: Change, mining: MiningSettings) -> str | None:
    """Pass when `min_language_share` of the gold patch's program lines are in the candidate's language or its family.

    Lines of documentation and data are not counted.
    """
    own = find_language(change)
    lines = [name for line in change.split.gold.changed_lines if (name := detect_file_language(line.path))]
    share = sum(name in language_family(own) for name in lines) / len(lines) if lines else 1.0
    if share >= mining.min_language_share:
        return None
    return f"{share:.0%} of its program lines are {own}, {mining.min_language_share:.0%} required"


def find_language(change: Change) -> str:
    """Return the language of most sources in the gold patch, else of all changed files, else of the base tree.

    A published change may touch data files only; its tests run the program that reads them.
    """
    sources = [path for path in change.split.gold.files if is_source(path)]
    return detect_language(sources) or detect_language(change.paths) or _find_tree_language(change) or DEFAULT_LANGUAGE


def _find_tree_language(change: Change) -> str:
    return detect_language(path for path in change.tree_paths if detect_file_language(path) in LANGUAGES)


def changes_more_than_a_version(change: Change, _: MiningSettings) -> str | None:
    """Pass when a changed source line is more than an assignment of a version number."""
    lines = [line.text for line in change.split.gold.changed_lines if is_source(line.path)]
    if lines and len(lines) <= 4 and all(_VERSION_LINE.search(line) for line in lines):
        about = any(line.strip() and not line.strip().startswith("#") for line in lines)
        return "only a version number changes" if about else None
    return None


def does_more_than_move(change: Change, _: MiningSettings) -> str | None:
    """Pass when a source line changes: nobody can derive the new path of a moved file from a statement."""
    if any(is_source(line.path) for line in change.split.gold.changed_lines):
        return None
    sources = _list_sources(change)
    if not sources or any(file.status in "AD" for file in sources):
        return None  # an empty file was added or deleted
    return "its sources are only moved or change their mode"


def changes_code(change: Change, _: MiningSettings) -> str | None:
    """Pass when the syntax tree of a source changes: more than comments and layout."""
    if _is_code_unchanged(change, _list_sources(change), at_most=CodeDifference.LAYOUT):
        return "only comments and layout of its sources change"
    return None


def changes_more_than_docstrings(change: Change, _: MiningSettings) -> str | None:
    """Pass when the syntax tree of a source changes, docstrings ignored."""
    return "only docstrings of its sources change" if _is_code_unchanged(change, _list_sources(change)) else None


def changes_test_code(change: Change, _: MiningSettings) -> str | None:
    """Pass when the syntax tree of a test, or test data, changes: otherwise there is no FAIL_TO_PASS test."""
    tests = [file for file in change.files if any(map(is_protected, file.paths))]
    return "the code of the tests does not change" if _is_code_unchanged(change, tests) else None


def keeps_tests(change: Change, _: MiningSettings) -> str | None:
    """Pass when a test line is added or a skip removed, and not MAX_TESTS_LOST more tests are removed than added."""
    lines = [line for line in change.split.test.changed_lines if is_test_file(line.path)]
    tests = [line for line in lines if _TEST.match(line.text)]
    added = sum(line.added for line in tests)
    removed = len(tests) - added
    if removed - added > MAX_TESTS_LOST:
        return f"{removed} tests are removed, {added} are added"
    if lines and not any(line.added or _UNMARKED.search(line.text) for line in lines):
        return "test lines are only removed"
    return None


def patches_reproduce_merge(change: Change, _: MiningSettings) -> str | None:
    """Pass when applying both patches to the base commit gives the merged tree, byte for byte."""
    return change.split.fault or None


def _list_sources(change: Change) -> list[FileChange]:
    """Return the program files of the gold patch."""
    return [file for file in change.files if any(map(is_source, file.paths)) and not is_protected(file.new_path)]


def _is_code_unchanged(
    change: Change, files: list[FileChange], at_most: CodeDifference = CodeDifference.DOCSTRINGS
) -> bool:
    """Return whether all files are modified, and of languages whose code is compared, and differ at most in this."""
    comparisons = [(file, _find_comparison(file)) for file in files]
    if not files or any(compare is None for _, compare in comparisons):
        return False
    return all(
        compare is not None and compare(change.read_content(file, before=True), change.read_content(file)) <= at_most
        for file, compare in comparisons
    )


def _find_comparison(file: FileChange) -> Callable[[bytes, bytes], CodeDifference] | None:
    """Return the function that compares the versions of a modified file; None if there is none."""
    language, _ = find_parsed_language(file.new_path)
    return language.compare_code if language is not None and file.status == "M" else None
