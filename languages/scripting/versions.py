"""Which version of a language a commit is built for: what its files name, then what its day says, then what fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from languages.base import Release
from languages.draft import Context, Draft, NoPlanError
from languages.facts import Wanted
from taskdb.records import Evidence

SETTLED = timedelta(days=183)
"""A version nobody asked for is taken once it is this old."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The range of versions that a project's own metadata allows, with its place."""

    allows: Callable[[str], bool]
    wanted: Wanted


def key(version: str) -> tuple[int, ...]:
    """Sorts `3.9` before `3.10`; what is no number counts as 0."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def series(text: str) -> str:
    """`3.1` of `3.1.4`, `ruby-3.1`, `v3.1`; empty when no version stands there."""
    found = re.search(r"(?<![\d.])(\d+)\.(\d+)", text)
    return f"{found[1]}.{found[2]}" if found else ""


def bound(text: str) -> Callable[[str], bool]:
    """Whether a version (major.minor) is allowed by constraints as Ruby, PHP and Elixir write them.

    `>= 2.5, < 4`, `~> 3.0`, `^8.1 || ^8.2`, `>=7.4 <9`; what cannot be read allows everything.
    """
    ways = [
        re.findall(r"(>=|<=|~>|!=|==|[<>^~=])?\s*v?(\d+(?:\.\d+)*)", way) for way in re.split(r"\|\|?|\bor\b", text)
    ]
    ways = [way for way in ways if way]
    return lambda version: not ways or any(all(_holds(version, *one) for one in way) for way in ways)


def _holds(version: str, operator: str, text: str) -> bool:
    mine, other = key(version), key(text)
    short = other[: len(mine)]
    if operator in (">=", ">"):
        return mine >= short if operator == ">=" or len(other) > len(mine) else mine > short
    if operator in ("<", "<="):
        return mine < other if operator == "<" else mine <= short
    if operator == "!=":
        return True
    if operator in ("~>", "^", "~"):
        is_series = len(other) > 2 and operator != "^"
        return mine == short if is_series else mine >= short and mine[0] == other[0]
    return mine[: len(short)] == short


def candidates(
    releases: Sequence[Release], context: Context, named: Sequence[Wanted], bounds: Sequence[Bounds]
) -> tuple[Evidence, ...]:
    """The versions worth trying, best first; never empty.

    Args:
        releases: of the language.
        context: says which can be had and the day.
        named: versions that files name, the most trusted file first; of one file the newest that can be had is best.
        bounds: ranges that must hold where a version is chosen by date.

    Raises:
        NoPlanError: no version that the project allows can be had here.
    """
    here = set(context.available())
    known = [one for one in releases if one.version in here]
    found: dict[str, Evidence] = {}
    for path in dict.fromkeys(one.path for one in named):
        group = {series(one.text): one for one in reversed(named) if one.path == path}
        for version in sorted(group, key=key, reverse=True):
            if version in {one.version for one in known}:
                found.setdefault(version, _evidence(version, group[version].path, group[version].line))
    fitting = [one for one in known if all(limit.allows(one.version) for limit in bounds)]
    old = [one for one in fitting if one.released is None or one.released + SETTLED <= context.day]
    young = [one for one in fitting if one not in old]
    for release in (*reversed(old), *young):
        place = bounds[0].wanted if bounds else Wanted(text="", path="(date)")
        found.setdefault(release.version, _evidence(release.version, place.path, place.line, f"of {context.day}"))
    if not found:
        asked = ", ".join(dict.fromkeys([one.text for one in named] + [limit.wanted.text for limit in bounds]))
        raise NoPlanError(f"no version that the project allows can be had here (it asks for {asked or 'none'})")
    return tuple(found.values())


def _evidence(version: str, path: str, line: int, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)


def next_version(draft: Draft) -> Draft:
    """The next version of the evidence: the project may not run on the newest."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)
