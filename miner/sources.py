"""The words that name where changes come from.

::

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

SCHEMES: tuple[str, ...] = ("git", "pypi", "instances")

_KNOWN = "use git:PATH_OR_URL, pypi:NAME, instances:FILE.jsonl or @FILE"
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
    if scheme == "github" and colon:
        raise UsageError(f"{word}: pull requests through the API are not mined yet", advice="use git:URL of its clone")
    if not colon or scheme not in SCHEMES:
        raise UsageError(f"{word!r} is not a source", advice=_KNOWN)
    if not place:
        raise UsageError(f"{word!r} names nothing", advice=_KNOWN)
    if scheme == "pypi" and not _PACKAGE.match(place):
        raise UsageError(f"{place!r} is not the name of a package", advice="use pypi:NAME")
    return scheme, place


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
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the list {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        # A comment begins a line or stands after a space: `#` may be part of a path.
        inner = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not inner:
            continue
        try:
            yield from _opened(inner, (*above, path.resolve()))
        except UsageError as error:
            raise UsageError(f"{path}:{number}: {error}", advice=error.advice) from error
