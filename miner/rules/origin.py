"""Rules on the origin of a change: its author, and whether it is new work."""

from __future__ import annotations

import re

from backends.git import EMPTY_TREE
from core.settings.mining import MiningSettings
from miner.changes import Change
from taskdb.records import Shape
from taskdb.records.discussion import AuthorKind

_BOT = re.compile(
    r"\[bot\]|\b(dependabot|renovate|pre-commit-ci|pyup|github-actions|greenkeeper|snyk|weblate|codecov|"
    r"allcontributors|imgbot|deepsource|restyled|pep8speaks|meeseeksmachine|lumberbot)\b|-bot$|^bot-",
    re.IGNORECASE,
)
_BOT_TITLE = re.compile(r"from \S+/(dependabot|renovate|pyup|pre-commit-ci|snyk|greenkeeper)[-/]|^\[pre-commit\.ci\]")
"""A bot's branch or usual title. The text is not searched: people's pull requests list bots' commits in it."""
_VERSION = (
    r"^(bump|update|upgrade|pin|unpin)\b.*\b((from|to) [~=<>^]*v?\d|"
    r"(versions?|version number|requirements?|dependenc(y|ies)|deps|changelog)$)|^bump\b.*\bversion\b|"
    r"^(release|version|prepare( for)?|start|begin|bump)\s+v?\d|^v?\d+(\.\d+)+$|"
    r"^(prepar\w+|cut|tag) .*\brelease\b|^release version\b"
)
_PORT = r"^\[?(back|forward)[- ]?port\b|^\[\d+\.[\dx.]+\]\s|\b(back|forward)[- ]?port of\b|\b(back|forward)port #?\d+"
_CONVENTIONAL = re.compile(r"^\w+(\([^)]*\))?!?: +")
_TITLES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("reverts another change", re.compile(r"^revert(s|ed|ing)?\b", re.IGNORECASE)),
    ("is a backport", re.compile(_PORT, re.IGNORECASE)),
    ("bumps a version", re.compile(_VERSION, re.IGNORECASE)),
)
_REVERT_TEXT = r"\AReverts \S*#\d+[ \t]*$|\AThis reverts (commit|merge) [0-9a-f]{7,40}\b"
_BACKPORT_TEXT = r"\A(((manual|automatic) )?backport|cherry[- ]pick)( of)? (PR )?\S*#\d+"
_OPENINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("reverts another change", re.compile(_REVERT_TEXT, re.MULTILINE)),
    ("is a backport", re.compile(_BACKPORT_TEXT, re.IGNORECASE)),
)
"""First line that a forge or a tool writes into the text of such a change; titles are often edited."""


def has_base_commit(change: Change, _: MiningSettings) -> str | None:
    """Pass when there is a base commit or an earlier release."""
    return "it is the first commit or release" if change.pull_request.base_commit == EMPTY_TREE else None


def changes_any_file(change: Change, _: MiningSettings) -> str | None:
    """Pass when at least one file changes."""
    return None if change.files else "no file is changed"


def is_written_by_person(change: Change, _: MiningSettings) -> str | None:
    """Pass when no bot wrote it, by the forge's account type, the author's name and the title."""
    request = change.pull_request
    if request.author_kind is AuthorKind.BOT or _BOT.search(request.author):
        return f"written by {request.author}"
    return "its title is one that a bot writes" if _BOT_TITLE.search(request.title) else None


def is_original_change(change: Change, _: MiningSettings) -> str | None:
    """Pass when neither title nor first line is that of a revert, backport or version bump."""
    request = change.pull_request
    if request.shape is Shape.RELEASE:
        return None
    title, plain, body = request.title, _CONVENTIONAL.sub("", request.title), request.body.lstrip()
    signs = [(what, title) for what, pattern in _TITLES if pattern.search(title) or pattern.search(plain)]
    signs += [(what, body.partition("\n")[0]) for what, pattern in _OPENINGS if pattern.search(body)]
    return next((f"{what}: {text[:80]}" for what, text in signs), None)
