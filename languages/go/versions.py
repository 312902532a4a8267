"""Which Go a commit is built with: what CI runs, else what go.mod asks for, else the newest of its day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from languages.facts import Wanted
from languages.go.ci import tests_here
from languages.go.modules import Module, directive_place
from languages.go.releases import parts, released_by
from languages.tree import Tree
from languages.workflows import Job
from taskdb.records import Evidence

KEYS = ("go-version", "go", "go_version", "go-versions", "goversion", "golang", "version", "gover")
SETTLED = timedelta(days=60)
"""A Go that nobody asked for is taken once it is this old."""


def candidates(tree: Tree, module: Module, found: Sequence[Job], available: Sequence[str], day: date) -> list[Evidence]:
    """The versions worth trying, best first: of CI's the newest that was out, then go.mod's, then the day's."""
    least = parts(module.go) if re.fullmatch(r"\d+\.\d+([.\w]*)?", module.go) else (0, 0)
    fitting = [version for version in available if parts(version) >= least[:2]]
    out = [version for version in fitting if version in released_by(day)]
    chosen: dict[str, Evidence] = {}
    listed = sorted(_listed(found), key=lambda wanted: parts(wanted.text), reverse=True)
    for wanted in listed:
        if wanted.text in out:
            chosen.setdefault(wanted.text, _evidence(wanted.text, wanted))
    pinned = tree.read(".go-version").strip()
    if (version := short(pinned)) in fitting and not chosen:
        chosen[version] = _evidence(version, Wanted(text=pinned, path=".go-version", line=1))
    toolchain = short(module.toolchain)
    if toolchain in fitting and not chosen:
        chosen[toolchain] = _evidence(toolchain, directive_place(tree, module, "toolchain"))
    settled = [version for version in out if version in released_by(day - SETTLED)]
    for version in (settled or out or fitting[:1])[-1:]:
        note = f"newest that was settled on {day}" if settled else "the oldest that go.mod allows"
        chosen.setdefault(version, _evidence(version, Wanted(text="", path="(date)"), note))
    if (own := short(module.go)) in fitting:
        # It is the least that the module needs and may be years old: not a choice of its own, as CI's are.
        place = directive_place(tree, module, "go")
        note = f"{place.path}:{place.line} asks for it at least"
        chosen.setdefault(own, _evidence(own, Wanted(text="", path="(date)"), note))
    return list(chosen.values())


def short(version: str) -> str:
    """`1.21` of `go1.21.3`."""
    match = re.match(r"(?:go)?(1\.\d+)", version)
    return match[1] if match else ""


def _listed(found: Sequence[Job]) -> Iterator[Wanted]:
    """Versions in the jobs that run tests, else in all that are not beside them."""
    gating = [job for job in found if tests_here(job) and not job.is_beside]
    for job in gating or [job for job in found if not job.is_beside]:
        for key in KEYS:
            for value in job.values.get(key, ()):
                # `^1.16` and `>=1.16` are the newest of their day.
                if version := short(value.text.lstrip("~= v")):
                    yield Wanted(text=version, path=job.path, line=value.line)
        for image in job.uses:
            version = short(image.text.rpartition(":")[2])
            if version and re.search(r"(^|/)(golang|go):", image.text):
                yield Wanted(text=version, path=image.path, line=image.line)


def _evidence(version: str, place: Wanted, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=place.path, line=place.line, note=note)
