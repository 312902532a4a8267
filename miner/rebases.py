"""Which commits of the main line are pull requests that were merged by rebasing.

Nothing in such a commit names its pull request. But where a clone holds `refs/pull/N/head`, the same commits lie there
under other ids. A rebase keeps author, date and subject, so those find the pairs; equal patch ids prove them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from backends.git import Repository
from miner import messages
from miner.diffs import Files, raw_diffs
from miner.log import Commit

_PULL = re.compile(r"^refs/pull/(\d+)/head$")


@dataclass(frozen=True, slots=True)
class Rebased:
    """That a commit belongs to pull request `number`."""

    number: int


def rebased_commits(repository: Repository, line: Sequence[Commit], unmerged: Sequence[Commit]) -> dict[str, Rebased]:
    """Which commits a rebase merge brought in, by id; empty without `refs/pull/*/head`.

    Args:
        repository: the history.
        line: its first-parent line, newest first.
        unmerged: what stands in pull requests and not in the history.
    """
    if not unmerged:
        return {}
    unnamed = {_kept(commit): commit for commit in line if _unnamed(commit)}  # by what a rebase leaves as it was
    pairs: dict[str, tuple[Commit, Commit]] = {}
    for commit in unmerged:
        if len(commit.parents) == 1 and (found := unnamed.get(_kept(commit))) and _PULL.match(commit.source):
            pairs.setdefault(found.sha, (found, commit))
    proven = {ours.sha: Rebased(_number(theirs)) for ours, theirs in _proven(repository, list(pairs.values()))}
    return dict(_in_one_run(line, proven))


def _proven(repository: Repository, pairs: list[tuple[Commit, Commit]]) -> Iterator[tuple[Commit, Commit]]:
    """The pairs that change the same: from and to the same blobs, else with the same patch id."""
    diffs = list(raw_diffs(repository, ((commit.sha, commit.parents[0]) for pair in pairs for commit in pair)))
    both = list(zip(diffs[::2], diffs[1::2], strict=True))
    unsure = [pair for pair, (a, b) in zip(pairs, both, strict=True) if a != b and _touched(a) == _touched(b)]
    ids = patch_ids(repository, (commit.sha for pair in unsure for commit in pair))
    for (ours, theirs), (a, b) in zip(pairs, both, strict=True):
        if (a and a == b) or (ours.sha in ids and ids[ours.sha] == ids.get(theirs.sha)):
            yield ours, theirs


def patch_ids(repository: Repository, shas: Iterable[str]) -> dict[str, str]:
    """The stable patch id of each commit against its first parent; commits without a difference are missing."""
    listed = list(shas)
    if not listed:
        return {}
    diffs = repository.git("diff-tree", "--stdin", "-p", data="".join(f"{sha}\n" for sha in listed).encode())
    rows = repository.git("patch-id", "--stable", data=diffs).decode().split("\n")
    return {sha: patch for patch, _, sha in (row.partition(" ") for row in rows if row)}


def _unnamed(commit: Commit) -> bool:
    return len(commit.parents) == 1 and messages.pull_request_number(commit.message) is None


def _touched(files: Files) -> set[str]:
    return {path for file in files for path in file.paths}


def _kept(commit: Commit) -> tuple[str, str, str]:
    return commit.email, commit.authored, commit.subject


def _number(commit: Commit) -> int:
    found = _PULL.match(commit.source)
    return int(found[1]) if found else 0


def _in_one_run(line: Sequence[Commit], proven: dict[str, Rebased]) -> Iterator[tuple[str, Rebased]]:
    """A pull request is merged once: of several runs of its commits on the line, only the newest is it."""
    done: set[int] = set()
    for mark, run in groupby(line, key=lambda commit: proven.get(commit.sha)):
        if mark is None or mark.number in done:
            continue
        done.add(mark.number)
        for commit in run:
            yield commit.sha, mark
