"""Which Rust a commit is built with: the toolchain file's, else the stable of its day, never less than it asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from languages.facts import Wanted, line_of
from languages.rust.releases import minor_of, released
from languages.tree import Tree
from languages.workflows import Job
from taskdb.records import Evidence

STEP = 3
"""Of the releases of a day, every third is taken (1.82, 1.85, ...): commits of half a year share a base."""
SETTLED = timedelta(weeks=3)
"""A release is taken by date once it is this old: by then the crates it broke have been mended."""
FILES = ("rust-toolchain.toml", "rust-toolchain")
_KEYS = ("toolchain", "rust", "rust-version", "rust_version", "channel")


def candidates(
    tree: Tree, found: Sequence[Job], available: Sequence[str], day: date, least: tuple[int, str]
) -> list[Evidence]:
    """The versions worth trying, best first.

    Args:
        tree: the tree.
        found: CI's jobs.
        available: versions with a base.
        day: of the change.
        least: (the first minor that reads the project, the file that says so).
    """
    minors = sorted(minor_of(version) for version in available)
    fitting = [minor for minor in minors if minor >= least[0]]
    out = [minor for minor in fitting if released(minor) <= day]
    chosen: dict[int, Evidence] = {}
    for wanted in [*_pinned(tree), *_numbers(found)]:
        near = [minor for minor in fitting if minor >= int(wanted.text)]
        if near:
            note = "" if str(near[0]) == wanted.text else f"1.{wanted.text} is listed"
            chosen.setdefault(near[0], _evidence(near[0], wanted, note))
    settled = [minor for minor in out if released(minor) + SETTLED <= day]
    stable = [minor for minor in settled if minor % STEP == 1] or settled[-1:] or out[-1:] or fitting[:1]
    for minor in stable[-1:]:
        chosen.setdefault(minor, _evidence(minor, Wanted(text="", path="(date)"), f"stable by {day}"))
    for minor in fitting[:1]:
        note = f"{least[1]} needs it at least"
        chosen.setdefault(minor, _evidence(minor, Wanted(text="", path="(date)"), note))
    return list(chosen.values())


def _pinned(tree: Tree) -> list[Wanted]:
    """The release that the toolchain file names."""
    for path in FILES:
        text = tree.read(path)
        if match := re.search(r"""(?:^|["'\s=])1\.(\d+)(?:\.\d+)?\b""", text):
            return [Wanted(text=match[1], path=path, line=line_of(text, match[0].strip()))]
    return []


def is_nightly(tree: Tree) -> str:
    """The toolchain file that asks for a nightly, else empty."""
    return next((path for path in FILES if "nightly" in tree.read(path)), "")


def _numbers(found: Sequence[Job]) -> list[Wanted]:
    """The newest release of CI's tests, where they name only numbers: old ones beside stable are only built."""
    words = [
        Wanted(text=value.text, path=job.path, line=value.line)
        for job in found if any("cargo test" in line.text or "nextest" in line.text for line in job.lines)
        for key in _KEYS for value in job.values.get(key, ())
    ]  # fmt: skip
    uses = [use for job in found for use in job.uses if "rust-toolchain@" in use.text]
    if any(re.search(r"stable|nightly|beta|master", one.text) for one in [*words, *uses]):
        return []
    numbers = [Wanted(text=m[1], path=w.path, line=w.line) for w in words if (m := re.match(r"1\.(\d+)", w.text))]
    return sorted(numbers, key=lambda wanted: -int(wanted.text))[:1]


def _evidence(minor: int, place: Wanted, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=f"1.{minor}", path=place.path, line=place.line, note=note)
