"""Reviews built from a fix: the code before it, and the change that introduced the fault.

The second follows Śliwerski, Zimmermann and Zeller (When do changes induce fixes?, MSR 2005): blame, from the fix's
base, of the lines that the fix removes. The method is known to be noisy, so only clear cases count: a commit
introduced more than half of these lines or, where the fix removes none, all lines around those it adds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from derivers.review.claims import extract_claim
from derivers.review.construction import (
    MAX_CHANGED,
    MAX_CHARS,
    MAX_LINES,
    NotReviewableError,
    Reason,
    build_diff_review,
    build_file_review,
    count_lines,
    list_added_lines,
)
from derivers.review.cross_file import (
    MIN_NAME_CHARS,
    Culprit,
    find_changed_callee,
    group_lines,
    is_between_files,
    list_fixed_calls,
)
from derivers.review.history import BlamedLine
from derivers.review.locations import DefectLocation, PatchedSource, is_meaningful, list_patched_sources, locate_lines
from derivers.review.subject import ReviewSubject
from languages.paths import is_source
from mutation.definitions import find_enclosing_definition
from taskdb.records.oracles import Defect, ReviewOracle, ReviewTarget
from taskdb.records.tags import ChangeKind

FIX_KINDS = (ChangeKind.BUGFIX, ChangeKind.SECURITY)
"""Kinds of change that repair a fault."""
POSSIBLE_FIX_KINDS = (
    ChangeKind.OTHER,
    ChangeKind.TEST,
    ChangeKind.DOCUMENTATION,
    ChangeKind.ERROR_HANDLING,
    ChangeKind.CONCURRENCY,
    ChangeKind.COMPATIBILITY,
    ChangeKind.INTERFACE,
    ChangeKind.DATA,
    ChangeKind.LOGGING,
    ChangeKind.LOCALISATION,
)
"""Kinds of change that repair a fault where the beginning of the statement describes a fault."""
NEW_BEHAVIOUR_KINDS = (
    ChangeKind.FEATURE,
    ChangeKind.BREAKING,
    ChangeKind.DEPRECATION,
    ChangeKind.REMOVAL,
    ChangeKind.PERFORMANCE,
)
"""Kinds of change before which a failing test shows no fault, but that something does not exist yet."""
_FAULT = re.compile(
    r"\b(fix(es|ed)?|bug|wrong(ly)?|incorrect(ly)?|broken|crash(es|ed)?|fails|regression|traceback|unexpected(ly)?|"
    r"instead of|should (be|have|not|return|give|raise))\b",
    re.IGNORECASE,
)
MAX_FAULT_SEARCH_CHARS = 600
"""Characters at the start of a statement that are searched for a fault."""
MAX_SIBLINGS = 2
"""Unaffected files that are added to the files under review."""
MAX_RELATING_NAMES = 8
"""Names that are searched in other files."""
MAX_FILES_WITH_NAME = 8
"""A name that more files contain is not a relation."""
_CALL = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*\(")
MAX_BLAMED_LINES = 200
"""Lines that are blamed."""


def review_before_fix(subject: ReviewSubject) -> ReviewOracle:
    """Return the review of the files that a fix touches, before the fix, among files that they work with.

    Raises:
        NotReviewableError: it is not a fix, its statement describes no fault, or its locations are unsuitable.
    """
    locations, texts = _locate_faults(subject)
    defects = [
        Defect(path=path, first_line=location.first, last_line=location.last, claim=_require_claim(subject))
        for path, places in locations.items()
        for location in places
    ]
    related = select_related(subject, texts, locations)
    others = _select_siblings(subject, texts | related, MAX_SIBLINGS - len(related))
    files = texts | related | others
    return build_file_review(files, defects, subject.artifacts, tree=subject.candidate.base_commit)


def review_origin(subject: ReviewSubject) -> ReviewOracle:
    """Return the review of the commit that introduced the fault: most of the lines that the fix changes.

    Its form is `cross-file` where the fault lies between files (`derivers.review.cross_file`), else `diff`.

    Raises:
        NotReviewableError: as `review_before_fix`; or no single commit introduced most lines, or its diff is too large.
    """
    locations, texts = _locate_faults(subject)
    claim = _require_claim(subject)
    history, calls = subject.history, list_fixed_calls(list_patched_sources(subject.gold_patch))
    culprit = find_changed_callee(history, subject.candidate.base_commit, calls, texts)
    if culprit is None:
        origins = _blame_locations(subject, locations, texts)
        culprit = _find_culprit(origins, any(location.replaced for places in locations.values() for location in places))
    commit = culprit.commit
    # The diff of a merge with its first parent contains the commits of a whole branch.
    parents = history.list_parents(commit)
    if len(parents) > 1:
        raise NotReviewableError(Reason.NO_ORIGIN, f"{commit[:10]} is a merge")
    changed = history.list_changed_sources(parents[0], commit)
    if (lines := sum(file.lines for file in changed)) > MAX_CHANGED:
        raise NotReviewableError(
            Reason.TOO_LARGE, f"{commit[:10]} changed {lines} lines of source, {MAX_CHANGED} allowed"
        )
    diff = history.diff(parents[0], commit, changed)
    files = history.read_texts(commit, [file.new for file in changed])
    culprit = replace(culprit, lines=_keep_added_lines(culprit, diff, files))
    if not culprit.lines:
        raise NotReviewableError(Reason.NO_ORIGIN, f"the lines that {commit[:10]} introduced are not in its diff")
    old = history.read_texts(parents[0], [file.old for file in changed])
    before = {file.new: old[file.old] for file in changed if file.old in old}
    is_cross_file = is_between_files(history, culprit, files, before, calls)
    defects = [
        Defect(path=path, first_line=location.first, last_line=location.last, claim=claim)
        for path, numbers in sorted(culprit.lines.items())
        for location in locate_lines(numbers)
    ]
    target: ReviewTarget = "cross-file" if is_cross_file else "diff"
    return build_diff_review(files, diff, defects, subject.artifacts, target=target, tree=commit)


def _keep_added_lines(culprit: Culprit, diff: str, files: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the faulty lines that the diff adds to files under review."""
    added = {path: set(numbers) for path, numbers in list_added_lines(diff).items()}
    kept = {
        path: [line for line in lines if line in added.get(path, ())]
        for path, lines in culprit.lines.items()
        if path in files
    }
    return {path: lines for path, lines in kept.items() if lines}


