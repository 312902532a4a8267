"""Find repositories by name, from lists and from dumps, and merge the facts about each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from backends.clones import CloneStore
from core.errors import InputError, UsageError
from miner import sources
from miner.repos.clone import read_clone_facts
from miner.repos.facts import RepositoryFacts
from miner.repos.gharchive import read_dump_facts

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+$")

FetchFacts = Callable[[Sequence[str]], Iterator[RepositoryFacts]]


def parse_source_words(words: Iterable[str]) -> list[str]:
    """Return source words `github:OWNER/NAME` and `git:PATH`, in order, each once.

    `OWNER/NAME` and `@FILE` are accepted, too.

    Raises:
        UsageError: a word names no repository.
        InputError: a list cannot be read.
    """
    spelled = (f"github:{word}" if _NAME.match(word) else word for word in words)
    expanded = sources.expand_sources(spelled)
    other = next((word for word in expanded if word.partition(":")[0] not in ("github", "git")), None)
    if other:
        raise UsageError(f"{other} is no repository", advice="use OWNER/NAME, github:OWNER/NAME, git:PATH or @FILE")
    return expanded


def find_repositories(
    words: Sequence[str], dumps: Sequence[Path], clones: CloneStore, fetch: FetchFacts | None, most: int
) -> Iterator[RepositoryFacts | InputError]:
    """Yield the facts about each repository once, and an error for each unreadable input.

    Args:
        words: words from `parse_source_words`.
        dumps: dumps of GH Archive; they may name many more repositories.
        clones: local clones.
        fetch: fetch GitHub's facts about `owner/name`s; None: no requests.
        most: number of the busiest repositories taken from those that only dumps name.

    Raises:
        InputError: no token is accepted.
        Transient: GitHub cannot be reached now.
    """
    known: dict[str, RepositoryFacts] = {}
    named = {word.lower() for word in words}
    for facts in read_dump_facts(dumps):
        if isinstance(facts, InputError):
            yield facts
        elif facts.source.lower() in named or len(known) < most:
            known[facts.source.lower()] = facts
    for word in words:
        scheme, _, place = word.partition(":")
        if scheme == "github":
            known.setdefault(word.lower(), RepositoryFacts(repo=place, source=word))
            continue
        try:
            known[word.lower()] = read_clone_facts(clones.open(word), word)
        except InputError as error:
            yield error
    if fetch:
        forge = [facts.repo for facts in known.values() if facts.source.startswith("github:")]
        for name, answer in zip(forge, fetch(forge), strict=True):
            known[f"github:{name}".lower()] = known[f"github:{name}".lower()].merge_with(answer)
    yield from _merge_duplicates(known.values())


def _merge_duplicates(repository_facts: Iterable[RepositoryFacts]) -> Iterator[RepositoryFacts]:
    """Merge facts about two names of a (renamed) repository, once GitHub has returned its current name."""
    seen: set[str] = set()
    for facts in repository_facts:
        if facts.source.lower() not in seen:
            seen.add(facts.source.lower())
            yield facts
