"""Ranking of repositories. `find_rejection` and `SIGNALS` are the complete policy.

A repository that fails a requirement is rejected, with the reason. The others have a score between 0 and 1: the
weighted average of the known signals. An unknown fact neither lowers nor raises the score; the known signals are shown
beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from core.config import Settings
from core.settings.mining import MiningSettings, SourceSettings
from languages.registry import LANGUAGES
from miner.licenses import NO_ASSERTION, is_allowed
from miner.repos.facts import RepositoryFacts

PERMISSIVE = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "MIT",
        "PSF-2.0",
        "Unlicense",
        "Zlib",
    }
)

_YEAR = 365.25
_FULL_SCORE_COUNT = 1000
"""Merged pull requests that give the full score."""


@dataclass(frozen=True, slots=True)
class RankSignal:
    """Score of a fact, 0 to 1, and its weight."""

    name: str
    weight: float
    score: Callable[[RepositoryFacts, str], float | None]
    """Compute the score from the facts and the current day (ISO 8601); None when the fact is unknown."""


@dataclass(frozen=True, slots=True)
class RankedRepository:
    """A repository with its score or rejection."""

    facts: RepositoryFacts
    score: float
    signals: dict[str, float]
    """Score of each known signal."""
    rejection: str = ""
    """Why it is rejected; empty when it is not."""


def score_activity(facts: RepositoryFacts, _: str) -> float | None:
    """Score merged pull requests on a logarithmic scale: 10 give a third of the score that 1,000 give."""
    return None if facts.merged is None else min(1.0, math.log10(1 + facts.merged) / math.log10(_FULL_SCORE_COUNT))


def score_recency(facts: RepositoryFacts, today: str) -> float | None:
    """Return 1 for activity in the last three months, 0 for none in three years: old code needs old environments."""
    if facts.pushed_at is None:
        return None
    years = (_parse_day(today) - _parse_day(facts.pushed_at)) / _YEAR
    return min(1.0, max(0.0, (3 - years) / 2.75))


def score_contributors(facts: RepositoryFacts, _: str) -> float | None:
    """Score contributors: many authors write many kinds of changes."""
    return None if facts.contributors is None else min(1.0, math.log10(1 + facts.contributors) / 2)


def score_tests(facts: RepositoryFacts, _: str) -> float | None:
    """Return 1 if there are tests."""
    return None if facts.has_tests is None else float(facts.has_tests)


def score_ci(facts: RepositoryFacts, _: str) -> float | None:
    """Return 1 if there is a CI configuration: the best evidence of how to build the project."""
    return None if facts.has_ci is None else float(facts.has_ci)


def score_license(facts: RepositoryFacts, _: str) -> float | None:
    """Return 1 for a permissive licence, 0.5 for another, 0 for none."""
    if facts.license is None:
        return None
    return 1.0 if is_allowed(facts.license, tuple(PERMISSIVE)) else 0.0 if facts.license == NO_ASSERTION else 0.5


def score_language(facts: RepositoryFacts, _: str) -> float | None:
    """Return 1 if the main language is supported."""
    return None if facts.language is None else float(facts.language in {*LANGUAGES, "cython"})


def score_size(facts: RepositoryFacts, _: str) -> float | None:
    """Return 1 up to 50 MB and 0 from 5 GB: clones, images and disks."""
    return None if facts.kilobytes is None else min(1.0, max(0.0, 1 - math.log10(max(1, facts.kilobytes / 5e4)) / 2))


SIGNALS: tuple[RankSignal, ...] = (
    RankSignal("activity", 4, score_activity),
    RankSignal("tests", 3, score_tests),
    RankSignal("language", 3, score_language),
    RankSignal("ci", 2, score_ci),
    RankSignal("licence", 2, score_license),
    RankSignal("recency", 1, score_recency),
    RankSignal("contributors", 1, score_contributors),
    RankSignal("size", 1, score_size),
)


def is_readable(facts: RepositoryFacts) -> str | None:
    """Pass when the repository is readable."""
    return "there is no such repository, or it is private" if facts.is_missing else None


def is_not_fork(facts: RepositoryFacts) -> str | None:
    """Pass when it is not a fork: the changes of a fork are its parent's."""
    return f"a fork of {facts.fork_of}" if facts.fork_of else None


def has_merged(facts: RepositoryFacts) -> str | None:
    """Pass when a pull request was merged, or their number is unknown."""
    return "no merged pull request" if facts.merged == 0 else None


def license_is_allowed(facts: RepositoryFacts, mining: MiningSettings) -> str | None:
    """Pass when its licence is one of `licenses`, or `licenses` is empty, or the licence is unknown."""
    if not mining.licenses or facts.license is None or is_allowed(facts.license, mining.licenses):
        return None
    return f"{facts.license} is not among {', '.join(mining.licenses)}"


def language_is_selected(facts: RepositoryFacts, source: SourceSettings) -> str | None:
    """Pass when its main language is the selected one, none is selected, or it is unknown."""
    if source.language is None or facts.language in (None, source.language):
        return None
    return f"{facts.language}, not {source.language}"


def find_rejection(facts: RepositoryFacts, settings: Settings) -> str | None:
    """Return why a repository is rejected: the first requirement that it does not meet."""
    return (
        is_readable(facts)
        or is_not_fork(facts)
        or has_merged(facts)
        or license_is_allowed(facts, settings.mining)
        or language_is_selected(facts, settings.source)
    )


def rank_repositories(
    repositories: Iterable[RepositoryFacts], settings: Settings, today: str
) -> list[RankedRepository]:
    """Rank repositories, best first, rejected last. Equal scores are ordered by activity, then by name.

    Args:
        repositories: an entry for each repository.
        settings: `licenses` and `language` are requirements.
        today: the current day (ISO 8601).
    """
    ranked = [_rank_repository(facts, settings, today) for facts in repositories]
    return sorted(ranked, key=lambda r: (bool(r.rejection), -r.score, -(r.facts.merged or 0), r.facts.repo))


def _rank_repository(facts: RepositoryFacts, settings: Settings, today: str) -> RankedRepository:
    scores = {signal.name: value for signal in SIGNALS if (value := signal.score(facts, today)) is not None}
    weight = {signal.name: signal.weight for signal in SIGNALS if signal.name in scores}
    score = sum(weight[name] * value for name, value in scores.items()) / (sum(weight.values()) or 1)
    rejection = find_rejection(facts, settings) or ""
    rounded = {name: round(value, 3) for name, value in scores.items()}
    return RankedRepository(facts=facts, score=round(score, 3), signals=rounded, rejection=rejection)


def _parse_day(when: str) -> float:
    moment = datetime.fromisoformat(when)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / 86400
