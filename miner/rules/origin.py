"""Rules on where a change comes from: who made it, and whether it is one."""

from __future__ import annotations

import re

from backends.git import EMPTY_TREE
from mergemill.config import Settings
from miner.changes import Change
from taskdb.discussion import AuthorKind
from taskdb.records import Shape

_BOT = re.compile(
    r"\[bot\]|\b(dependabot|renovate|pre-commit-ci|pyup|github-actions|greenkeeper|snyk|weblate|codecov|"
    r"allcontributors|imgbot|deepsource|restyled|pep8speaks|meeseeksmachine|lumberbot)\b|-bot$|^bot-",
    re.IGNORECASE,
)
_BOT_TITLE = re.compile(r"from \S+/(dependabot|renovate|pyup|pre-commit-ci|snyk|greenkeeper)[-/]|^\[pre-commit\.ci\]")
"""A bot's branch or its usual title. The text is not asked: people's pull requests tell of bots' commits in them."""
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
_REVERTED = r"\AReverts \S*#\d+[ \t]*$|\AThis reverts (commit|merge) [0-9a-f]{7,40}\b"
_PORTED = r"\A(((manual|automatic) )?backport|cherry[- ]pick)( of)? (PR )?\S*#\d+"
_OPENINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("reverts another change", re.compile(_REVERTED, re.MULTILINE)),
    ("is a backport", re.compile(_PORTED, re.IGNORECASE)),
)
"""What a forge or a tool writes first into the text of such a change, whatever its title became."""


def has_a_base(change: Change, _: Settings) -> str | None:
    """There is something to compare with."""
    return "it is the history's first commit" if change.pull_request.base_commit == EMPTY_TREE else None


def changes_something(change: Change, _: Settings) -> str | None:
    """It has a difference at all."""
    return None if change.files else "no file is changed"


def by_a_person(change: Change, _: Settings) -> str | None:
    """No bot made it: by the forge's word, by the author's name, by its title."""
    request = change.pull_request
    if request.author_kind is AuthorKind.BOT or _BOT.search(request.author):
        return f"written by {request.author}"
    return "its title is a bot's" if _BOT_TITLE.search(request.title) else None


def is_a_change_of_its_own(change: Change, _: Settings) -> str | None:
    """No revert, backport or version bump, by its title or by how its text begins."""
    request = change.pull_request
    if request.shape is Shape.RELEASE:
        return None
    title, plain, body = request.title, _CONVENTIONAL.sub("", request.title), request.body.lstrip()
    said = [(what, title) for what, pattern in _TITLES if pattern.search(title) or pattern.search(plain)]
    said += [(what, body.partition("\n")[0]) for what, pattern in _OPENINGS if pattern.search(body)]
    return next((f"{what}: {text[:80]}" for what, text in said), None)
