"""`git:` sources as changes under decision: the history read in bulk, patches made in a scratch when a rule asks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from mergemill.errors import InputError
from miner.changes import Change, Reason, within
from miner.git.clone import reading
from miner.git.history import pull_requests, repo_name

if TYPE_CHECKING:
    from backends.services import Services


def changes_of_commits(source: str, services: Services) -> Iterator[Change | InputError]:
    """Every change of a `git:` source between `since` and `until`, newest first.

    Raises:
        InputError: the repository cannot be read whole.
        Transient: it could not be cloned or fetched.
    """
    repository = services.clones.open(source, fresh=True)
    repo = repo_name(repository, source.partition(":")[2])
    wanted = partial(within, services.settings)
    with reading(repository) as clone:
        for request, files, whole_branch in pull_requests(repository, source, repo, wanted):
            settled = (Reason.BRANCH_MERGE, "its pull requests are told one by one") if whole_branch else None
            yield clone.change(request, files, settled)
