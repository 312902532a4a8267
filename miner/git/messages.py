"""Parse commit messages: number of the pull request, title, text and trailers."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBER: tuple[re.Pattern[str], ...] = (
    re.compile(r"\AMerge pull request #(\d+) (?:from|in)\b"),  # GitHub, merge commit
    re.compile(r"\AMerged in .*\(pull request #(\d+)\)\s*$", re.MULTILINE),  # Bitbucket
    re.compile(r"\APull request #(\d+):"),  # Bitbucket Server
    re.compile(r"\A[^\n]*\(#(\d+)\)\s*$", re.MULTILINE),  # GitHub, squash; the last number of the subject
    re.compile(r"\A[^\n]*\(pull request #(\d+)\)\s*$", re.MULTILINE),
    re.compile(r"^See merge request (?:[\w./-]+)?!(\d+)\s*$", re.MULTILINE),  # GitLab
)
_FRAME = re.compile(
    r"\AMerge pull request #\d+ (?:from|in)\b[^\n]*\n?|\AMerged in [^\n]*\n?|\APull request #\d+:[ ]*|"
    r"\AMerge (?:remote-tracking )?branch(?:es)? [^\n]*\n?"
)
_TRAILER = re.compile(
    r"^\s*(Signed-off-by|Co-authored-by|Reviewed-by|Acked-by|Tested-by|Reported-by|Approved-by|Change-Id|Cc|"
    r"See merge request|git-svn-id|\(cherry picked from commit|Pull-request|PR-URL|Reviewed-on|pre-commit-ci|"
    r"updates?-dependencies)\b.*$",
    re.IGNORECASE,
)
_CONFLICTS = re.compile(r"^#?\s*Conflicts:[ ]*\n(?:#?[ \t]+\S.*\n?)*", re.MULTILINE)
_OWN_NUMBER = re.compile(r"\s*\((?:pull request )?#\d+\)\s*$")
_BRANCH_MERGE = re.compile(
    r"^Merge (?:remote-tracking )?branch(?:es)? '|^Merge (?:remote )?branch\b|^Merge (?:commit|tag) '|"
    r"^(?:Merge|Merging|Merged)\s+\S*\s*(?:\S+\s+)?(?:branch )?(?:in)?to\s+\S+|^Merge \S+$",
    re.IGNORECASE,
)


def parse_pull_request_number(message: str) -> int | None:
    """Return the number of the pull or merge request that this commit merged, or None."""
    if "#" not in message and "!" not in message:
        return None
    return next((int(match[1]) for pattern in _NUMBER if (match := pattern.search(message))), None)


def is_branch_merge_title(title: str) -> bool:
    """Return whether a merge's title names a whole branch (`Merge stable into main`) instead of a change."""
    return _BRANCH_MERGE.search(title) is not None


def extract_text(message: str) -> tuple[str, str]:
    """Return title and body of a message, without the first line that git or the forge adds and without trailers."""
    inner = _FRAME.sub("", message, count=1)
    if "Conflicts:" in inner:
        inner = _CONFLICTS.sub("", inner)
    if "\n" not in inner:  # most messages are one line
        return ("" if _TRAILER.match(inner) else _OWN_NUMBER.sub("", inner).strip()), ""
    kept = "\n".join(line.rstrip() for line in inner.splitlines() if not _TRAILER.match(line)).strip()
    title, _, body = kept.partition("\n")
    return _OWN_NUMBER.sub("", title).strip(), re.sub(r"\n{3,}", "\n\n", body).strip()


def join_messages(messages: Iterable[str], *, known: str) -> str:
    """Join the messages of a branch's commits, oldest first; parts contained in `known` are left out."""
    parts: list[str] = []
    for message in messages:
        title, body = extract_text(message)
        if not title or is_branch_merge_title(message) or title.startswith(("fixup!", "squash!")):
            continue
        parts += [part for part in (title, body) if part and part not in known and part not in parts]
    return "\n\n".join(parts)
