"""`github:` sources as changes under decision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from mergemill.errors import InputError
from miner.changes import Change
from miner.github.api import Api
from miner.github.reading import Reading

if TYPE_CHECKING:
    from backends.services import Services


def changes_of_pull_requests(source: str, services: Services) -> Iterator[Change | InputError | str]:
    """Every merged pull request of a `github:` source between `since` and `until`, newest merge first.

    Lazy: a caller who stops early has paid for little more than what it took.

    Raises:
        InputError: there is no such repository, or the tokens may not see it; a token is bad.
        MachineError: there is no token.
        Transient: the network failed, or a limit lasts longer than `github_patience`.
    """
    with Api(services.settings) as api, closing(Reading(source, services, api)) as reading:
        yield from reading.changes()
