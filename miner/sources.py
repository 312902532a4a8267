"""The words that name where changes come from.

::

    github:OWNER/NAME        pull requests through the API and a bare clone
    git:PATH_OR_URL          a repository's history
    pypi:NAME                a package's releases
    instances:FILE.jsonl     published tasks in SWE-bench's fields
    @FILE                    a list of sources, one a line, `#` comments
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mergemill.errors import InputError, UsageError

SCHEMES: tuple[str, ...] = ("github", "git", "pypi", "instances")

FORMS = "github:OWNER/NAME, git:PATH_OR_URL, pypi:NAME, instances:FILE.jsonl or @FILE"
"""The words, for people."""
_KNOWN = f"use {FORMS}"
_REPOSITORY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}$)[\w.-]{1,100}(?<!\.git)$", re.ASCII)
_PACKAGE = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")


def expand(words: Iterable[str]) -> list[str]:
    """The sources that the words name, lists opened, each once, in the order given.

    Raises:
        UsageError: a word is no source; inside a list the file and line are named.
        InputError: a list cannot be read.
    """
    return list(dict.fromkeys(source for word in words for source in _opened(word, ())))


def parse(word: str) -> tuple[str, str]:
    """Scheme and place of one source word.

    Raises:
        UsageError: it has no scheme that is known, or nothing behind it.
    """
    scheme, colon, place = word.partition(":")
    if not colon or scheme not in SCHEMES:
        raise UsageError(f"{word!r} is not a source", advice=_KNOWN)
    if not place:
        raise UsageError(f"{word!r} names nothing", advice=_KNOWN)
    if scheme == "pypi" and not _PACKAGE.match(place):
        raise UsageError(f"{place!r} is not the name of a package", advice="use pypi:NAME")
    if scheme == "github" and not _REPOSITORY.match(place):
        raise UsageError(f"{place!r} is not the name of a repository", advice=f"use {_github_word(place)}")
    return scheme, place


def canonical(word: str, clones: Path) -> str:
    """The source word that records bear: a renamed repository's first name, and GitHub's own spelling.

    Args:
        word: a source word.
        clones: folder of the clones made here (`settings.store_dir / "clones"`).
    """
    if not word.startswith("github:"):
        return word
    from miner.github.home import Home  # noqa: PLC0415 - the other words need no journal

    return f"github:{Home(clones).first_name(word.removeprefix('github:'))}"


def _github_word(place: str) -> str:
    """What was meant, as far as a pasted address tells."""
    found = re.match(r"^(?:https?://|git@|//)?[\w.-]+\.[\w.-]+[/:]([\w-]+/[\w.-]+?)(?:\.git)?(?:[/?#].*)?$", place)
    return f"github:{found[1]}" if found and _REPOSITORY.match(found[1]) else "github:OWNER/NAME"


def _opened(word: str, above: tuple[Path, ...]) -> Iterator[str]:
    if not word.startswith("@"):
        parse(word)
        yield word
        return
    path = Path(word[1:])
    if path.resolve() in above:
        raise UsageError(f"{path} lists itself")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"cannot read the list {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read the list {path}: it is not UTF-8") from error
    for number, line in enumerate(lines, 1):
        # A comment begins a line or stands after a space: `#` may be part of a path.
        inner = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not inner:
            continue
        try:
            yield from _opened(inner, (*above, path.resolve()))
        except UsageError as error:
            raise UsageError(f"{path}:{number}: {error}", advice=error.advice) from error
