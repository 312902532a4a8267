"""Selection of the Python version: the newest in the evidence that existed at the date and is available.

Where the evidence lists none, all versions are tried that the project permits, the newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from languages.facts import Fact, FactKind
from taskdb.records import Evidence

RELEASED: dict[str, date] = {
    "3.3": date(2012, 9, 29),
    "3.4": date(2014, 3, 16),
    "3.5": date(2015, 9, 13),
    "3.6": date(2016, 12, 23),
    "3.7": date(2018, 6, 27),
    "3.8": date(2019, 10, 14),
    "3.9": date(2020, 10, 5),
    "3.10": date(2021, 10, 4),
    "3.11": date(2022, 10, 24),
    "3.12": date(2023, 10, 2),
    "3.13": date(2024, 10, 7),
    "3.14": date(2025, 10, 7),
}
"""Release dates of final releases (PEPs 398, 429, 478, 494, 537, 569, 596, 619, 664, 693, 719, 745)."""

MINIMUM_AGE = timedelta(days=183)
"""Minimum age of a version selected by date: packages have wheels for it by then."""


def version_key(version: str) -> tuple[int, ...]:
    """Return a sort key that sorts `3.9` before `3.10`."""
    return tuple(int(part) for part in version.split("."))


def rank_versions(facts: Sequence[Fact], available: Iterable[str], day: date) -> list[Evidence]:
    """Return the versions to try, best first: those in the evidence, file by file, then the default by date.

    Without versions in the evidence, those older than the default follow, which `requires-python` permits, and last
    those that had just been released.

    `facts` of kind PYTHON are ordered by trust; those of a file form a group, all workflows are a single group. Never
    empty if any version is available.
    """
    available_versions = sorted(available, key=version_key)
    allowed = _filter_allowed(facts, available_versions)
    ranked: dict[str, Evidence] = {}
    listed = [fact for fact in facts if fact.kind is FactKind.PYTHON and fact.value in RELEASED]
    for group_name in dict.fromkeys(_evidence_group(fact) for fact in listed):
        group = {fact.value: fact for fact in reversed(listed) if _evidence_group(fact) == group_name}
        for version in sorted(group, key=version_key, reverse=True):
            if version in available_versions and RELEASED[version] <= day:
                fact = group[version]
                ranked.setdefault(version, _build_evidence(version, fact.path, fact.line))
    ordered = list(ranked.values())
    if not ordered and listed:
        newest = max((fact.value for fact in listed), key=version_key)
        newer = [v for v in available_versions if version_key(v) >= version_key(newest)]
        if newer:
            fact = next(f for f in listed if f.value == newest)
            ordered.append(
                _build_evidence(
                    newer[0], fact.path, fact.line, f"{newest} is listed, {newer[0]} is the nearest available"
                )
            )
    mature = _rank_by_date(allowed or available_versions, day)
    if mature and mature[0] not in ranked:
        ordered.append(_build_evidence(mature[0], "(date)", 0, f"newest at least {MINIMUM_AGE.days} days old on {day}"))
    if not listed:
        ordered += [_build_evidence(version, "(date)", 0, f"older than {mature[0]}") for version in mature[1:]]
        ordered += [
            _build_evidence(version, "(date)", 0, f"newer than {mature[0]}")
            for version in allowed
            if version in RELEASED and RELEASED[version] <= day < RELEASED[version] + MINIMUM_AGE
        ]
    return [e for e in ordered if e.value in allowed] or ordered


def _evidence_group(fact: Fact) -> str:
    """Return the group of a fact: all workflows, all conda environments, or the file."""
    for kind in (".github/workflows/", "ci/", "continuous_integration/"):
        if fact.path.startswith(kind):
            return kind
    return fact.path


def _build_evidence(version: str, path: str, line: int, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)


def _filter_allowed(facts: Sequence[Fact], available: list[str]) -> list[str]:
    """Return the versions that satisfy every `requires-python`."""
    allowed = available
    for fact in facts:
        if fact.kind is FactKind.REQUIRES_PYTHON:
            try:
                specifier = SpecifierSet(fact.value)
            except InvalidSpecifier:
                continue
            # `.99` so that 3.9 satisfies `>=3.9.2`: base images have the latest patch release.
            allowed = [v for v in allowed if specifier.contains(f"{v}.99")]
    return allowed


def _rank_by_date(available: list[str], day: date) -> list[str]:
    """Return the versions that are mature on a day, newest first; the oldest where none is."""
    mature = [v for v in available if v in RELEASED and RELEASED[v] + MINIMUM_AGE <= day]
    return mature[::-1] or available[:1]
