"""Source words: where changes are read from.

::

    github:OWNER/NAME        pull requests through the API and a bare clone
    git:PATH_OR_URL          a repository's history
    pypi:NAME                a package's releases
    instances:FILE.jsonl     published tasks in SWE-bench's fields
    head:PATH_OR_URL#BRANCH  the newest commit of a branch, for its environment; without #BRANCH of the default branch
    @FILE                    a list of sources, a line each, `#` comments
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from backends.clones import is_url, split_head
from core.errors import InputError, UsageError
from core.files import read_input

SCHEMES: tuple[str, ...] = ("github", "git", "pypi", "instances", "head")

SOURCE_FORMS = "github:OWNER/NAME, git:PATH_OR_URL, pypi:NAME, instances:FILE.jsonl, head:PATH_OR_URL[#BRANCH] or @FILE"
"""Forms of source words, for messages."""
_ADVICE = f"use {SOURCE_FORMS}"
_REPOSITORY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}$)[\w.-]{1,100}(?<!\.git)$", re.ASCII)
_PACKAGE = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")


def expand_sources(words: Iterable[str]) -> list[str]:
    """Return the sources that the words name, lists expanded, each once, in the given order.

    Raises:
        UsageError: a word is not a source; inside a list, file and line are named.
        InputError: a list cannot be read.
    """
    return list(dict.fromkeys(source for word in words for source in _read_list(word, ())))


def parse_source(word: str) -> tuple[str, str]:
    """Return scheme and place of a source word.

    Raises:
        UsageError: the scheme is missing or unknown, or nothing follows it.
    """
    scheme, colon, place = word.partition(":")
    if not colon or scheme not in SCHEMES:
        raise UsageError(f"{word!r} is not a source", advice=_ADVICE)
    if not place:
        raise UsageError(f"{word!r} names nothing", advice=_ADVICE)
    if scheme == "pypi" and not _PACKAGE.match(place):
        raise UsageError(f"{place!r} is not the name of a package", advice="use pypi:NAME")
    if scheme == "github" and not _REPOSITORY.match(place):
        raise UsageError(f"{place!r} is not the name of a repository", advice=f"use {_parse_github_address(place)}")
    return scheme, place


def canonicalize_source(word: str, clones: Path) -> str:
    """Return the source word used in records, which does not depend on the current folder.

    A path is absolute, GitHub's own spelling is used, and a renamed repository has its first name.

    Args:
        word: a source word.
        clones: folder of the clones (`settings.storage.store_dir / "clones"`).
    """
    scheme, _, place = word.partition(":")
    if scheme == "head":
        location, revision = split_head(word)
        end = f"#{revision}" if revision else ""
        return f"head:{location if is_url(location) else _make_absolute(location)}{end}"
    if scheme == "instances" or (scheme == "git" and not is_url(place)):
        return f"{scheme}:{_make_absolute(place)}"
    if scheme != "github":
        return word
    from miner.github.repository_folders import RepositoryFolders  # noqa: PLC0415 - the other words need no journal

    return f"github:{RepositoryFolders(clones).find_first_name(place)}"


def _make_absolute(place: str) -> str:
    """Return an absolute path; links keep their names, unless `..` follows a link: then the link is replaced."""
    absolute = Path(os.path.abspath(place))  # noqa: PTH100 - `resolve` would follow links
    resolved = Path(place).resolve()
    return str(absolute if absolute.resolve() == resolved else resolved)


def _parse_github_address(place: str) -> str:
    """Derive `github:OWNER/NAME` from a pasted address, as far as possible."""
    match = re.match(r"^(?:https?://|git@|//)?[\w.-]+\.[\w.-]+[/:]([\w-]+/[\w.-]+?)(?:\.git)?(?:[/?#].*)?$", place)
    return f"github:{match[1]}" if match and _REPOSITORY.match(match[1]) else "github:OWNER/NAME"


def _read_list(word: str, above: tuple[Path, ...]) -> Iterator[str]:
    if not word.startswith("@"):
        parse_source(word)
        yield word
        return
    path = Path(word[1:])
    if path.resolve() in above:
        raise UsageError(f"{path} lists itself")
    try:
        lines = read_input(path).decode().splitlines()
    except OSError as error:
        raise InputError(f"cannot read the list {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read the list {path}: it is not UTF-8") from error
    for number, line in enumerate(lines, 1):
        # A comment begins a line or follows a space: `#` may be part of a path.
        inner = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not inner:
            continue
        try:
            yield from _read_list(inner, (*above, path.resolve()))
        except UsageError as error:
            raise UsageError(f"{path}:{number}: {error}", advice=error.advice) from error
