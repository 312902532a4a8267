"""Which commits of the main line are pull requests that were merged by rebasing.

Nothing in such a commit names its pull request. But where a clone holds `refs/pull/N/head`, the same commits lie there
under other ids. A rebase keeps author, date and subject, so those find the pairs; equal patch ids prove them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from backends.git import Repository
from miner.git import messages
from miner.git.diffs import Files, raw_diffs
from miner.git.log import Commit

_PULL = re.compile(r"^refs/pull/(\d+)/head$")


_Pair = tuple[Commit, Commit]
"""A commit of the line, and one of a pull request that may be the same change."""


class RebaseMerges:
    """The rebase merges of a history. Their proofs are made beside the caller, from the start on.

    Args:
        repository: the history.
        line: its first-parent line, newest first.
        unmerged: what stands in pull requests and not in the history.
    """

    def __init__(self, repository: Repository, line: Sequence[Commit], unmerged: Sequence[Commit]) -> None:
        self._line = line
        self._pairs = _alike(line, unmerged)
        beside = ThreadPoolExecutor(max_workers=1)
        self._proof = beside.submit(_proven, repository, list(self._pairs.values()))
        beside.shutdown(wait=False)

    def needs_proof(self, commit: Commit) -> bool:
        """Whether a commit may be part of one."""
        return commit.sha in self._pairs

    def are_proven(self) -> bool:
        """Whether nobody has to wait any more."""
        return self._proof.done()

    def numbers(self) -> Iterator[int | None]:
        """For each commit of the line the number of the pull request that it was merged with, or None.

        Waits for the proofs at the first commit that needs one.
        """
        return _in_one_run(
            self._proof.result().get(commit.sha) if self.needs_proof(commit) else None for commit in self._line
        )


def _alike(line: Sequence[Commit], unmerged: Sequence[Commit]) -> dict[str, _Pair]:
    """By id the commits of the line that name no pull request, each with the newest that is told alike in one."""
    theirs: dict[tuple[str, str, str], Commit] = {}
    for commit in unmerged:
        if len(commit.parents) == 1 and _PULL.match(commit.source):
            theirs.setdefault(_kept(commit), commit)
    ours = {kept: commit for commit in line if (kept := _kept(commit)) in theirs and _unnamed(commit)}
    return {commit.sha: (commit, theirs[kept]) for kept, commit in ours.items()}


def _proven(repository: Repository, pairs: list[_Pair]) -> dict[str, int]:
    """The commits of pairs that change the same, from and to the same blobs or else with the same patch id.

    By the id of the line's commit, the number of the pull request that the other one stands in.
    """
    diffs = raw_diffs(repository, ((commit.sha, commit.parents[0]) for pair in pairs for commit in pair))
    both = list(zip(pairs, zip(diffs, diffs, strict=True), strict=True))
    unsure = [pair for pair, (a, b) in both if a != b and _touched(a) == _touched(b)]
    ids = patch_ids(repository, (commit.sha for pair in unsure for commit in pair))
    return {
        ours.sha: int(theirs.source.split("/")[2])
        for (ours, theirs), (a, b) in both
        if (a and a == b) or (ours.sha in ids and ids[ours.sha] == ids.get(theirs.sha))
    }


def patch_ids(repository: Repository, shas: Iterable[str]) -> dict[str, str]:
    """The stable patch id of each commit against its first parent; commits without a difference are missing."""
    listed = "".join(f"{sha}\n" for sha in shas).encode()
    if not listed:
        return {}
    told = b"".join(repository.stream("diff-tree", "--stdin", "-p", data=[listed], through=("patch-id", "--stable")))
    rows = told.decode().split("\n")
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
