"""Ranking of repositories: the facts that GitHub, dumps and clones report of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from core.config import Settings
from core.errors import InputError
from core.settings.machine import HostSettings
from core.settings.mining import GitHubSettings
from mergemill.execution.services import make_services
from miner.repos.find import FetchFacts, find_repositories, parse_source_words
from miner.repos.rank import RankedRepository, rank_repositories


def rank_words(
    words: Sequence[str], dumps: Sequence[Path], settings: Settings, *, top: int, use_api: bool
) -> tuple[list[RankedRepository], list[InputError]]:
    """Rank the repositories that words and dumps name.

    Args:
        words: `OWNER/NAME`, `git:PATH` or `@FILE` each.
        dumps: files of GH Archive.
        settings: clones, languages, licences and access to GitHub.
        top: number of repositories of the dumps, the most active repositories.
        use_api: whether GitHub is queried.

    Returns:
        The repositories, best first, and an error for each word or line that could not be read.
    """
    services = make_services(settings, engine=False)
    facts, errors = [], []
    with _open_github(settings.github, settings.host, use_api=use_api) as fetch_facts:
        for outcome in find_repositories(parse_source_words(words), dumps, services.clones, fetch_facts, top):
            if isinstance(outcome, InputError):
                errors.append(outcome)
            else:
                facts.append(outcome)
    return rank_repositories(facts, settings, services.clock()), errors


@contextmanager
def _open_github(github: GitHubSettings, host: HostSettings, *, use_api: bool) -> Iterator[FetchFacts | None]:
    """Yield the function that fetches a repository's facts, or None without the API."""
    if not use_api:
        yield None
        return
    from miner.github.api import GitHubApi  # noqa: PLC0415 - without the API nobody pays for PyGithub
    from miner.repos.github import fetch_github_facts  # noqa: PLC0415

    with GitHubApi(github, host) as api:
        yield partial(fetch_github_facts, api=api)
