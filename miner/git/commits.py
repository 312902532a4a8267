"""Changes of `git:` sources: the history is read at once, patches are made on demand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from core.errors import InputError
from miner.changes import Change, Reason, is_in_date_range
from miner.git.clone import open_reader
from miner.git.history import find_repo_name, read_pull_requests

if TYPE_CHECKING:
    from backends.services import Services


def read_commits(source: str, services: Services) -> Iterator[Change | InputError]:
    """Yield every change of a `git:` source between `since` and `until`, newest first.

    Raises:
        InputError: the history is incomplete or cannot be read.
        Transient: cloning or fetching failed.
    """
    repository = services.clones.open(source, fresh=True)
    repo = find_repo_name(repository, source.partition(":")[2])
    wanted = partial(is_in_date_range, services.settings.source)
    with open_reader(repository) as clone:
        for request, files, whole_branch in read_pull_requests(repository, source, repo, wanted):
            rejection = (Reason.BRANCH_MERGE, "its pull requests are mined one by one") if whole_branch else None
            yield clone.build_change(request, files, rejection)
