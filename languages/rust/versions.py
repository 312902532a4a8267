"""Selection of the Rust version: from the toolchain file, else stable at the date, or the minimum."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from languages.facts import SourcedValue, find_line
from languages.rust.releases import parse_minor, release_date
from languages.source_tree import SourceTree
from languages.workflows import Job
from taskdb.records import Evidence

STEP = 3
"""Only every third release (1.82, 1.85, ...) is selected by date, so that commits of half a year share a base image."""
MINIMUM_AGE = timedelta(weeks=3)
"""Minimum age of a release selected by date: by then affected crates have adapted."""
FILES = ("rust-toolchain.toml", "rust-toolchain")
_KEYS = ("toolchain", "rust", "rust-version", "rust_version", "channel")


def rank_versions(
    tree: SourceTree, jobs: Sequence[Job], available: Sequence[str], day: date, minimum: tuple[int, str]
) -> list[Evidence]:
    """Return the versions to try, best first.

    Args:
        tree: the source tree.
        jobs: jobs of CI.
        available: versions with a base image.
        day: date of the change.
        minimum: (minimum minor, the file that requires it).
    """
    minors = sorted(parse_minor(version) for version in available)
    suitable = [minor for minor in minors if minor >= minimum[0]]
    existing = [minor for minor in suitable if release_date(minor) <= day]
    ranked: dict[int, Evidence] = {}
    for version_source in [*_read_toolchain_file(tree), *_read_ci_versions(jobs)]:
        newer = [minor for minor in suitable if minor >= int(version_source.text)]
        if newer:
            note = "" if str(newer[0]) == version_source.text else f"1.{version_source.text} is listed"
            ranked.setdefault(newer[0], _build_evidence(newer[0], version_source, note))
    mature = [minor for minor in existing if release_date(minor) + MINIMUM_AGE <= day]
    stable = [minor for minor in mature if minor % STEP == 1] or mature[-1:] or existing[-1:] or suitable[:1]
    for minor in stable[-1:]:
        ranked.setdefault(minor, _build_evidence(minor, SourcedValue(text="", path="(date)"), f"stable by {day}"))
    for minor in suitable[:1]:
        note = f"{minimum[1]} requires at least this version"
        ranked.setdefault(minor, _build_evidence(minor, SourcedValue(text="", path="(date)"), note))
    return list(ranked.values())


def _read_toolchain_file(tree: SourceTree) -> list[SourcedValue]:
    """Return the release in the toolchain file."""
    for path in FILES:
        text = tree.read(path)
        if match := re.search(r"""(?:^|["'\s=])1\.(\d+)(?:\.\d+)?\b""", text):
            return [SourcedValue(text=match[1], path=path, line=find_line(text, match[0].strip()))]
    return []


def is_nightly(tree: SourceTree) -> str:
    """Return the toolchain file that selects a nightly; empty if there is none."""
    return next((path for path in FILES if "nightly" in tree.read(path)), "")


def _read_ci_versions(jobs: Sequence[Job]) -> list[SourcedValue]:
    """Return the newest release in CI's test jobs; none if they also use `stable`, next to which it only builds."""
    words = [
        SourcedValue(text=value.text, path=job.path, line=value.line)
        for job in jobs
        if any("cargo test" in line.text or "nextest" in line.text for line in job.lines)
        for key in _KEYS
        for value in job.values.get(key, ())
    ]
    uses = [use for job in jobs for use in job.uses if "rust-toolchain@" in use.text]
    if any(re.search(r"stable|nightly|beta|master", item.text) for item in [*words, *uses]):
        return []
    numbers = [SourcedValue(text=m[1], path=w.path, line=w.line) for w in words if (m := re.match(r"1\.(\d+)", w.text))]
    return sorted(numbers, key=lambda wanted: -int(wanted.text))[:1]


def _build_evidence(minor: int, source: SourcedValue, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=f"1.{minor}", path=source.path, line=source.line, note=note)