def is_fix(subject: ReviewSubject) -> bool:
    """Return whether a change repairs a fault, by its kind, by the words of its statement, or by its tests."""
    candidate = subject.candidate
    if candidate.change_kind in FIX_KINDS or (
        subject.repairs_tests and candidate.change_kind not in NEW_BEHAVIOUR_KINDS
    ):
        return True
    beginning = candidate.problem_statement[:MAX_FAULT_SEARCH_CHARS]
    return candidate.change_kind in POSSIBLE_FIX_KINDS and _FAULT.search(beginning) is not None


def _locate_faults(subject: ReviewSubject) -> tuple[dict[str, list[DefectLocation]], dict[str, str]]:
    """Return the locations of the fault by path, and the texts of all source files that the fix touches."""
    candidate = subject.candidate
    if not is_fix(subject):
        raise NotReviewableError(Reason.NOT_A_FIX, f"a change of kind {candidate.change_kind}, which repairs no fault")
    files: list[PatchedSource] = list_patched_sources(subject.gold_patch)
    texts = subject.history.read_texts(candidate.base_commit, [file.path for file in files])
    faults = {file.path: file.find_locations(texts[file.path]) for file in files if file.path in texts}
    locations = {path: locations for path, locations in sorted(faults.items()) if locations}
    if not locations:
        raise NotReviewableError(Reason.NO_SOURCE_LINES, "the fix changes no existing line of code")
    return locations, texts


def _require_claim(subject: ReviewSubject) -> str:
    claim = extract_claim(subject.candidate.problem_statement)
    if not claim:
        raise NotReviewableError(Reason.NO_CLAIM, "the statement has no line that describes the fault")
    return claim


