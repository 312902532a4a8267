"""Repositories by name, from lists and from dumps, each with all that is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from backends.clones import Clones
from mergemill.errors import InputError, UsageError
from miner import sources
from miner.repos.clone import facts_of_clone
from miner.repos.facts import Facts
from miner.repos.gharchive import facts_of_dumps

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+$")

AskGitHub = Callable[[Sequence[str]], Iterator[Facts]]


def words_of(words: Iterable[str]) -> list[str]:
    """Source words `github:OWNER/NAME` and `git:PATH`, in order, each once; `OWNER/NAME` and `@FILE` are understood.

    Raises:
        UsageError: a word names no repository.
        InputError: a list cannot be read.
    """
    spelled = (f"github:{word}" if _NAME.match(word) else word for word in words)
    found = sources.expand(spelled)
    other = next((word for word in found if word.partition(":")[0] not in ("github", "git")), None)
    if other:
        raise UsageError(f"{other} is no repository", advice="use OWNER/NAME, github:OWNER/NAME, git:PATH or @FILE")
    return found


def find(
    words: Sequence[str], dumps: Sequence[Path], clones: Clones, ask: AskGitHub | None, most: int
) -> Iterator[Facts | InputError]:
    """All that is known of the repositories, each once; what cannot be read on the way.

    Args:
        words: what `words_of` gave.
        dumps: GH Archive's; they may name many more repositories.
        clones: where local clones are.
        ask: GitHub's answers to `owner/name`s; None: nobody is asked.
        most: of the repositories that only dumps name, so many of the busiest are taken.

    Raises:
        InputError: no token is accepted.
        Transient: GitHub cannot be asked now.
    """
    known: dict[str, Facts] = {}
    named = {word.lower() for word in words}
    for told in facts_of_dumps(dumps):
        if isinstance(told, InputError):
            yield told
        elif told.source.lower() in named or len(known) < most:
            known[told.source.lower()] = told
    for word in words:
        scheme, _, place = word.partition(":")
        if scheme == "github":
            known.setdefault(word.lower(), Facts(repo=place, source=word))
            continue
        try:
            known[word.lower()] = facts_of_clone(clones.open(word), word)
        except InputError as error:
            yield error
    if ask:
        forge = [facts.repo for facts in known.values() if facts.source.startswith("github:")]
        for name, answer in zip(forge, ask(forge), strict=True):
            known[f"github:{name}".lower()] = known[f"github:{name}".lower()].but(answer)
    yield from _each_once(known.values())


def _each_once(found: Iterable[Facts]) -> Iterator[Facts]:
    """Two names of one repository (it was renamed) fall together once GitHub has told its present one."""
    seen: set[str] = set()
    for facts in found:
        if facts.source.lower() not in seen:
            seen.add(facts.source.lower())
            yield facts
