"""What a reviewer is given, in bounds, and what is to be found in it: the last step of every form of review.

Others that make diffs with a known defect (an injected one, say) end here as well: `diff_review`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from taskdb.artifacts import Artifacts
from taskdb.oracles import Defect, Review

MAX_LINES, MAX_CHARS = 6_000, 400_000
"""Lines and characters of all files that are read as a whole."""
BESIDE_LINES, BESIDE_CHARS = 15_000, 600_000
"""The same of files that lie beside a diff, to be looked into."""
MAX_CHANGED = 1_000
"""Added and removed lines of a diff under review."""
MAX_PLACES = 6
"""Places of defects in one review: what is spread wider is a change of mind, not a defect somewhere."""
WIDEST = 30
"""Lines of one place."""
BLIND = 0.5
"""Share of what is to be searched (lines of the files, added lines of a diff) that may be defective: where it is more,
any guess is right."""


class Reason(StrEnum):
    """Why a change gives no review task of some form."""

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


class Unfit(Exception):  # noqa: N818 - a finding on a change, turned into a refusal by the deriver
    """A change gives no review task of some form; the text says why."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def file_review(files: Mapping[str, str], defects: Sequence[Defect], artifacts: Artifacts) -> Review:
    """A review of files as they are.

    Args:
        files: path -> text.
        defects: by the lines of `files`; at least one.
        artifacts: where the material is kept.

    Raises:
        Unfit: it is too much, too little, or the defects are everywhere.
    """
    _bounded(files, "")
    _local(defects)
    _searchable(defects, sum(map(count_lines, files.values())))
    return Review(target="before-fix", files=_kept(files, artifacts), diff=None, defects=tuple(defects))


def diff_review(
    files: Mapping[str, str],
    diff: str,
    defects: Sequence[Defect],
    artifacts: Artifacts,
    *,
    target: Literal["diff", "clean", "threads"] = "diff",
) -> Review:
    """A review of a diff.

    Args:
        files: path -> text of every file that the diff leaves behind, as it is after it.
        diff: a git diff; `index` lines tell hashes of the future and should be left out (`without_hashes`).
        defects: by the lines of `files`; empty for a control, and for a control only.
        artifacts: where the material is kept.
        target: what kind of diff it is.

    Raises:
        Unfit: it is too much, too little, or the defects are everywhere.
    """
    if bool(defects) == (target == "clean"):
        raise ValueError(f"a {target} review with {len(defects)} defects")
    added = {name: set(lines) for name, lines in added_lines(diff).items()}
    changed = count_changed(diff)
    if not any(added.values()):
        raise Unfit(Reason.NO_SOURCE_LINES, "the diff adds no line of source")
    if changed > MAX_CHANGED:
        raise Unfit(Reason.TOO_LARGE, f"a diff of {changed} lines, {MAX_CHANGED} allowed")
    _bounded(files, diff)
    if defects:
        _local(defects)
        _searchable(defects, sum(map(len, added.values())), added)
    return Review(
        target=target, files=_kept(files, artifacts), diff=artifacts.put_text(diff), defects=tuple(defects)
    )  # fmt: skip


def count_lines(text: str) -> int:
    """Lines of a text as git counts them: only a line feed ends one."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def parsed(diff: str) -> PatchSet:
    """A git diff, read by unidiff.

    Raises:
        Unfit: it cannot be read.
    """
    try:
        return PatchSet(diff)
    except UnidiffParseError as error:
        raise Unfit(Reason.UNREADABLE, f"the diff cannot be read: {error}".splitlines()[0]) from error


def name_of(side: str | None) -> str | None:
    """A file's name from its side of a diff (`a/...`, `b/...`), out of git's quotes; None where there is no file."""
    if side is None or side == "/dev/null":
        return None
    if side.startswith('"'):
        raw = side.strip('"').encode(errors="surrogateescape").decode("unicode_escape")
        side = raw.encode("latin-1", errors="replace").decode(errors="surrogateescape")
    return side[2:]


def added_lines(diff: str) -> dict[str, list[int]]:
    """Numbers of the lines that a diff adds, by the new names of its files."""
    return {
        name: [line.target_line_no for hunk in file for line in hunk if line.is_added and line.target_line_no]
        for file in parsed(diff)
        if (name := name_of(file.target_file))
    }


def count_changed(diff: str) -> int:
    """Added and removed lines of a diff."""
    return sum(file.added + file.removed for file in parsed(diff))


def without_hashes(diff: str) -> str:
    """A git diff without its `index` lines, which name what files will be and nobody reads."""
    lines = diff.split("\n")
    return "\n".join(line for line in lines if not line.startswith("index "))


def _bounded(files: Mapping[str, str], diff: str) -> None:
    lines = sum(map(count_lines, files.values()))
    chars = sum(map(len, files.values())) + len(diff)
    most = (BESIDE_LINES, BESIDE_CHARS) if diff else (MAX_LINES, MAX_CHARS)
    if lines > most[0] or chars > most[1]:
        raise Unfit(Reason.TOO_LARGE, f"{lines} lines and {chars} characters, {most[0]} and {most[1]} allowed")


def _local(defects: Sequence[Defect]) -> None:
    if len(defects) > MAX_PLACES:
        raise Unfit(Reason.TOO_SCATTERED, f"{len(defects)} places, {MAX_PLACES} allowed")
    widest = max(one.last_line - one.first_line + 1 for one in defects)
    if widest > WIDEST:
        raise Unfit(Reason.TOO_SCATTERED, f"a place of {widest} lines, {WIDEST} allowed")


def _searchable(defects: Iterable[Defect], lines: int, among: Mapping[str, set[int]] | None = None) -> None:
    """There is more that is right than wrong; `among`: lines that count, else all do."""
    wrong = {(one.path, line) for one in defects for line in range(one.first_line, one.last_line + 1)}
    if among is not None:
        wrong = {(path, line) for path, line in wrong if line in among.get(path, ())}
    if len(wrong) > BLIND * lines:
        raise Unfit(Reason.TOO_LITTLE, f"{len(wrong)} of {lines} lines are at fault: any guess would be right")


def _kept(files: Mapping[str, str], artifacts: Artifacts) -> str:
    return artifacts.put_text(json.dumps(dict(files), sort_keys=True, ensure_ascii=False))
