"""Find places where a statement gives the solution away: lines of the gold patch, or links to the change.

Only program text counts: a statement is often made from a changelog entry that the gold patch adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.quotes import normalize_whitespace
from evaluation.solution_lines import MIN_LINE
from languages.paths import is_source

_SECTION = re.compile(r"(?m)^(?=diff --git )")
_NEW_NAME = re.compile(r'(?m)^\+\+\+ "?b/(.*?)"?\t?$')
_CODE = re.compile(r"[=(\[{.]")
"""Characters that occur in a line of program text and rarely in prose."""
GOLD_LINE = "a line of the gold patch"
"""Description of a leak that is not a link."""
_LINK = re.compile(r"https?://[^\s<>()\[\]\"'`]+")
_CHANGE_URL = r"/{name}(\.git)?/(-/)?(pull|pulls|pull-requests|merge_requests|commit|commits|compare)/"


def find_leaks(statement: str, gold_patch: bytes, repo: str, old: frozenset[int]) -> Iterator[tuple[str, str]]:
    """Yield (quote, description) for each place in the statement that gives the solution away.

    Args:
        statement: the problem statement.
        gold_patch: the gold patch.
        repo: `owner/name`; links to changes of other repositories are allowed.
        old: hashes of the base tree's lines, which are not a leak.
    """
    normalized = normalize_whitespace(statement)
    for line in _find_added_code(gold_patch, old):
        if normalize_whitespace(line) in normalized:
            yield line, GOLD_LINE
    name = re.escape(repo.rpartition("/")[2])
    change = re.compile(_CHANGE_URL.format(name=name), re.IGNORECASE)
    for link in dict.fromkeys(_LINK.findall(statement)):
        if change.search(link) or re.search(r"\.(patch|diff)$", link):
            yield link, "a link to a change of the repository"


def _find_added_code(patch: bytes, old: frozenset[int]) -> list[str]:
    """Return added lines of program text that the base tree does not have, without duplicates."""
    lines: dict[str, None] = {}
    for section in _SECTION.split(patch.decode(errors="replace")):
        name = _NEW_NAME.search(section)
        if name is None or not is_source(name[1]):
            continue
        for line in section[name.end() :].splitlines():
            text = line[1:].strip()
            is_new = line.startswith("+") and len(text) >= MIN_LINE and hash(text.encode()) not in old
            if is_new and _CODE.search(text) and not text.startswith("#"):
                lines[text] = None
    return list(lines)
