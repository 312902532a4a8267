"""Which changes can become tasks. Reading RULES is reading the policy: the first rule that speaks decides.

The rules stand in the order of their cost: first those that look at the record and at paths, then those for which
patches are made, at the end the licence and the round trip.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from backends.git import EMPTY_TREE
from mergemill.config import Settings
from miner import messages
from miner.changes import Change, Reason, Unparsable
from miner.languages import language_of
from miner.licenses import allows
from taskdb.paths import is_protected, is_source, is_test_file
from taskdb.records import Shape

MIN_STATEMENT_WORDS = 3
"""Fewer words than that say nothing that could be worked on."""

_BOT = re.compile(
    r"\[bot\]|\b(dependabot|renovate|pre-commit-ci|pyup|github-actions|greenkeeper|snyk|weblate|codecov|"
    r"allcontributors|imgbot|deepsource|restyled|pep8speaks|meeseeksmachine|lumberbot)\b|-bot$|^bot-",
    re.IGNORECASE,
)
_BOT_BRANCH = re.compile(r"from \S+/(dependabot|renovate|pyup|pre-commit-ci|snyk|greenkeeper)[-/]|\[pre-commit\.ci\]")
_VERSION = (
    r"^(bump|update|upgrade|pin|unpin)\b.*\b((from|to) [~=<>^]*v?\d|"
    r"(versions?|version number|requirements?|dependenc(y|ies)|deps|changelog)$)|^bump\b.*\bversion\b|"
    r"^(release|version|prepare( for)?|start|begin|bump)\s+v?\d|^v?\d+(\.\d+)+$|"
    r"^(prepar\w+|cut|tag) .*\brelease\b|^release version\b"
)
_PORT = r"^\[?(back|forward)[- ]?port\b|^\[\d+\.[\dx.]+\]\s|\b(back|forward)[- ]?port of\b|\b(back|forward)port #?\d+"
_CONVENTIONAL = re.compile(r"^\w+(\([^)]*\))?!?: +")
_NOT_A_CHANGE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("reverts another change", re.compile(r"^revert(s|ed|ing)?\b", re.IGNORECASE)),
    ("is a backport", re.compile(_PORT, re.IGNORECASE)),
    ("bumps a version", re.compile(_VERSION, re.IGNORECASE)),
)
_GENERATED = re.compile(
    r"(^|/)(_?vendor(ed)?|_?vendored_packages|third_?party|extern(al)?s?|node_modules|site-packages)/|"
    r"_pb2(_grpc)?\.pyi?$|(^|/)(_?parsetab|_?lextab|_version)\.py$|\.min\.(js|css)$|\.lock$"
)
_VERSION_LINE = re.compile(r"^\s*$|\bversion(_info)?\b|^\s*#|\b\d+\.\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason and the question behind it: None, or in a few words why the change is not suitable."""

    reason: Reason
    check: Callable[[Change, Settings], str | None]
    of_published: bool = False
    """Whether published tasks are asked too; somebody has chosen those already."""


def has_a_base(change: Change, _: Settings) -> str | None:
    """There is something to compare with."""
    return "it is the history's first commit" if change.pull_request.base_commit == EMPTY_TREE else None


def changes_something(change: Change, _: Settings) -> str | None:
    """It has a difference at all."""
    return None if change.files else "no file is changed"


def by_a_person(change: Change, _: Settings) -> str | None:
    """No bot made it."""
    request = change.pull_request
    if _BOT.search(request.author):
        return f"written by {request.author}"
    return "the branch is a bot's" if _BOT_BRANCH.search(f"{request.title}\n{request.body}") else None


def is_a_change_of_its_own(change: Change, _: Settings) -> str | None:
    """No revert, backport or version bump, by its title."""
    if change.pull_request.shape is Shape.RELEASE:
        return None
    title = change.pull_request.title
    plain = _CONVENTIONAL.sub("", title)
    return next(
        (f"{what}: {title[:80]}" for what, pattern in _NOT_A_CHANGE if pattern.search(title) or pattern.search(plain)),
        None,
    )


def leaves_submodules_alone(change: Change, _: Settings) -> str | None:
    """No submodule is moved: its content lies elsewhere."""
    moved = [file.new_path for file in change.files if "160000" in (file.old_mode, file.new_mode)]
    return f"{moved[0]} is a submodule" if moved else None


def touches_tests(change: Change, _: Settings) -> str | None:
    """A test file is added or changed; fixtures alone hold no test."""
    touched = (file.new_path for file in change.files if file.status != "D")
    if any(is_test_file(path) and is_protected(path) for path in touched):
        return None
    other = language_of(change.paths)
    return "no test file is changed" if other in ("python", "") else f"no Python test file is changed ({other})"


