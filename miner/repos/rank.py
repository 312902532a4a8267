"""How repositories are ranked. Reading MUSTS and SIGNALS is reading the policy.

A repository that fails a must is out, with the reason. The others have a score between 0 and 1: the weighted mean of
those signals that are known. What nobody knows neither helps nor harms; how much was known is shown beside the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from languages.registry import all_languages
from mergemill.config import Settings
from miner.licenses import NONE, allows
from miner.repos.facts import Facts

PERMISSIVE = frozenset({
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "PSF-2.0", "Unlicense",
    "Zlib",
})  # fmt: skip

_YEAR = 365.25
_MANY = 1000
"""Merged pull requests from which more make no difference."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A fact's worth, 0 to 1, and how much it counts."""

    name: str
    weight: float
    worth: Callable[[Facts, str], float | None]
    """By the facts and the day (ISO 8601) on which they are judged; None when the fact is not known."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A repository and what the policy says of it."""

    facts: Facts
    score: float
    signals: dict[str, float]
    """The worth of each signal that is known."""
    out: str = ""
    """Why it is not to be mined; empty when it is."""


def activity(facts: Facts, _: str) -> float | None:
    """Merged pull requests, by orders of magnitude: 10 are a third of what 1,000 are."""
    return None if facts.merged is None else min(1.0, math.log10(1 + facts.merged) / math.log10(_MANY))


def recency(facts: Facts, today: str) -> float | None:
    """Worked on in the last three months: 1; three years ago or before: 0. Old code needs old environments."""
    if facts.pushed_at is None:
        return None
    years = (_day(today) - _day(facts.pushed_at)) / _YEAR
    return min(1.0, max(0.0, (3 - years) / 2.75))


def people(facts: Facts, _: str) -> float | None:
    """Many hands write many kinds of changes."""
    return None if facts.people is None else min(1.0, math.log10(1 + facts.people) / 2)


def tests(facts: Facts, _: str) -> float | None:
    """There are tests."""
    return None if facts.has_tests is None else float(facts.has_tests)


def automation(facts: Facts, _: str) -> float | None:
    """There is a CI configuration: the best evidence of how to build it."""
    return None if facts.has_ci is None else float(facts.has_ci)


def license_known(facts: Facts, _: str) -> float | None:
    """A permissive licence: 1; another one: a half; none: 0."""
    if facts.license is None:
        return None
    return 1.0 if allows(facts.license, tuple(PERMISSIVE)) else 0.0 if facts.license == NONE else 0.5


def language(facts: Facts, _: str) -> float | None:
    """Its main language can be built."""
    return None if facts.language is None else float(facts.language in {*all_languages(), "cython"})


def size(facts: Facts, _: str) -> float | None:
    """Up to 50 MB: 1; from 5 GB: 0. Clones, images and disks."""
    return None if facts.kilobytes is None else min(1.0, max(0.0, 1 - math.log10(max(1, facts.kilobytes / 5e4)) / 2))


SIGNALS: tuple[Signal, ...] = (
    Signal("activity", 4, activity),
    Signal("tests", 3, tests),
    Signal("language", 3, language),
    Signal("ci", 2, automation),
    Signal("licence", 2, license_known),
    Signal("recency", 1, recency),
    Signal("people", 1, people),
    Signal("size", 1, size),
)


def is_there(facts: Facts, _: Settings) -> str | None:
    """It can be read."""
    return "there is no such repository, or it is private" if facts.missing else None


def is_no_fork(facts: Facts, _: Settings) -> str | None:
    """Its changes are its own."""
    return f"a fork of {facts.fork_of}" if facts.fork_of else None


def has_merged(facts: Facts, _: Settings) -> str | None:
    """Something was merged."""
    return "no merged pull request" if facts.merged == 0 else None


def license_is_allowed(facts: Facts, settings: Settings) -> str | None:
    """Its licence is one of `licenses`, where any are named and its own is known."""
    if not settings.licenses or facts.license is None or allows(facts.license, settings.licenses):
        return None
    return f"{facts.license} is not among {', '.join(settings.licenses)}"


def language_is_wanted(facts: Facts, settings: Settings) -> str | None:
    """Its main language is the one asked for, where one is and its own is known."""
    if settings.language is None or facts.language in (None, settings.language):
        return None
    return f"{facts.language}, not {settings.language}"


MUSTS: tuple[Callable[[Facts, Settings], str | None], ...] = (
    is_there, is_no_fork, has_merged, license_is_allowed, language_is_wanted,
)  # fmt: skip


def rank(found: Iterable[Facts], settings: Settings, today: str) -> list[Ranked]:
    """Best first; what is out at the end. Equal scores by activity, then by name.

    Args:
        found: one entry for each repository.
        settings: `licenses` and `language` are musts.
        today: the day of judgement (ISO 8601).
    """
    ranked = [_ranked(facts, settings, today) for facts in found]
    return sorted(ranked, key=lambda r: (bool(r.out), -r.score, -(r.facts.merged or 0), r.facts.repo))


def _ranked(facts: Facts, settings: Settings, today: str) -> Ranked:
    worth = {signal.name: value for signal in SIGNALS if (value := signal.worth(facts, today)) is not None}
    weight = {signal.name: signal.weight for signal in SIGNALS if signal.name in worth}
    score = sum(weight[name] * value for name, value in worth.items()) / (sum(weight.values()) or 1)
    out = next((against for must in MUSTS if (against := must(facts, settings))), "")
    rounded = {name: round(value, 3) for name, value in worth.items()}
    return Ranked(facts=facts, score=round(score, 3), signals=rounded, out=out)


def _day(when: str) -> float:
    moment = datetime.fromisoformat(when)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / 86400
