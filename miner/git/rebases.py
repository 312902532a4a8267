"""Find commits of the main line that are pull requests merged by rebasing.

Such a commit does not name its pull request. But in a clone with `refs/pull/N/head` the original commits exist under
other ids. A rebase keeps author, date and subject, which give the pairs; equal patch ids prove them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from backends.git import GitRepository
from miner.git import messages
from miner.git.diffs import FileChanges, read_raw_diffs
from miner.git.log import Commit

_PULL_REF = re.compile(r"^refs/pull/(\d+)/head$")


_CommitPair = tuple[Commit, Commit]
"""A commit of the line, and a commit of a pull request that may be the same change."""


class RebaseMerges:
    """Rebase merges of a history. Patch ids are computed in the background from construction on.

    Args:
        repository: the history.
        line: its first-parent line, newest first.
        unmerged: commits of pull requests that are not in the history.
    """

    def __init__(self, repository: GitRepository, line: Sequence[Commit], unmerged: Sequence[Commit]) -> None:
        self._line = line
        self._pairs = _find_similar(line, unmerged)
        beside = ThreadPoolExecutor(max_workers=1)
        self._proof = beside.submit(_find_identical, repository, list(self._pairs.values()))
        beside.shutdown(wait=False)

    def needs_proof(self, commit: Commit) -> bool:
        """Return whether a commit may be part of a rebase merge."""
        return commit.sha in self._pairs

    def is_complete(self) -> bool:
        """Whether all patch ids are computed."""
        return self._proof.done()

    def match_pull_requests(self) -> Iterator[int | None]:
        """Yield for each commit of the line the number of its rebase-merged pull request, or None.

        Waits for patch ids at the first commit that needs an id.
        """
        return _keep_newest_run(
            self._proof.result().get(commit.sha) if self.needs_proof(commit) else None for commit in self._line
        )


def _find_similar(line: Sequence[Commit], unmerged: Sequence[Commit]) -> dict[str, _CommitPair]:
    """Return commits of the line without a number, by id, each with the newest similar commit of a pull request."""
    by_key: dict[tuple[str, str, str], Commit] = {}
    for commit in unmerged:
        if len(commit.parents) == 1 and _PULL_REF.match(commit.source):
            by_key.setdefault(_build_key(commit), commit)
    matches = {key: commit for commit in line if (key := _build_key(commit)) in by_key and _has_no_number(commit)}
    return {commit.sha: (commit, by_key[key]) for key, commit in matches.items()}


def _find_identical(repository: GitRepository, pairs: list[_CommitPair]) -> dict[str, int]:
    """Return the number of the pull request for each commit of the line whose pair is proven, by the commit's id.

    A pair is proven by equal changed blobs, or else by equal patch ids.
    """
    diffs = read_raw_diffs(repository, ((commit.sha, commit.parents[0]) for pair in pairs for commit in pair))
    both = list(zip(pairs, zip(diffs, diffs, strict=True), strict=True))
    unsure = [pair for pair, (a, b) in both if a != b and _list_paths(a) == _list_paths(b)]
    ids = compute_patch_ids(repository, (commit.sha for pair in unsure for commit in pair))
    return {
        merged.sha: int(original.source.split("/")[2])
        for (merged, original), (a, b) in both
        if (a and a == b) or (merged.sha in ids and ids[merged.sha] == ids.get(original.sha))
    }


def compute_patch_ids(repository: GitRepository, shas: Iterable[str]) -> dict[str, str]:
    """Return the stable patch id of each commit against its first parent; commits without a difference have none."""
    listed = "".join(f"{sha}\n" for sha in shas).encode()
    if not listed:
        return {}
    output = b"".join(repository.stream("diff-tree", "--stdin", "-p", data=[listed], through=("patch-id", "--stable")))
    rows = output.decode().split("\n")
    return {sha: patch for patch, _, sha in (row.partition(" ") for row in rows if row)}


def _has_no_number(commit: Commit) -> bool:
    return len(commit.parents) == 1 and messages.parse_pull_request_number(commit.message) is None


def _list_paths(files: FileChanges) -> set[str]:
    return {path for file in files for path in file.paths}


def _build_key(commit: Commit) -> tuple[str, str, str]:
    return commit.email, commit.authored, commit.subject


def _keep_newest_run(numbers: Iterable[int | None]) -> Iterator[int | None]:
    """Keep the newest run of each pull request's commits on the line: a pull request is merged once."""
    done: set[int] = set()
    for number, run in groupby(numbers):
        key = None if number is None or number in done else number
        if key is not None:
            done.add(key)
        for _ in run:
            yield key