def is_written_by_hand(change: Change, _: Settings) -> str | None:
    """Not all of its sources are vendored or generated."""
    sources = [path for path in change.paths if is_source(path)]
    if sources and all(_GENERATED.search(path) for path in sources):
        return f"{sources[0]} and what else it changes is vendored or generated"
    return None


def is_python(change: Change, _: Settings) -> str | None:
    """Most of what it changes is Python."""
    language = language_of(change.paths)
    return None if language in ("python", "") else f"{language} is not supported yet"


def touches_source(change: Change, _: Settings) -> str | None:
    """A source file is changed that is no test, documentation or packaging."""
    return None if any(is_source(path) for path in change.paths) else "no source file is changed"


def few_files(change: Change, settings: Settings) -> str | None:
    """At most `max_files` files."""
    n = len(change.files)
    return None if n <= settings.max_files else f"{n} files, {settings.max_files} allowed"


def has_a_statement(change: Change, _: Settings) -> str | None:
    """Somebody said what it is about."""
    statement = statement_of(change)
    if change.pull_request.shape is Shape.RELEASE and not statement:
        return "the changelog has no entry for this version"
    words = re.findall(r"[^\W\d_]{2,}", re.sub(r"https?://\S+", "", statement))
    return None if len(words) >= MIN_STATEMENT_WORDS else f"too little is said: {statement[:60]!r}"


def can_be_taken_apart(change: Change, _: Settings) -> str | None:
    """Git's diff and unidiff's reading of it agree, and both sides hold something."""
    try:
        split = change.split
    except Unparsable as fault:
        return str(fault)
    if not split.gold.files:
        return "the gold patch is empty"
    return None if split.test.files else "the test patch is empty"


def small_enough(change: Change, settings: Settings) -> str | None:
    """At most `max_gold_lines` and `max_test_lines` changed lines."""
    sides = (("gold", change.split.gold, settings.max_gold_lines), ("test", change.split.test, settings.max_test_lines))
    return next((f"{p.lines} {side} lines, {most} allowed" for side, p, most in sides if p.lines > most), None)


def changes_more_than_a_version(change: Change, _: Settings) -> str | None:
    """The source lines changed are not all of them about a version number."""
    lines = [text for path, text in change.split.gold.changed if is_source(path)]
    if lines and len(lines) <= 4 and all(_VERSION_LINE.search(line) for line in lines):
        about = sum("version" in line.lower() for line in lines)
        return "only a version number changes" if about else None
    return None


def license_is_allowed(change: Change, settings: Settings) -> str | None:
    """The licence at the base commit is one of `licenses`, where any are named."""
    if not settings.licenses or allows(change.license, settings.licenses):
        return None
    return f"{change.license} is not among {', '.join(settings.licenses)}"


def patches_make_the_merge(change: Change, _: Settings) -> str | None:
    """Applying both patches to the base gives the merge's tree, byte for byte."""
    return change.split.fault or None


RULES: tuple[Rule, ...] = (
    Rule(Reason.NO_BASE, has_a_base),
    Rule(Reason.EMPTY, changes_something, of_published=True),
    Rule(Reason.BOT, by_a_person),
    Rule(Reason.NOT_A_CHANGE, is_a_change_of_its_own),
    Rule(Reason.SUBMODULE, leaves_submodules_alone, of_published=True),
    Rule(Reason.LANGUAGE, is_python, of_published=True),
    Rule(Reason.GENERATED, is_written_by_hand),
    Rule(Reason.NO_SOURCE, touches_source),
    Rule(Reason.NO_TESTS, touches_tests, of_published=True),
    Rule(Reason.TOO_MANY_FILES, few_files),
    Rule(Reason.NO_STATEMENT, has_a_statement, of_published=True),
    Rule(Reason.UNPARSABLE, can_be_taken_apart, of_published=True),
    Rule(Reason.TOO_LARGE, small_enough),
    Rule(Reason.VERSION_BUMP, changes_more_than_a_version),
    Rule(Reason.LICENSE, license_is_allowed, of_published=True),
    Rule(Reason.ROUND_TRIP, patches_make_the_merge, of_published=True),
)


def verdict(change: Change, settings: Settings) -> tuple[Reason, str] | None:
    """None for a candidate, else the reason and detail of the first rule that speaks against the change."""
    if change.settled:
        return change.settled
    published = change.pull_request.shape is Shape.INSTANCE
    for rule in RULES:
        if (rule.of_published or not published) and (detail := rule.check(change, settings)):
            return rule.reason, detail
    return None


def statement_of(change: Change) -> str:
    """The problem statement: the source's own, else title and text of the change."""
    request = change.pull_request
    if request.problem_statement or request.shape is Shape.RELEASE:
        return request.problem_statement.strip()
    title = "" if messages.merges_a_branch(request.title) else request.title
    return f"{title}\n\n{request.body}".strip()
