"""Two reviews that a fix gives: the code before it, and the change that brought what it mends.

The second follows Śliwerski, Zimmermann and Zeller (When do changes induce fixes?, MSR 2005): blame, from the fix's
base, of the lines that the fix removes. Known to be noisy, so only a clear case counts: one commit brought more than
half of these lines, and where the fix removes none, one brought all lines around what it adds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from derivers.review.change import Under
from derivers.review.claims import claim_of
from derivers.review.history import Blamed
from derivers.review.material import (
    MAX_CHANGED,
    MAX_CHARS,
    MAX_LINES,
    Reason,
    Unfit,
    added_lines,
    count_lines,
    diff_review,
    file_review,
)
from derivers.review.places import Mended, Place, mended, says_something, spans
from languages.paths import is_source
from taskdb.oracles import Defect, Review
from taskdb.tags import ChangeKind

FIXES = (ChangeKind.BUGFIX, ChangeKind.SECURITY)
"""Kinds of change before which something was wrong."""
UNSURE = (
    ChangeKind.OTHER, ChangeKind.TEST, ChangeKind.DOCUMENTATION, ChangeKind.ERROR_HANDLING, ChangeKind.CONCURRENCY,
    ChangeKind.COMPATIBILITY, ChangeKind.INTERFACE, ChangeKind.DATA, ChangeKind.LOGGING, ChangeKind.LOCALISATION,
)  # fmt: skip
"""Kinds of which some are fixes: those whose statement begins with a fault."""
_FAULT = re.compile(
    r"\b(fix(es|ed)?|bug|wrong(ly)?|incorrect(ly)?|broken|crash(es|ed)?|fails|regression|traceback|unexpected(ly)?|"
    r"instead of|should (be|have|not|return|give|raise))\b",
    re.IGNORECASE,
)
BEGINNING = 600
"""Characters of a statement in which a fault is looked for."""
SIBLINGS = 2
"""Untouched files of the same folders that are put beside those that the fix touches."""
BLAMED = 200
"""Lines that are asked for who brought them."""


def before_fix(under: Under) -> Review:
    """The files that a fix touches, as they were, among others that it leaves alone.

    Raises:
        Unfit: it is no fix, names no fault, or its places are none, too many or too wide.
    """
    places, texts = _faults(under)
    defects = [
        Defect(path=path, first_line=place.first, last_line=place.last, claim=_claim(under))
        for path, found in places.items()
        for place in found
    ]
    return file_review(texts | _siblings(under, texts), defects, under.artifacts)


def origin(under: Under) -> Review:
    """The diff of the commit that brought most of what a fix mends.

    Raises:
        Unfit: as `before_fix`; or no one commit brought most of it, or its diff is too large.
    """
    places, texts = _faults(under)
    claim = _claim(under)
    brought = _brought(under, places, texts)
    commit = _culprit(brought, any(place.replaced for found in places.values() for place in found))
    history = under.history
    parents = history.parents(commit)
    if len(parents) > 1:
        raise Unfit(Reason.NO_ORIGIN, f"{commit[:10]} is a merge")
    changed = history.changed_source(parents[0], commit)
    if (lines := sum(file.lines for file in changed)) > MAX_CHANGED:
        raise Unfit(Reason.TOO_LARGE, f"{commit[:10]} changed {lines} lines of source, {MAX_CHANGED} allowed")
    diff = history.diff(parents[0], commit, changed)
    added = {path: set(numbers) for path, numbers in added_lines(diff).items()}
    files = history.texts(commit, [file.new for file in changed])
    wrong: dict[str, list[int]] = {}
    for line in brought:
        if line.commit == commit and line.path in files and line.line in added.get(line.path, ()):
            wrong.setdefault(line.path, []).append(line.line)
    if not wrong:
        raise Unfit(Reason.NO_ORIGIN, f"the lines that {commit[:10]} brought are not in its diff")
    defects = [
        Defect(path=path, first_line=place.first, last_line=place.last, claim=claim)
        for path, numbers in sorted(wrong.items())
        for place in spans(numbers)
    ]
    return diff_review(files, diff, defects, under.artifacts)


def _faults(under: Under) -> tuple[dict[str, list[Place]], dict[str, str]]:
    """The places of the fault by path, and the texts of all source files that the fix touches."""
    candidate = under.candidate
    tells = candidate.kind in UNSURE and _FAULT.search(candidate.problem_statement[:BEGINNING])
    if candidate.kind not in FIXES and not tells:
        raise Unfit(Reason.NOT_A_FIX, f"a change of kind {candidate.kind}: nothing is known to be wrong before it")
    files: list[Mended] = mended(under.gold)
    texts = under.history.texts(candidate.base_commit, [file.path for file in files])
    found = {file.path: file.places(texts[file.path]) for file in files if file.path in texts}
    places = {path: places for path, places in sorted(found.items()) if places}
    if not places:
        raise Unfit(Reason.NO_SOURCE_LINES, "the fix changes no line of source that was there and could be wrong")
    return places, texts


def _claim(under: Under) -> str:
    claim = claim_of(under.candidate.problem_statement)
    if not claim:
        raise Unfit(Reason.NO_CLAIM, "the statement has no line that says what is wrong")
    return claim


def _siblings(under: Under, texts: Mapping[str, str]) -> dict[str, str]:
    """Files of the same folders and language that the fix leaves alone, if there is room, in an order of no meaning."""
    folders = {(path.rpartition("/")[0], path.rpartition(".")[2]) for path in texts}
    near = [
        path
        for path in under.history.tree(under.candidate.base_commit)
        if path not in texts and is_source(path) and (path.rpartition("/")[0], path.rpartition(".")[2]) in folders
    ]
    found: dict[str, str] = {}
    lines, chars = sum(map(count_lines, texts.values())), sum(map(len, texts.values()))
    for path in under.shuffled(near)[: 4 * SIBLINGS]:
        for text in under.history.texts(under.candidate.base_commit, [path]).values():
            fits = lines + count_lines(text) <= MAX_LINES and chars + len(text) <= MAX_CHARS
            if len(found) < SIBLINGS and text and fits:
                found[path] = text
                lines, chars = lines + count_lines(text), chars + len(text)
    return found


def _brought(under: Under, places: Mapping[str, Iterable[Place]], texts: Mapping[str, str]) -> list[Blamed]:
    """Who brought the lines of the places; only of those changed, if any was."""
    changed = any(place.replaced for found in places.values() for place in found)
    wanted: dict[str, list[int]] = {}
    for path, found in places.items():
        rows = texts[path].split("\n")
        numbers = {line for place in found if place.replaced or not changed for line in place.lines}
        wanted[path] = sorted(line for line in numbers if says_something(rows[line - 1]))
    if (n := sum(map(len, wanted.values()))) > BLAMED:
        raise Unfit(Reason.TOO_SCATTERED, f"the fix changes {n} lines, {BLAMED} are asked for who brought them")
    base = under.candidate.base_commit
    return [one for path, lines in wanted.items() for one in under.history.blame(base, path, lines)]


def _culprit(brought: Iterable[Blamed], changed: bool) -> str:
    """The commit that brought more than half of the lines; all of them, where nothing was `changed`."""
    counts = Counter(line.commit for line in brought)
    if not counts:
        raise Unfit(Reason.NO_ORIGIN, "no line that the fix changes could be wrong")
    commit, most = counts.most_common(1)[0]
    if 2 * most <= counts.total() or (not changed and len(counts) > 1):
        raise Unfit(Reason.NO_ORIGIN, f"{len(counts)} commits brought what it mends, none of them most of it")
    return commit
