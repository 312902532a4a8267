"""Which Python a commit is built for: the newest one its evidence lists, that existed then and that can be had here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from languages.facts import Fact, Kind
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
"""First final releases (PEPs 398, 429, 478, 494, 537, 569, 596, 619, 664, 693, 719, 745)."""

SETTLED = timedelta(days=183)
"""A Python nobody asked for is taken once it is this old: packages have wheels for it by then."""


def key(version: str) -> tuple[int, ...]:
    """Sorts `3.9` before `3.10`."""
    return tuple(int(part) for part in version.split("."))


def candidates(facts: Sequence[Fact], available: Iterable[str], day: date) -> list[Evidence]:
    """The versions worth trying, best first: those the evidence lists, file by file, then the default by date.

    `facts` of kind PYTHON are in the order of trust; those of one file form a group, all workflows are one.
    Never empty when any version is available.
    """
    here = sorted(available, key=key)
    allowed = _allowed(facts, here)
    found: dict[str, Evidence] = {}
    listed = [fact for fact in facts if fact.kind is Kind.PYTHON and fact.value in RELEASED]
    for place in dict.fromkeys(_place(fact) for fact in listed):
        group = {fact.value: fact for fact in reversed(listed) if _place(fact) == place}
        for version in sorted(group, key=key, reverse=True):
            if version in here and RELEASED[version] <= day:
                fact = group[version]
                found.setdefault(version, _evidence(version, fact.path, fact.line))
    ordered = list(found.values())
    if not ordered and listed:
        newest = max((fact.value for fact in listed), key=key)
        above = [v for v in here if key(v) >= key(newest)]
        if above:
            fact = next(f for f in listed if f.value == newest)
            ordered.append(
                _evidence(above[0], fact.path, fact.line, f"{newest} is listed, {above[0]} is nearest to it")
            )
    fallback = _by_date(allowed or here, day)
    if fallback and fallback not in found:
        ordered.append(_evidence(fallback, "(date)", 0, f"newest that was settled on {day}"))
    return [e for e in ordered if e.value in allowed] or ordered


def _place(fact: Fact) -> str:
    """What fact's group is called: all workflows, all conda environments together, else the file."""
    for kind in (".github/workflows/", "ci/", "continuous_integration/"):
        if fact.path.startswith(kind):
            return kind
    return fact.path


def _evidence(version: str, path: str, line: int, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)


def _allowed(facts: Sequence[Fact], here: list[str]) -> list[str]:
    """The versions that every `requires-python` allows."""
    kept = here
    for fact in facts:
        if fact.kind is Kind.REQUIRES_PYTHON:
            try:
                specifier = SpecifierSet(fact.value)
            except InvalidSpecifier:
                continue
            # `.99` so that `>=3.9.2` is met by our 3.9, whose patch release is a late one.
            kept = [v for v in kept if specifier.contains(f"{v}.99")]
    return kept


def _by_date(here: list[str], day: date) -> str | None:
    settled = [v for v in here if v in RELEASED and RELEASED[v] + SETTLED <= day]
    if settled:
        return settled[-1]
    return here[0] if here else None
