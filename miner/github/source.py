"""Changes of `github:` sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from core.errors import InputError
from miner.changes import Change
from miner.github.api import GitHubApi
from miner.github.reader import GitHubReader

if TYPE_CHECKING:
    from backends.services import Services


def read_pull_requests(source: str, services: Services) -> Iterator[Change | InputError | str]:
    """Yield every merged pull request of a `github:` source between `since` and `until`, newest merge first.

    Lazy: stopping early saves most of the requests.

    Raises:
        InputError: there is no such repository, the tokens cannot read it, or a token is bad.
        MachineError: no token is set.
        Transient: the network failed, or a limit lasts longer than `github_patience`.
    """
    with (
        GitHubApi(services.settings.github, services.settings.host) as api,
        closing(GitHubReader(source, services, api)) as reading,
    ):
        yield from reading.read_changes()
