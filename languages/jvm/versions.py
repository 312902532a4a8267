"""Selection of the JDK: from CI, else from the poms' language level, else by date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from languages.jvm.poms import Reactor
from languages.jvm.releases import RELEASED, SOURCE_UNTIL
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import Evidence

CI_KEYS = re.compile(r"^(java|jdk)([-_]?(version|ver)s?)?$")
"""Matches keys of workflows whose values are JDK versions."""

_NUMBER = re.compile(r"(?<![\d.])(?:1\.)?(\d{1,2})(?![\d])(?:[.+-].*)?$")
_LEVELS = re.compile(
    r"<(maven\.compiler\.(?:release|source|target|test\w+)|(?:java|jdk)\.(?:version|source|target|release|level)|version\.(?:java|jdk)"
    r"|(?:javac|java)\.(?:src|target)\.version|javaVersion|jdkVersion|source|target|release|testSource|testTarget|testRelease)>"
    r"\s*(?:(?:1\.)?(\d{1,2})|(\$\{[\w.-]+\}))\s*<"
)
"""Matches declarations of the language level in poms, which may name a property."""
_LEVEL = re.compile(r"(?:1\.)?(\d{1,2})")

_RELEASE_NOTE = ", which JDK 8 does not know"
_FIRST_WITH_RELEASE = 9

MINIMUM_AGE = timedelta(days=365)
"""Minimum age of a JDK that is selected by date."""


def read_ci_versions(tree: SourceTree) -> Iterator[Evidence]:
    """Yield the JDKs of CI jobs; jobs that run tests first."""
    for job in sorted(read_jobs(tree), key=lambda job: job.is_auxiliary):
        for key, values in job.values.items():
            for value in values if CI_KEYS.match(key) else ():
                for part in value.text.splitlines():
                    if match := _NUMBER.search(part.strip().lower().removesuffix("-ea")):
                        yield _build_evidence(match[1], job.path, value.line, "in CI's matrix")


def read_language_levels(reactor: Reactor) -> list[Evidence]:
    """Return the language levels in the poms, highest first."""
    levels = [
        _build_evidence(
            level[1],
            pom.path,
            pom.text.count("\n", 0, match.start()) + 1,
            f"<{match[1]}>{_RELEASE_NOTE if _is_release(match, pom.text) else ''}",
        )
        for pom in reactor.poms.values()
        for match in _LEVELS.finditer(pom.text)
        if (level := _LEVEL.fullmatch(match[2] or reactor.expand_text(pom, match[3])))
    ]
    return sorted(levels, key=lambda evidence: -int(evidence.value))


def _is_release(match: re.Match[str], text: str) -> bool:
    """Return whether a level is javac's option `--release`, outside of profiles, which may depend on the JDK."""
    opened, closed = (text.rfind(mark, 0, match.start()) for mark in ("<profile>", "</profile>"))
    return match[1] in ("maven.compiler.release", "release", "maven.compiler.testRelease") and opened <= closed


def rank_versions(
    ci: Sequence[Evidence], levels: Sequence[Evidence], available: Sequence[str], day: date
) -> list[Evidence]:
    """Return the JDKs to try, best first.

    Args:
        ci: versions that CI tests with.
        levels: language levels, highest first.
        available: versions with a base image.
        day: date of the change.
    """
    level = int(levels[0].value) if levels else 0
    if any(evidence.note.endswith(_RELEASE_NOTE) for evidence in levels):
        available = [v for v in available if int(v) >= _FIRST_WITH_RELEASE] or available
    newest = SOURCE_UNTIL.get(level, 99) if level else 99
    suitable = [v for v in available if level <= int(v) <= newest] or [
        v for v in available if int(v) <= max(newest, 11)
    ]
    release_dates = {v: released for v, released in RELEASED.items() if v in suitable}
    mature = [v for v in suitable if release_dates[v] + MINIMUM_AGE <= day] or suitable[:1]
    by_version = {evidence.value: evidence for evidence in reversed(ci)}
    tested = [by_version[v] for v in reversed(mature) if v in by_version]
    by_value = {evidence.value: evidence for evidence in tested}
    if levels and not tested:
        # The JDK of the language level itself is the safest choice if CI tests with none.
        nearest = next((v for v in suitable if int(v) >= level), None)
        if nearest and (nearest == levels[0].value or int(nearest) > 8):
            by_value[nearest] = levels[0].model_copy(update={"value": nearest})
    for version in [*reversed(mature), *(v for v in suitable if v not in mature)]:
        by_value.setdefault(version, _build_evidence(version, "(date)", 0, f"at least a year old on {day}"))
    return list(by_value.values())


def _build_evidence(version: str, path: str, line: int, note: str) -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)
