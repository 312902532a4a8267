"""Defects between files: a change breaks the code of another file, or calls a function of another file wrongly.

Both are seen by the calls that a fix changes. Where it adapts a call whose function has got another signature since the
call was written, the change of the signature is at fault, and not the change that wrote the call. Otherwise the change
that introduced the faulty lines is at fault, and its defect is one between files where they call a function of a file
that the change leaves alone, or are the new signature of a function that such a file calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from derivers.review.history import BlamedLine, ReviewHistory
from derivers.review.locations import PatchedSource
from languages.paths import is_source
from languages.registry import detect_file_language, language_family
from mutation.definitions import CodeDefinition, iterate_definitions, list_parameters

MIN_NAME_CHARS = 4
"""Characters of names that are searched in other files."""
MAX_FILES_WITH_NAME = 30
"""A name that more files contain is hardly that of a single function."""
MAX_CALLS = 20
"""Calls of a fix that are examined."""
MAX_CALL_CHARS = 2_000
_CALL = re.compile(r"(?<![\w$])(?:(def|func|fn|function|fun|sub|proc)\s+(?:\([^)]*\)\s*)?)?([A-Za-z_]\w*)\s*\(")


class CallText(NamedTuple):
    """A call: name of the function, text of its arguments without white space, and 0-based line of the text."""

    name: str
    arguments: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """The commit that introduced a fault, and the faulty lines as it left them.

    `is_cross_file`: whether the fault is known to lie between files.
    """

    commit: str
    lines: Mapping[str, Sequence[int]]
    is_cross_file: bool = False


@dataclass(frozen=True)
class FixedCalls:
    """Calls that a fix changes: the file, the 1-based lines before the fix, and the name of the function."""

    path: str
    lines: tuple[int, ...]
    name: str
    is_adapted: bool
    """Whether the fix calls the same function with other arguments."""


def list_fixed_calls(files: Iterable[PatchedSource]) -> list[FixedCalls]:
    """Return the calls that a fix changes or removes, of functions whose names are long enough to be looked up."""
    return [calls for file in files for calls in _compare_calls(file)][:MAX_CALLS]


def _compare_calls(file: PatchedSource) -> Iterator[FixedCalls]:
    for hunk in file.file:
        old = [(line.source_line_no or 0, line.value) for line in hunk if line.is_removed or line.is_context]
        removed = {line.source_line_no for line in hunk if line.is_removed}
        new = "".join(line.value for line in hunk if line.is_added or line.is_context)
        after = list_calls(new)
        kept, names = Counter((call.name, call.arguments) for call in after), {call.name for call in after}
        changed: dict[str, list[int]] = {}
        for call in list_calls("".join(text for _, text in old)):
            number = old[call.line][0]
            if number in removed and not kept[call.name, call.arguments]:
                changed.setdefault(call.name, []).append(number)
        for name, lines in changed.items():
            yield FixedCalls(file.path, tuple(lines), name, name in names)


def find_changed_callee(
    history: ReviewHistory, base: str, calls: Iterable[FixedCalls], fixed: Iterable[str]
) -> Culprit | None:
    """Return the commit that changed the signature of a function under a call that a fix adapts; None for none.

    Args:
        history: the repository.
        base: commit before the fix.
        calls: calls that the fix changes.
        fixed: files that the fix touches; the function is in none of them.
    """
    touched = set(fixed)
    for call in calls:
        if not call.is_adapted:
            continue
        place = find_definition(history, base, call.name, call.path)
        if place is None or place[0] in touched:
            continue
        if culprit := _find_signature_change(history, base, call, *place):
            return culprit
    return None


def _find_signature_change(
    history: ReviewHistory, base: str, call: FixedCalls, path: str, definition: CodeDefinition
) -> Culprit | None:
    """Return the commit that last changed a signature, where the call is older and the change leaves it alone."""
    origins = history.blame(base, path, list_signature_lines(definition))
    times = {origin.commit: history.read_commit_time(origin.commit) for origin in origins}
    if not times:
        return None
    commit = max(times, key=lambda commit: (times[commit], commit))
    parents = history.list_parents(commit)
    calling = {origin.commit for origin in history.blame(base, call.path, call.lines)}
    if len(parents) > 1 or commit in calling or not all(history.is_ancestor(origin, commit) for origin in calling):
        return None
    changed = {old: new for old, new, _ in history.list_changed_sources(parents[0], commit)}
    wrong = group_lines(origin for origin in origins if origin.commit == commit)
    if call.path in changed.values() or len(wrong) != 1:
        return None
    old_path = next((old for old, new in changed.items() if new in wrong), None)
    before = history.read_text(parents[0], old_path) if old_path else None
    after = history.read_text(commit, *wrong) if before is not None else None
    if before is None or after is None or not _has_other_signature(path, definition.name, before, after):
        return None
    return Culprit(commit=commit, lines=wrong, is_cross_file=True)


def is_between_files(
    history: ReviewHistory,
    culprit: Culprit,
    files: Mapping[str, str],
    before: Mapping[str, str],
    calls: Iterable[FixedCalls],
) -> bool:
    """Return whether the faulty lines of a change involve a file that the change leaves alone.

    Args:
        history: the repository.
        culprit: the change and its faulty lines.
        files: files that it touches, after it.
        before: the same before it, by the new paths; without files that it adds.
        calls: calls that the fix changes.
    """
    if culprit.is_cross_file:
        return True
    fixed = {call.name for call in calls}
    for path, lines in culprit.lines.items():
        rows = files[path].split("\n")
        wrong = {call.name for line in lines for call in list_calls(rows[line - 1])}
        for name in sorted(wrong & fixed):
            place = find_definition(history, culprit.commit, name, path)
            if place is not None and place[0] not in files:
                return True
        if path in before and _changes_used_signature(history, culprit, path, files, before[path]):
            return True
    return False


def _changes_used_signature(
    history: ReviewHistory, culprit: Culprit, path: str, files: Mapping[str, str], before: str
) -> bool:
    """Return whether faulty lines are the new signature of a function that a file outside of the change calls."""
    commit, wrong = culprit.commit, set(culprit.lines[path])
    for definition in iterate_definitions(path, files[path].encode()):
        is_touched = not wrong.isdisjoint(list_signature_lines(definition))
        if not is_touched or not _has_other_signature(path, definition.name, before, files[path]):
            continue
        users = [user for user in _search_sources(history, commit, definition.last_name, path) if user not in files]
        for text in history.read_texts(commit, users).values():
            if any(call.name == definition.last_name for call in list_calls(text)):
                return True
    return False


def find_definition(history: ReviewHistory, commit: str, name: str, path: str) -> tuple[str, CodeDefinition] | None:
    """Return file and definition of a function that is called in `path`, where exactly one other file defines it."""
    if len(name) < MIN_NAME_CHARS:
        return None
    paths = _search_sources(history, commit, name, path)
    if len(paths) > MAX_FILES_WITH_NAME:
        return None
    texts = history.read_texts(commit, paths)
    places = [
        (file, definition)
        for file, text in texts.items()
        for definition in iterate_definitions(file, text.encode())
        if definition.last_name == name
    ]
    return places[0] if len(places) == 1 and places[0][0] != path else None


def _search_sources(history: ReviewHistory, commit: str, name: str, path: str) -> list[str]:
    """Return the source files that contain a name, of the languages of a file's projects."""
    family = language_family(detect_file_language(path))
    paths = history.search_word(commit, name)
    return [file for file in paths if is_source(file) and detect_file_language(file) in family]


