"""What a clone on this machine tells of its repository, without reading a single file's content but the licence's."""

from __future__ import annotations

import re
from collections import Counter

from backends.git import Repository, TreeEntry
from languages.paths import is_test_file
from languages.registry import language_of_file
from miner.git import messages
from miner.git.history import repo_name
from miner.git.log import read
from miner.licenses import Licenses
from miner.repos.facts import Facts

_CI = re.compile(
    r"^\.github/workflows/[^/]+\.ya?ml$|^(\.travis|\.gitlab-ci|appveyor|\.appveyor|azure-pipelines)\.ya?ml$|"
    r"^\.circleci/|^tox\.ini$|^noxfile\.py$|^\.cirrus\.ya?ml$"
)


def facts_of_clone(repository: Repository, source: str) -> Facts:
    """Facts from HEAD's tree and history.

    Args:
        repository: the clone, checked to be whole.
        source: its source word, `git:PATH`.
    """
    head = repository.resolve("HEAD")
    files = repository.ls_tree(head)
    line = [step.commit for step in read(repository, head).line]
    numbers = {n for commit in line if (n := messages.pull_request_number(commit.message)) is not None}
    return Facts(
        repo=repo_name(repository, source.partition(":")[2]), source=source, merged=len(numbers) or len(line),
        people=len({commit.email.lower() for commit in line}), pushed_at=max(commit.when for commit in line),
        has_tests=any(is_test_file(file.path) for file in files), has_ci=any(_CI.search(file.path) for file in files),
        license=Licenses(repository).of(head), language=_main_language(files), kilobytes=_kilobytes(repository),
        archived=None,
    )  # fmt: skip


def _main_language(files: list[TreeEntry]) -> str | None:
    """The language with most bytes."""
    counted: Counter[str] = Counter()
    for file in files:
        if language := language_of_file(file.path):
            counted[language] += file.size
    return min(counted, key=lambda name: (-counted[name], name), default=None)


def _kilobytes(repository: Repository) -> int:
    """Size of the packs and loose objects."""
    told = dict(row.split(": ", 1) for row in repository.git("count-objects", "-v").decode().splitlines())
    return int(told["size"]) + int(told["size-pack"])
