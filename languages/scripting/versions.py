"""Selection of the language version: from files of the project, else by date, within the ranges of its metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from languages.base import Release
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.facts import SourcedValue
from taskdb.records import Evidence

MINIMUM_AGE = timedelta(days=183)
"""Minimum age of a version selected by date."""


@dataclass(frozen=True, kw_only=True)
class VersionBounds:
    """A range of versions allowed by the project's metadata, with its source."""

    allows: Callable[[str], bool]
    source: SourcedValue


def version_key(version: str) -> tuple[int, ...]:
    """Return a sort key that sorts `3.9` before `3.10`; parts that are not numbers count as 0."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def parse_minor_version(text: str) -> str:
    """Return `3.1` for `3.1.4`, `ruby-3.1` and `v3.1`; empty if there is no version."""
    match = re.search(r"(?<![\d.])(\d+)\.(\d+)", text)
    return f"{match[1]}.{match[2]}" if match else ""


def parse_constraint(text: str) -> Callable[[str], bool]:
    """Return a predicate for versions (major.minor) that satisfy a constraint of Ruby, PHP or Elixir.

    `>= 2.5, < 4`, `~> 3.0`, `^8.1 || ^8.2`, `>=7.4 <9`; an unknown syntax allows every version.
    """
    alternatives = [
        re.findall(r"(>=|<=|~>|!=|==|[<>^~=])?\s*v?(\d+(?:\.\d+)*)", alternative)
        for alternative in re.split(r"\|\|?|\bor\b", text)
    ]
    alternatives = [alternative for alternative in alternatives if alternative]
    return lambda version: (
        not alternatives or any(all(_satisfies(version, *term) for term in alternative) for alternative in alternatives)
    )


def _satisfies(version: str, operator: str, text: str) -> bool:
    mine, other = version_key(version), version_key(text)
    prefix = other[: len(mine)]
    if operator in (">=", ">"):
        return mine >= prefix if operator == ">=" or len(other) > len(mine) else mine > prefix
    if operator == "<":
        while other and not other[-1]:
            other = other[:-1]  # 3.0 is not below 3.0.0
        return mine < other
    if operator == "<=":
        return mine <= prefix
    if operator == "!=":
        return True
    if operator in ("~>", "^", "~"):
        is_series = len(other) > 2 and operator != "^"
        return mine == prefix if is_series else mine >= prefix and mine[0] == other[0]
    return mine[: len(prefix)] == prefix


def rank_versions(
    releases: Sequence[Release],
    context: PlanningContext,
    named: Sequence[SourcedValue],
    bounds: Sequence[VersionBounds],
) -> tuple[Evidence, ...]:
    """Return the versions to try, best first; never empty.

    Args:
        releases: releases of the language.
        context: available versions and date.
        named: versions in files, most trusted file first; of a file the newest available is best.
        bounds: ranges that apply to a version selected by date.

    Raises:
        NoPlanError: no version that the project allows is available.
    """
    available = set(context.list_available())
    available_releases = [item for item in releases if item.version in available]
    ranked: dict[str, Evidence] = {}
    for path in dict.fromkeys(item.path for item in named):
        group = {parse_minor_version(item.text): item for item in reversed(named) if item.path == path}
        for version in sorted(group, key=version_key, reverse=True):
            if version in {item.version for item in available_releases}:
                ranked.setdefault(version, _build_evidence(version, group[version].path, group[version].line))
    suitable = [item for item in available_releases if all(bound.allows(item.version) for bound in bounds)]
    mature = [item for item in suitable if item.released is None or item.released + MINIMUM_AGE <= context.day]
    recent = [item for item in suitable if item not in mature]
    for release in (*reversed(mature), *recent):
        source = bounds[0].source if bounds else SourcedValue(text="", path="(date)")
        ranked.setdefault(
            release.version, _build_evidence(release.version, source.path, source.line, f"as of {context.day}")
        )
    if not ranked:
        required = ", ".join(dict.fromkeys([item.text for item in named] + [bound.source.text for bound in bounds]))
        raise NoPlanError(f"no version that the project allows is available (it requires {required or 'none'})")
    return tuple(ranked.values())


def _build_evidence(version: str, path: str, line: int, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)


def select_next_version(draft: PlanDraft) -> PlanDraft:
    """Select the next version of the evidence: the project may not support the newest."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)
