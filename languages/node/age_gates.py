"""Gates of package managers that hide packages by their age, which are off: the date of packages is pinned already.

Such a gate counts from the day of the build, not from that of the change, and the dates of a registry may be those of a
copy. Each manager is given the switch of its own documentation, and only where the project or the manager has a gate.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from languages.facts import SourcedValue
from languages.source_tree import SourceTree


@dataclass(frozen=True, kw_only=True)
class AgeGate:
    """Gate of a package manager."""

    files: tuple[str, ...]
    """Files with settings, in the folder of the root package."""
    names: re.Pattern[str]
    """Matches the name of a setting."""
    default_since: tuple[int, ...] = ()
    """First version that has a gate without a setting; empty if none has."""


AGE_GATES = {
    "npm": AgeGate(files=(".npmrc",), names=re.compile(r"min-release-age|before")),
    "pnpm": AgeGate(
        files=("pnpm-workspace.yaml", ".npmrc", "package.json"),
        names=re.compile(r"minimum-?release-?age|trust-?policy", re.IGNORECASE),
        default_since=(11,),
    ),
    "berry": AgeGate(files=(".yarnrc.yml",), names=re.compile(r"npmMinimalAgeGate"), default_since=(4, 10)),
    "bun": AgeGate(files=("bunfig.toml",), names=re.compile(r"(install\.)?minimumReleaseAge")),
}
"""Kind of package manager -> its gate; yarn 1 has none."""

_LINE = re.compile(r"^\s*([\"']?)(?P<name>[\w.-]+)\1\s*[:=]")
"""Matches a setting of YAML, TOML or JSON that has a line of its own."""


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
        read_name = read_npm_name if name == ".npmrc" else _read_name
        # As `sed` counts lines, which removes some of them.
        for number, line in enumerate(tree.read(path).split("\n"), 1):
            if gate.names.fullmatch(setting := read_name(line)):
                yield SourcedValue(text=setting, path=path, line=number)


def _read_name(line: str) -> str:
    match = _LINE.match(line)
    return match["name"] if match else ""


def read_npm_name(line: str) -> str:
    """Return the name of the setting in a line of an .npmrc, as npm's own reader (`ini`) has it; empty for none.

    A name may be quoted, with the escapes of JSON, and may end with the brackets of a list; an unescaped `;` or `#`
    ends it. A setting may lack `=`.
    """
    if re.match(r"\s*([;#]|\[[^\]]*\]\s*$)", line):
        return ""
    # JavaScript takes a byte order mark for a blank.
    name = line.partition("=")[0].strip().strip("\ufeff").strip()
    if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'":
        inner = name[1:-1] if name[0] == "'" else name
        try:
            decoded = json.loads(inner)
        except ValueError:
            decoded = inner
        name = decoded if isinstance(decoded, str) else inner
    else:
        name = re.sub(r"\\([\\;#])", r"\1", re.split(r"(?<!\\)[;#]", name)[0]).strip()
    return name.removesuffix("[]")
