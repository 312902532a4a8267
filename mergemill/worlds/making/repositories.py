"""Subjects that the repositories of the task database are about: README of a base tree, else problem statements."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from core.errors import InputError
from taskdb.queries.sources import find_newest_candidates
from worlds.discovery.repositories import RepositoryText

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Candidate
    from taskdb.store import Store

log = logging.getLogger(__name__)

STATEMENTS = 5
"""Newest candidates of a repository whose problem statements stand for it where there is no README."""
_README = re.compile(r"readme(\.(md|rst|txt|markdown))?", re.IGNORECASE)


def read_repositories(store: Store, services: Services) -> list[RepositoryText]:
    """Return a text for each repository with candidates, by name; no repository is cloned for it.

    Raises:
        InputError: there is no candidate.
        Transient: the disk failed.
    """
    repositories: dict[str, list[Candidate]] = {}
    for candidate in find_newest_candidates(store, STATEMENTS):
        repositories.setdefault(candidate.repo, []).append(candidate)
    if not repositories:
        raise InputError("the database has no candidates", advice="mine sources first: mergemill mine SOURCE...")
    return [
        RepositoryText(
            repo=repo,
            text=_read_readme(candidates[0], services)
            or "\n\n".join(candidate.problem_statement for candidate in candidates),
            license=candidates[0].license,
        )
        for repo, candidates in sorted(repositories.items())
    ]


def _read_readme(candidate: Candidate, services: Services) -> str:
    """Return the README at the base commit; empty where there is none, or no tree on this machine."""
    clones = services.clones
    is_here = clones.find_existing(candidate.source, candidate.repo) is not None
    if not is_here and clones.trees.find(candidate.repo, candidate.base_commit) is None:
        return ""
    try:
        tree = clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
        path = min(
            (entry.path for entry in tree.ls_tree(candidate.base_commit) if _README.fullmatch(entry.path)), default=""
        )
        content = tree.read_file(candidate.base_commit, path) if path else None
    except InputError as error:
        log.warning("the README of %s is not read: %s", candidate.repo, error)
        return ""
    return (content or b"").decode(errors="replace")
