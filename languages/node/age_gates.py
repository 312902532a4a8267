"""Gates of package managers that hide packages by their age, which are off: the date of packages is pinned already.

Such a gate counts from the day of the build, not from that of the change, and the dates of a registry may be those of a
copy. Each manager is given the switch of its own documentation, and only where the project or the manager has a gate.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from languages.facts import SourcedValue, find_line
from languages.source_tree import SourceTree


@dataclass(frozen=True, kw_only=True)
class AgeGate:
    """Gate of a package manager."""

    files: tuple[str, ...]
    """Files with settings, in the folder of the root package."""
    settings: re.Pattern[str]
    """Matches a setting at the beginning of a line."""
    default_since: tuple[int, ...] = ()
    """First version that has a gate without a setting; empty if none has."""


_PNPM_SETTINGS = r"minimum-?release-?age|trust-?policy"

AGE_GATES = {
    "npm": AgeGate(files=(".npmrc",), settings=re.compile(r"^\s*(min-release-age|before)\s*=", re.MULTILINE)),
    "pnpm": AgeGate(
        files=("pnpm-workspace.yaml", ".npmrc", "package.json"),
        settings=re.compile(rf"^\s*[\"']?({_PNPM_SETTINGS})[\"']?\s*[:=]", re.MULTILINE | re.IGNORECASE),
        default_since=(11,),
    ),
    "berry": AgeGate(
        files=(".yarnrc.yml",),
        settings=re.compile(r"^\s*[\"']?(npmMinimalAgeGate)[\"']?\s*:", re.MULTILINE),
        default_since=(4, 10),
    ),
    "bun": AgeGate(
        files=("bunfig.toml",), settings=re.compile(r"^\s*((install\.)?minimumReleaseAge)\s*=", re.MULTILINE)
    ),
}
"""Kind of package manager -> its gate; yarn 1 has none."""


def find_age_gates(tree: SourceTree, folder: str, kind: str, version: str, source: SourcedValue) -> list[SourcedValue]:
    """Return the settings that hide packages by their age, and the manager where it does so by default.

    Args:
        tree: the repository.
        folder: folder of the root package.
        kind: kind of package manager.
        version: its version; empty if it comes with Node.
        source: place in the project that names the manager.
    """
    return list(_find_gates(tree, folder, kind, version, source))


def _find_gates(tree: SourceTree, folder: str, kind: str, version: str, source: SourcedValue) -> Iterator[SourcedValue]:
    gate = AGE_GATES.get(kind)
    if gate is None:
        return
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if gate.default_since and numbers >= gate.default_since:
        yield SourcedValue(text=f"{kind}@{version}", path=source.path, line=source.line)
    for name in gate.files:
        path = posixpath.join(folder, name)
        text = tree.read(path)
        for match in gate.settings.finditer(text):
            yield SourcedValue(text=match[1], path=path, line=find_line(text, match.group().strip()))