def select_related(
    subject: ReviewSubject, texts: Mapping[str, str], locations: Mapping[str, Iterable[DefectLocation]]
) -> dict[str, str]:
    """Return unaffected files of any folder that use the faulty functions or define what the faulty lines call.

    A fault is often seen only where both sides are known. Names that many files contain are not a relation.
    """
    base, names = subject.candidate.base_commit, dict[str, None]()
    for path, places in locations.items():
        rows = texts[path].split("\n")
        for location in places:
            around = find_enclosing_definition(path, texts[path].encode(), location.first)
            called = _CALL.findall("\n".join(rows[location.first - 1 : location.last]))
            names |= dict.fromkeys(name for name in (around.rpartition(".")[2], *called) if len(name) >= MIN_NAME_CHARS)
    suffixes = {path.rpartition(".")[2] for path in texts}
    found_in: Counter[str] = Counter()
    for name in list(names)[:MAX_RELATING_NAMES]:
        paths = subject.history.search_word(base, name)
        near = [path for path in paths if is_source(path) and path.rpartition(".")[2] in suffixes]
        if len(near) <= MAX_FILES_WITH_NAME:
            found_in.update(path for path in near if path not in texts)
    ranked = sorted(subject.shuffle(found_in), key=lambda path: -found_in[path])
    return _take_fitting(subject, ranked, texts, MAX_SIBLINGS)


def _select_siblings(subject: ReviewSubject, texts: Mapping[str, str], wanted: int) -> dict[str, str]:
    """Return unaffected files of the same folders and language, within the size limits, in pseudo-random order."""
    folders = {(path.rpartition("/")[0], path.rpartition(".")[2]) for path in texts}
    near = [
        path
        for path in subject.history.list_sources(subject.candidate.base_commit)
        if path not in texts and (path.rpartition("/")[0], path.rpartition(".")[2]) in folders
    ]
    return _take_fitting(subject, subject.shuffle(near), texts, wanted)


def _take_fitting(
    subject: ReviewSubject, paths: Sequence[str], texts: Mapping[str, str], wanted: int
) -> dict[str, str]:
    """Return the first readable files that fit the size limits together with others.

    Args:
        subject: the change.
        paths: files in order of preference.
        texts: the other files under review.
        wanted: number of files at most.
    """
    fitting: dict[str, str] = {}
    lines, chars = sum(map(count_lines, texts.values())), sum(map(len, texts.values()))
    # Each file is read from the repository, so only a few are tried until enough of them fit.
    for path in paths[: 4 * MAX_SIBLINGS]:
        for text in subject.history.read_texts(subject.candidate.base_commit, [path]).values():
            fits = lines + count_lines(text) <= MAX_LINES and chars + len(text) <= MAX_CHARS
            if len(fitting) < wanted and text and fits:
                fitting[path] = text
                lines, chars = lines + count_lines(text), chars + len(text)
    return fitting


def _blame_locations(
    subject: ReviewSubject, locations: Mapping[str, Iterable[DefectLocation]], texts: Mapping[str, str]
) -> list[BlamedLine]:
    """Return the origin of the lines of some locations: of the changed lines, where there are any."""
    changed = any(location.replaced for places in locations.values() for location in places)
    wanted: dict[str, list[int]] = {}
    for path, places in locations.items():
        rows = texts[path].split("\n")
        numbers = {line for location in places if location.replaced or not changed for line in location.lines}
        wanted[path] = sorted(line for line in numbers if is_meaningful(rows[line - 1], path))
    if (n := sum(map(len, wanted.values()))) > MAX_BLAMED_LINES:
        raise NotReviewableError(
            Reason.TOO_SCATTERED, f"the fix changes {n} lines, at most {MAX_BLAMED_LINES} are blamed"
        )
    base = subject.candidate.base_commit
    return [origin for path, lines in wanted.items() for origin in subject.history.blame(base, path, lines)]


def _find_culprit(origins: Sequence[BlamedLine], changed: bool) -> Culprit:
    """Return the commit that introduced more than half of the lines; all of them, where none was `changed`."""
    counts = Counter(line.commit for line in origins)
    if not counts:
        raise NotReviewableError(Reason.NO_ORIGIN, "the fix changes no line of code")
    commit, most = counts.most_common(1)[0]
    # Without changed lines the blamed lines only surround the fault, so a majority of them is not enough.
    if 2 * most <= counts.total() or (not changed and len(counts) > 1):
        raise NotReviewableError(
            Reason.NO_ORIGIN, f"{len(counts)} commits introduced the lines that it changes, none of them most"
        )
    return Culprit(commit=commit, lines=group_lines(line for line in origins if line.commit == commit))
