"""Facts about a repository from a local clone; of file contents, only the licence is read."""

from __future__ import annotations

import re
from collections import Counter

from backends.git import GitRepository, TreeEntry
from languages.paths import is_test_file
from languages.registry import detect_file_language
from miner.git import messages
from miner.git.history import find_repo_name
from miner.git.log import read_history
from miner.licenses import LicenseFinder
from miner.repos.facts import RepositoryFacts

_CI_CONFIG = re.compile(
    r"^\.github/workflows/[^/]+\.ya?ml$|^(\.travis|\.gitlab-ci|appveyor|\.appveyor|azure-pipelines)\.ya?ml$|"
    r"^\.circleci/|^tox\.ini$|^noxfile\.py$|^\.cirrus\.ya?ml$"
)


def read_clone_facts(repository: GitRepository, source: str) -> RepositoryFacts:
    """Read facts from HEAD's tree and history.

    Args:
        repository: the clone, checked to be complete.
        source: its source word, `git:PATH`.
    """
    head = repository.resolve("HEAD")
    files = repository.ls_tree(head)
    line = [step.commit for step in read_history(repository, head).mainline]
    numbers = {n for commit in line if (n := messages.parse_pull_request_number(commit.message)) is not None}
    return RepositoryFacts(
        repo=find_repo_name(repository, source.partition(":")[2]),
        source=source,
        merged=len(numbers) or len(line),
        contributors=len({commit.email.lower() for commit in line}),
        pushed_at=max(commit.committed_at for commit in line),
        has_tests=any(is_test_file(file.path) for file in files),
        has_ci=any(_CI_CONFIG.search(file.path) for file in files),
        license=LicenseFinder(repository).find_license(head),
        language=_find_main_language(files),
        kilobytes=_measure_kilobytes(repository),
        archived=None,
    )


def _find_main_language(files: list[TreeEntry]) -> str | None:
    """Return the language with most bytes."""
    counted: Counter[str] = Counter()
    for file in files:
        if language := detect_file_language(file.path):
            counted[language] += file.size
    return min(counted, key=lambda name: (-counted[name], name), default=None)


def _measure_kilobytes(repository: GitRepository) -> int:
    """Return the size of packs and loose objects."""
    counts = dict(row.split(": ", 1) for row in repository.run_git("count-objects", "-v").decode().splitlines())
    return int(counts["size"]) + int(counts["size-pack"])
