"""Which commits of the main line are pull requests that were merged by rebasing.

Nothing in such a commit names its pull request. But where a clone holds `refs/pull/N/head`, the same commits lie there
under other ids. A rebase keeps author, date and subject, so those find the pairs; equal patch ids prove them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from backends.git import Repository
from miner import messages
from miner.diffs import Files, raw_diffs
from miner.log import Commit

_PULL = re.compile(r"^refs/pull/(\d+)/head$")


_Pair = tuple[Commit, Commit]
"""A commit of the line, and one of a pull request that may be the same change."""


def rebase_merges(repository: Repository, line: Sequence[Commit], unmerged: Sequence[Commit]) -> Iterator[int | None]:
    """For each commit of the line the number of the pull request that a rebase merge brought it in with, or None.

    Git is at work on the proofs from the call on; they are waited for at the first commit that needs one.

    Args:
        repository: the history.
        line: its first-parent line, newest first.
        unmerged: what stands in pull requests and not in the history.
    """
    pairs = _alike(line, unmerged)
    diffs = raw_diffs(repository, ((commit.sha, commit.parents[0]) for pair in pairs.values() for commit in pair))
    return _in_one_run(_numbers(repository, line, pairs, diffs))


def _alike(line: Sequence[Commit], unmerged: Sequence[Commit]) -> dict[str, _Pair]:
    """By id the commits of the line that name no pull request, each with the newest that is told alike in one."""
    theirs: dict[tuple[str, str, str], Commit] = {}
    for commit in unmerged:
        if len(commit.parents) == 1 and _PULL.match(commit.source):
            theirs.setdefault(_kept(commit), commit)
    ours = {kept: commit for commit in line if (kept := _kept(commit)) in theirs and _unnamed(commit)}
    return {commit.sha: (commit, theirs[kept]) for kept, commit in ours.items()}


def _numbers(
    repository: Repository, line: Sequence[Commit], pairs: dict[str, _Pair], diffs: Iterator[Files]
) -> Iterator[int | None]:
    proven: dict[str, int] | None = None
    for commit in line:
        if commit.sha not in pairs:
            yield None
            continue
        if proven is None:
            found = _proven(repository, list(pairs.values()), diffs)
            proven = {ours.sha: int(theirs.source.split("/")[2]) for ours, theirs in found}
        yield proven.get(commit.sha)


def _proven(repository: Repository, pairs: list[_Pair], diffs: Iterator[Files]) -> Iterator[_Pair]:
    """The pairs that change the same: from and to the same blobs, else with the same patch id.

    `diffs` has the files of both commits of each pair.
    """
    both = list(zip(pairs, zip(diffs, diffs, strict=True), strict=True))
    unsure = [
        (pair, files) for pair, files in both if files[0] != files[1] and _touched(files[0]) == _touched(files[1])
    ]
    grown = _growths(repository, [files for _, files in unsure])
    alike = [pair for (pair, _), (a, b) in zip(unsure, grown, strict=True) if a == b]
    ids = patch_ids(repository, (commit.sha for pair in alike for commit in pair))
    for (ours, theirs), (a, b) in both:
        if (a and a == b) or (ours.sha in ids and ids[ours.sha] == ids.get(theirs.sha)):
            yield ours, theirs


def _growths(repository: Repository, both: Sequence[tuple[Files, Files]]) -> Iterator[tuple[int, int]]:
    """By how many bytes each of two changes lets the tree grow: where these differ no patch need be made."""
    if not both:
        return
    sizes = repository.sizes(blob for pair in both for files in pair for file in files for blob in file.blobs.split())
    for a, b in both:
        yield _growth(a, sizes), _growth(b, sizes)


def _growth(files: Files, sizes: Mapping[str, int]) -> int:
    """Objects that the clone lacks, such as submodules' commits, count nothing."""
    return sum(sizes.get(new, 0) - sizes.get(old, 0) for old, new in (file.blobs.split() for file in files))


def patch_ids(repository: Repository, shas: Iterable[str]) -> dict[str, str]:
    """The stable patch id of each commit against its first parent; commits without a difference are missing."""
    listed = list(shas)
    if not listed:
        return {}
    diffs = repository.stream("diff-tree", "--stdin", "-p", data=(f"{sha}\n".encode() for sha in listed))
    rows = b"".join(repository.stream("patch-id", "--stable", data=diffs)).decode().split("\n")
    return {sha: patch for patch, _, sha in (row.partition(" ") for row in rows if row)}


def _unnamed(commit: Commit) -> bool:
    return len(commit.parents) == 1 and messages.pull_request_number(commit.message) is None


def _touched(files: Files) -> set[str]:
    return {path for file in files for path in file.paths}


def _kept(commit: Commit) -> tuple[str, str, str]:
    return commit.email, commit.authored, commit.subject


def _in_one_run(numbers: Iterable[int | None]) -> Iterator[int | None]:
    """A pull request is merged once: of several runs of its commits on the line, only the newest is it."""
    done: set[int] = set()
    for number, run in groupby(numbers):
        kept = None if number is None or number in done else number
        if kept is not None:
            done.add(kept)
        for _ in run:
            yield kept
