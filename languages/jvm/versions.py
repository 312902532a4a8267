"""Which JDK a project wants: what its CI tests with, what its poms compile for, what was usual on the day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from languages.jvm.poms import Reactor
from languages.jvm.releases import RELEASED, SOURCE_UNTIL
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import Evidence

CI_KEYS = re.compile(r"^(java|jdk)([-_]?(version|ver)s?)?$")
"""Keys of workflows whose values are JDKs."""

_NUMBER = re.compile(r"(?<![\d.])(?:1\.)?(\d{1,2})(?![\d])(?:[.+-].*)?$")
_LEVELS = re.compile(
    r"<(maven\.compiler\.(?:release|source|target|test\w+)|(?:java|jdk)\.(?:version|source|target|release|level)|version\.(?:java|jdk)"
    r"|(?:javac|java)\.(?:src|target)\.version|javaVersion|jdkVersion|source|target|release|testSource|testTarget|testRelease)>"
    r"\s*(?:1\.)?(\d{1,2})\s*<"
)
"""Where poms say what they compile for."""

SETTLED = timedelta(days=365)
"""How old a JDK must be before projects that say nothing can be trusted to build with it."""


def ci_versions(tree: Tree) -> Iterator[Evidence]:
    """The JDKs of CI's jobs, those of jobs about tests first."""
    for job in sorted(jobs(tree), key=lambda job: job.is_beside):
        for key, values in job.values.items():
            for value in values if CI_KEYS.match(key) else ():
                for part in value.text.splitlines():
                    if match := _NUMBER.search(part.strip().lower().removesuffix("-ea")):
                        yield _evidence(match[1], job.path, value.line, "of the CI's matrix")


def levels(reactor: Reactor) -> list[Evidence]:
    """The language levels of the poms, the highest first."""
    found = [
        _evidence(match[2], pom.path, pom.text.count("\n", 0, match.start()) + 1, f"<{match[1]}>")
        for pom in reactor.poms.values()
        for match in _LEVELS.finditer(pom.text)
    ]
    return sorted(found, key=lambda one: -int(one.value))


def candidates(
    said: Sequence[Evidence], wanted: Sequence[Evidence], available: Sequence[str], day: date
) -> list[Evidence]:
    """The JDKs worth trying, best first.

    Args:
        said: those CI tests with.
        wanted: language levels, the highest first.
        available: versions this machine has or can make.
        day: the change's date.
    """
    need = int(wanted[0].value) if wanted else 0
    until = SOURCE_UNTIL.get(need, 99) if need else 99
    fit = [v for v in available if need <= int(v) <= until] or [v for v in available if int(v) <= max(until, 11)]
    born = {v: released for v, released in RELEASED.items() if v in fit}
    settled = [v for v in fit if born[v] + SETTLED <= day] or fit[:1]
    named = {one.value: one for one in reversed(said)}
    tested = [named[v] for v in reversed(settled) if v in named]
    found = {one.value: one for one in tested}
    if wanted and not tested:
        # What only compiles for a level is safest with the JDK of that level.
        nearest = next((v for v in fit if int(v) >= need), None)
        if nearest and (nearest == wanted[0].value or int(nearest) > 8):
            found[nearest] = wanted[0].model_copy(update={"value": nearest})
    for version in [*reversed(settled), *(v for v in fit if v not in settled)]:
        found.setdefault(version, _evidence(version, "(date)", 0, f"settled on {day}"))
    return list(found.values())


def _evidence(version: str, path: str, line: int, note: str) -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)