def list_calls(text: str) -> list[CallText]:
    """Return the calls in a text by their form, without definitions. Arguments that do not end are cut."""
    calls = []
    for match in _CALL.finditer(text):
        if match[1] is None:
            arguments = "".join(_read_brackets(text, match.end() - 1).split())
            calls.append(CallText(match[2], arguments, text.count("\n", 0, match.start(2))))
    return calls


def _read_brackets(text: str, start: int) -> str:
    """Return the text from an opening bracket to the one that closes it."""
    depth = 0
    for at in range(start, min(len(text), start + MAX_CALL_CHARS)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[start : at + 1]
    return text[start : start + MAX_CALL_CHARS]


def list_signature_lines(definition: CodeDefinition) -> list[int]:
    """Return the 1-based lines of a function's name and parameters."""
    return list(range(definition.first_line, definition.first_line + _read_signature(definition).count("\n") + 1))


def _read_signature(definition: CodeDefinition) -> str:
    """Return the text of a definition until its parameters end; the first line where it has none."""
    match = re.search(rf"(?<![\w$]){re.escape(definition.last_name)}\s*\(", definition.text)
    if match is None:
        return definition.text.partition("\n")[0]
    return definition.text[: match.end() - 1] + _read_brackets(definition.text, match.end() - 1)


def _has_other_signature(path: str, name: str, before: str, after: str) -> bool:
    """Return whether the only function of a name had other parameters before, apart from annotations."""
    old, new = (list_parameters(path, text.encode()).get(name, []) for text in (before, after))
    return len(old) == len(new) == 1 and old != new


def group_lines(origins: Iterable[BlamedLine]) -> dict[str, list[int]]:
    """Return blamed lines by path."""
    lines: dict[str, list[int]] = {}
    for origin in origins:
        lines.setdefault(origin.path, []).append(origin.line)
    return lines
