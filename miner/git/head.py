"""Heads: the newest commit of a branch, whose tree gives an environment and no change.

Gold and test patch are empty and base and merge commit are the head, so no kind of task that is about a change is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backends.clones import split_head
from backends.git import GitError, GitRepository
from core.errors import InputError
from languages.paths import is_protected, is_test_file
from languages.registry import LANGUAGES, detect_language
from miner.changes import Change, Reason, is_in_date_range
from miner.git.clone import open_reader
from miner.git.history import find_repo_name
from taskdb.records import PullRequest, Shape

if TYPE_CHECKING:
    from backends.services import Services

_DIGITS = 10
"""Hex digits of the commit in the name."""


def read_head(source: str, services: Services) -> Iterator[Change]:
    """Yield the head of a `head:` source, unless it is outside `since` and `until`.

    Raises:
        InputError: the history is incomplete or cannot be read, or has no such branch, tag or commit.
        Transient: cloning or fetching failed.
    """
    repository = services.clones.open(source, fresh=True)
    location, revision = split_head(source)
    request = _describe_head(repository, source, find_repo_name(repository, location), revision)
    if not is_in_date_range(services.settings.source, request.merged_at):
        return
    with open_reader(repository) as clone:
        change = clone.build_change(request, ())
        change.source_rejection = _find_rejection(change)
        yield change


def _describe_head(repository: GitRepository, source: str, repo: str, revision: str) -> PullRequest:
    try:
        head = repository.resolve(revision or "HEAD")
    except GitError as error:
        raise InputError(f"{source}: there is no branch, tag or commit {revision or 'HEAD'}") from error
    shown = repository.run_git("show", "-s", "--no-show-signature", "--format=%ct%n%an", head).decode(errors="replace")
    committed, _, author = shown.strip().partition("\n")
    return PullRequest(
        source=source,
        repo=repo,
        name=f"{repo.replace('/', '__')}-head-{head[:_DIGITS]}",
        number=None,
        shape=Shape.HEAD,
        title=f"Head of {revision or 'the default branch'}",
        body="",
        author=author,
        merged_at=datetime.fromtimestamp(int(committed), UTC).isoformat(timespec="seconds"),
        base_commit=head,
        merge_commit=head,
    )


def _find_rejection(change: Change) -> tuple[Reason, str] | None:
    """Return why the tree of a head gives no environment in which tests run, or None."""
    paths = change.tree_paths
    language = detect_language(paths)
    if language not in LANGUAGES:
        return Reason.LANGUAGE, f"{language} is not supported yet" if language else "the tree has no program"
    if not any(is_test_file(path) and is_protected(path) for path in paths):
        return Reason.NO_TESTS, "the tree has no test file"
    return None
