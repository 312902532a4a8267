"""Selection of the Go version: from CI, else from go.mod, else the newest at the change's date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from languages.facts import SourcedValue
from languages.go.ci import runs_go_tests
from languages.go.modules import GoModule, locate_directive
from languages.go.releases import list_released_versions, parse_version
from languages.source_tree import SourceTree
from languages.workflows import Job
from taskdb.records import Evidence

KEYS = ("go-version", "go", "go_version", "go-versions", "goversion", "golang", "version", "gover")
MINIMUM_AGE = timedelta(days=60)
"""Minimum age of a version that is selected by date."""


def rank_versions(
    tree: SourceTree, module: GoModule, jobs: Sequence[Job], available: Sequence[str], day: date
) -> list[Evidence]:
    """Return the versions to try, best first: from CI the newest released, then from go.mod, then by date."""
    minimum = parse_version(module.go_version) if re.fullmatch(r"\d+\.\d+([.\w]*)?", module.go_version) else (0, 0)
    suitable = [version for version in available if parse_version(version) >= minimum[:2]]
    existing = [version for version in suitable if version in list_released_versions(day)]
    ranked: dict[str, Evidence] = {}
    ci_versions = sorted(
        _read_ci_versions(jobs), key=lambda version_source: parse_version(version_source.text), reverse=True
    )
    for version_source in ci_versions:
        if version_source.text in existing:
            ranked.setdefault(version_source.text, _build_evidence(version_source.text, version_source))
    pinned = tree.read(".go-version").strip()
    if (version := parse_minor_version(pinned)) in suitable and not ranked:
        ranked[version] = _build_evidence(version, SourcedValue(text=pinned, path=".go-version", line=1))
    toolchain = parse_minor_version(module.toolchain)
    if toolchain in suitable and not ranked:
        ranked[toolchain] = _build_evidence(toolchain, locate_directive(tree, module, "toolchain"))
    mature = [version for version in existing if version in list_released_versions(day - MINIMUM_AGE)]
    for version in (mature or existing or suitable[:1])[-1:]:
        note = f"newest at least {MINIMUM_AGE.days} days old on {day}" if mature else "the oldest that go.mod allows"
        ranked.setdefault(version, _build_evidence(version, SourcedValue(text="", path="(date)"), note))
    if (minimum_version := parse_minor_version(module.go_version)) in suitable:
        # The directive is a minimum and may be years old, so it does not take precedence as CI's versions do.
        directive = locate_directive(tree, module, "go")
        note = f"{directive.path}:{directive.line} requires at least this version"
        ranked.setdefault(minimum_version, _build_evidence(minimum_version, SourcedValue(text="", path="(date)"), note))
    return list(ranked.values())


def parse_minor_version(version: str) -> str:
    """Return `1.21` for `go1.21.3`; empty if the version is not of that form."""
    match = re.match(r"(?:go)?(1\.\d+)", version)
    return match[1] if match else ""


def _read_ci_versions(jobs: Sequence[Job]) -> Iterator[SourcedValue]:
    """Yield the versions of jobs that run tests; if there are none, of all jobs that are not auxiliary."""
    test_jobs = [job for job in jobs if runs_go_tests(job) and not job.is_auxiliary]
    for job in test_jobs or [job for job in jobs if not job.is_auxiliary]:
        for key in KEYS:
            for value in job.values.get(key, ()):
                # `^1.16` and `>=1.16` resolve to the newest version at the date of the run.
                if version := parse_minor_version(value.text.lstrip("~= v")):
                    yield SourcedValue(text=version, path=job.path, line=value.line)
        for image in job.uses:
            version = parse_minor_version(image.text.rpartition(":")[2])
            if version and re.search(r"(^|/)(golang|go):", image.text):
                yield SourcedValue(text=version, path=image.path, line=image.line)


def _build_evidence(version: str, source: SourcedValue, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=source.path, line=source.line, note=note)
