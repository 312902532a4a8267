"""Whether a statement gives the solution away: lines of the gold patch, or a link to the change that holds it.

Only program text counts: a changelog entry that the gold patch adds is often what the statement itself was taken from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages.paths import is_source
from verifiers.layers import MIN_LINE

_SECTION = re.compile(r"(?m)^(?=diff --git )")
_NEW_NAME = re.compile(r'(?m)^\+\+\+ "?b/(.*?)"?$')
_CODE = re.compile(r"[=(\[{.]")
"""What a line of program text has and a word of prose has not."""
GOLD_LINE = "a line of the gold patch"
"""What a leak is that is no link."""
_LINK = re.compile(r"https?://[^\s<>()\[\]\"'`]+")
_OF_A_CHANGE = r"/{name}(\.git)?/(-/)?(pull|pulls|pull-requests|merge_requests|commit|commits|compare)/"


def leaks(statement: str, gold_patch: bytes, repo: str, old: frozenset[int]) -> Iterator[tuple[str, str]]:
    """(quote, what it is) for each place in the statement that gives the solution away.

    Args:
        statement: the problem statement.
        gold_patch: the solution.
        repo: `owner/name`; links to changes of other repositories give nothing away.
        old: hashes of the base tree's lines: what stands there already is no leak.
    """
    told = squeezed(statement)
    for line in _new_code(gold_patch, old):
        if squeezed(line) in told:
            yield line, GOLD_LINE
    name = re.escape(repo.rpartition("/")[2])
    change = re.compile(_OF_A_CHANGE.format(name=name), re.IGNORECASE)
    for link in dict.fromkeys(_LINK.findall(statement)):
        if change.search(link) or re.search(r"\.(patch|diff)$", link):
            yield link, "a link to a change of the repository"


def _new_code(patch: bytes, old: frozenset[int]) -> list[str]:
    """Added lines of program text that the base tree does not have, each once."""
    found: dict[str, None] = {}
    for section in _SECTION.split(patch.decode(errors="replace")):
        name = _NEW_NAME.search(section)
        if name is None or not is_source(name[1]):
            continue
        for line in section[name.end() :].splitlines():
            text = line[1:].strip()
            new = line.startswith("+") and len(text) >= MIN_LINE and hash(text.encode()) not in old
            if new and _CODE.search(text) and not text.startswith("#"):
                found[text] = None
    return list(found)


def squeezed(text: str) -> str:
    """The text with every run of white space made one blank."""
    return " ".join(text.split())
