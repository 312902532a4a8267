"""Size limits and construction of reviews, for every form and for other sources of diffs with a known defect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from core.patch_headers import parse_patch_set
from taskdb.artifacts import Artifacts
from taskdb.records.oracles import Defect, ReviewOracle, ReviewTarget

MAX_LINES, MAX_CHARS = 6_000, 400_000
"""Lines and characters of all files of a review without a diff."""
MAX_DIFF_FILE_LINES, MAX_DIFF_FILE_CHARS = 15_000, 600_000
"""The same for the files of a review with a diff."""
MAX_CHANGED = 1_000
"""Added and removed lines of a reviewed diff."""
MAX_DEFECTS = 6
"""Defects in a single review; changes in more locations are rarely a single defect."""
MAX_DEFECT_LINES = 30
"""Lines of a defect."""
MAX_DEFECTIVE_SHARE = 0.5
"""Share of the lines under review that may be defective; if it were larger, guesses would succeed."""


class Reason(StrEnum):
    """Why a change gives no review task of a form."""

    NOT_A_FIX = "not-a-fix"
    NO_SOURCE_LINES = "no-source-lines"
    UNREADABLE = "unreadable-patch"
    NO_CLAIM = "no-claim"
    TOO_SCATTERED = "too-scattered"
    TOO_LARGE = "material-too-large"
    TOO_LITTLE = "too-little-to-search"
    NO_ORIGIN = "no-single-origin"
    NO_LATER_HISTORY = "no-later-history"
    FIXED_LATER = "fixed-later"
    NO_THREADS = "no-threads"


class NotReviewableError(Exception):
    """A change gives no review task of a form; the message is the detail of the rejection."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def build_file_review(
    files: Mapping[str, str], defects: Sequence[Defect], artifacts: Artifacts, *, tree: str | None = None
) -> ReviewOracle:
    """Return a review of complete files.

    Args:
        files: path -> text.
        defects: defects by the lines of `files`; at least a defect.
        artifacts: store for the files.
        tree: commit that has the files, whose tree the reviewer may read.

    Raises:
        NotReviewableError: the files are too large, or the defects too many, too long or too large a share.
    """
    _check_size(files, "")
    _check_locality(defects)
    _check_defective_share(defects, sum(map(count_lines, files.values())))
    stored = store_files(files, artifacts)
    return ReviewOracle(target="before-fix", files=stored, diff=None, defects=tuple(defects), tree=tree)


def build_diff_review(
    files: Mapping[str, str],
    diff: str,
    defects: Sequence[Defect],
    artifacts: Artifacts,
    *,
    target: ReviewTarget = "diff",
    tree: str | None = None,
) -> ReviewOracle:
    """Return a review of a diff.

    Args:
        files: path -> text of every file of the diff that still exists, after the diff.
        diff: a git diff, without `index` lines (`strip_index_lines`), which contain hashes of later contents.
        defects: defects by the lines of `files`; empty for a clean diff, and only for that.
        artifacts: store for files and diff.
        target: form of the review.
        tree: commit after the diff, whose tree the reviewer may read.

    Raises:
        NotReviewableError: the diff is too large or empty, or the defects too many, too long or too large a share.
    """
    if bool(defects) == (target == "clean"):
        raise ValueError(f"a {target} review with {len(defects)} defects")
    added = {name: set(lines) for name, lines in list_added_lines(diff).items()}
    changed = count_changed_lines(diff)
    if not any(added.values()):
        raise NotReviewableError(Reason.NO_SOURCE_LINES, "the diff adds no line of source")
    if changed > MAX_CHANGED:
        raise NotReviewableError(Reason.TOO_LARGE, f"a diff of {changed} lines, {MAX_CHANGED} allowed")
    _check_size(files, diff)
    if defects:
        _check_locality(defects)
        _check_defective_share(defects, sum(map(len, added.values())), added)
    return ReviewOracle(
        target=target,
        files=store_files(files, artifacts),
        diff=artifacts.put_text(diff),
        defects=tuple(defects),
        tree=tree,
    )


