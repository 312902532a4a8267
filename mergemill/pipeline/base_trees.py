"""Base trees of tasks and trees of reviews, kept in the store so that neither clone nor network is needed again."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from core.errors import InputError
from taskdb.queries.sources import iterate_base_commits

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task
    from taskdb.store import Store

log = logging.getLogger(__name__)


def keep_tree(task: Task, services: Services) -> bool:
    """Keep a task's base tree and that of its review; return whether they are kept: without a clone there is a warning.

    Raises:
        Transient: network or disk failed.
    """
    try:
        for commit in task.list_tree_commits():
            services.clones.keep_tree(task.source, task.repo, commit)
    except InputError as error:
        log.warning("the base tree of %s is not kept: %s", task.name, error)
        return False
    return True


def keep_missing_trees(store: Store, services: Services, sources: Collection[str]) -> int:
    """Keep the trees of all tasks of some sources whose clones are on this machine; return how many were added.

    Args:
        store: database of the tasks.
        services: services whose clones are read.
        sources: sources as the records spell them.

    Raises:
        Transient: the disk is full or not writable.
    """
    commits = list(iterate_base_commits(store, sources))
    kept = {repo: services.clones.trees.list_kept(repo) for repo in {repo for _, repo, _ in commits}}
    n_added = 0
    for source, repo, commit in commits:
        if commit in kept[repo] or services.clones.find_existing(source, repo) is None:
            continue
        try:
            services.clones.keep_tree(source, repo, commit)
        except InputError as error:
            log.warning("the base tree of %s at %s is not kept: %s", repo, commit[:12], error)
        else:
            n_added += 1
    return n_added
