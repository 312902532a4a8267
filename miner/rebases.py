"""Which commits of the main line are pull requests that were merged by rebasing.

Nothing in such a commit names its pull request. But where a clone holds `refs/pull/N/head`, the same commits lie there
under other ids. A rebase keeps author, date and subject, so those find the pairs; equal patch ids prove them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from backends.git import Repository
from miner import messages
from miner.log import Commit, commits

_PULL = re.compile(r"^refs/pull/(\d+)/head$")


@dataclass(frozen=True, slots=True)
class Rebased:
    """That a commit belongs to pull request `number`."""

    number: int


def rebased_commits(repository: Repository) -> dict[str, Rebased]:
    """Commits of the first-parent line (by id) that a rebase merge brought in; empty without `refs/pull/*/head`."""
    heads = repository.git("for-each-ref", "--format=%(refname)", "refs/pull/").decode(errors="replace").split()
    pulls = [ref for ref in heads if _PULL.match(ref)]
    if not pulls:
        return {}
    # What stands in a pull request and not on the main line, by what a rebase leaves as it was.
    outside: dict[tuple[str, int, str], Commit] = {}
    for commit in commits(repository, "--no-merges", revisions=(*pulls, "^HEAD")):
        if _PULL.match(commit.source):
            outside.setdefault(_kept(commit), commit)
    line = list(commits(repository, "--first-parent", "HEAD"))
    pairs = [(commit, other) for commit in line if _unnamed(commit) and (other := outside.get(_kept(commit)))]
    ids = patch_ids(repository, [sha for commit, other in pairs for sha in (commit.sha, other.sha)])
    proven = {
        commit.sha: Rebased(_number(other))
        for commit, other in pairs
        if commit.sha in ids and ids[commit.sha] == ids.get(other.sha)
    }
    return dict(_in_one_run(line, proven))


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


def _kept(commit: Commit) -> tuple[str, int, str]:
    return commit.email, commit.authored, commit.subject


def _number(commit: Commit) -> int:
    found = _PULL.match(commit.source)
    return int(found[1]) if found else 0


def _in_one_run(line: list[Commit], proven: dict[str, Rebased]) -> Iterator[tuple[str, Rebased]]:
    """A pull request is merged once: of several runs of its commits on the line, only the newest is it."""
    done: set[int] = set()
    for mark, run in groupby(line, key=lambda commit: proven.get(commit.sha)):
        if mark is None or mark.number in done:
            continue
        done.add(mark.number)
        for commit in run:
            yield commit.sha, mark