def get_size_limits(diff: str) -> tuple[int, int]:
    """Return the lines and characters that the material of a review may have. `diff`: empty for none."""
    return (MAX_DIFF_FILE_LINES, MAX_DIFF_FILE_CHARS) if diff else (MAX_LINES, MAX_CHARS)


def count_lines(text: str) -> int:
    """Return the number of lines as git counts them: only a line feed ends a line."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def parse_diff(diff: str) -> PatchSet:
    """Parse a git diff.

    Raises:
        NotReviewableError: the diff is malformed.
    """
    try:
        return parse_patch_set(diff)
    except UnidiffParseError as error:
        raise NotReviewableError(Reason.UNREADABLE, f"the diff cannot be parsed: {error}".splitlines()[0]) from error


def parse_file_name(side: str | None) -> str | None:
    """Return the path from a side of a diff (`a/...`, `b/...`), unquoted; None for `/dev/null`."""
    if side is None or side == "/dev/null":
        return None
    if side.startswith('"'):
        raw = side.strip('"').encode(errors="surrogateescape").decode("unicode_escape")
        side = raw.encode("latin-1", errors="replace").decode(errors="surrogateescape")
    return side[2:]


def list_added_lines(diff: str) -> dict[str, list[int]]:
    """Return the numbers of the lines that a diff adds, by new path."""
    return {
        name: [line.target_line_no for hunk in file for line in hunk if line.is_added and line.target_line_no]
        for file in parse_diff(diff)
        if (name := parse_file_name(file.target_file))
    }


def count_changed_lines(diff: str) -> int:
    """Return the number of added and removed lines of a diff."""
    return sum(file.added + file.removed for file in parse_diff(diff))


def strip_index_lines(diff: str) -> str:
    """Return a git diff without its `index` lines, which contain hashes of the new contents."""
    lines = diff.split("\n")
    return "\n".join(line for line in lines if not line.startswith("index "))


def _check_size(files: Mapping[str, str], diff: str) -> None:
    lines = sum(map(count_lines, files.values()))
    chars = sum(map(len, files.values())) + len(diff)
    most = get_size_limits(diff)
    if lines > most[0] or chars > most[1]:
        raise NotReviewableError(
            Reason.TOO_LARGE, f"{lines} lines and {chars} characters, {most[0]} and {most[1]} allowed"
        )


def _check_locality(defects: Sequence[Defect]) -> None:
    if len(defects) > MAX_DEFECTS:
        raise NotReviewableError(Reason.TOO_SCATTERED, f"{len(defects)} locations, {MAX_DEFECTS} allowed")
    longest = max(defect.last_line - defect.first_line + 1 for defect in defects)
    if longest > MAX_DEFECT_LINES:
        raise NotReviewableError(Reason.TOO_SCATTERED, f"a location of {longest} lines, {MAX_DEFECT_LINES} allowed")


def _check_defective_share(defects: Iterable[Defect], lines: int, among: Mapping[str, set[int]] | None = None) -> None:
    """Raise unless most lines are free of defects; `among`: the lines under review, None for all."""
    wrong = {(defect.path, line) for defect in defects for line in defect.list_lines()}
    if among is not None:
        wrong = {(path, line) for path, line in wrong if line in among.get(path, ())}
    if len(wrong) > MAX_DEFECTIVE_SHARE * lines:
        raise NotReviewableError(
            Reason.TOO_LITTLE, f"{len(wrong)} of {lines} lines are defective, at most half is allowed"
        )


def store_files(files: Mapping[str, str], artifacts: Artifacts) -> str:
    """Store the files under review, path -> text, and return the hash of the artifact."""
    return artifacts.put_text(json.dumps(dict(files), sort_keys=True, ensure_ascii=False))
