"""Parser of Project.toml, the metadata of a Julia package. Read as text, never executed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from languages.facts import SourcedValue
from languages.scripting.versions import version_key
from languages.source_tree import SourceTree

NAMES = ("Project.toml", "JuliaProject.toml")
_SINCE = {
    **dict.fromkeys(("Artifacts", "Downloads", "LazyArtifacts", "LibCURL", "NetworkOptions", "TOML", "Tar"), (1, 6)),
    "StyledStrings": (1, 11),
}
"""Package of the standard library -> release that introduced it, where that is not the first."""
_STANDARD = frozenset(
    {
        "Base64",
        "CRC32c",
        "Dates",
        "DelimitedFiles",
        "Distributed",
        "FileWatching",
        "Future",
        "InteractiveUtils",
        "LibGit2",
        "Libdl",
        "LinearAlgebra",
        "Logging",
        "Markdown",
        "Mmap",
        "Pkg",
        "Printf",
        "Profile",
        "REPL",
        "Random",
        "SHA",
        "Serialization",
        "SharedArrays",
        "Sockets",
        "SparseArrays",
        "Statistics",
        "SuiteSparse",
        "Test",
        "UUIDs",
        "Unicode",
    }
)


@dataclass(frozen=True, kw_only=True)
class RequiredPackage:
    """A package that a project requires."""

    name: str
    uuid: str
    compat: str
    is_test: bool
    path: str
    line: int

    @property
    def source(self) -> SourcedValue:
        """The requirement as `NAME RANGE [UUID]`, with its line."""
        words = [self.name, self.compat, f"[{self.uuid}]"]
        return SourcedValue(text=" ".join(word for word in words if word), path=self.path, line=self.line)


class ProjectFile:
    """A Project.toml; empty if it is missing or damaged."""

    def __init__(self, tree: SourceTree, folder: str) -> None:
        prefix = f"{folder}/" if folder else ""
        self.folder = folder
        self.path = next((prefix + name for name in NAMES if tree.is_file(prefix + name)), prefix + NAMES[0])
        self.text = tree.read(self.path)
        try:
            self._content: Mapping[str, object] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError:
            self._content = {}

    @property
    def name(self) -> str:
        """Name of the package; empty if the project is none."""
        return self._read_text("name")

    @property
    def uuid(self) -> str:
        """Identity of the package; empty if the project is none."""
        return self._read_text("uuid")

    @property
    def julia_bound(self) -> SourcedValue | None:
        """The range of Julia versions, such as `1.6` or `~1.5, 1.7`."""
        text = self._read_table("compat").get("julia", "")
        return SourcedValue(text=text, path=self.path, line=self._find_line("julia")) if text else None

    def list_requirements(self, *, with_tests: bool) -> Iterator[RequiredPackage]:
        """Yield the packages in [deps], and those that the target `test` names."""
        compat, extras = self._read_table("compat"), {**self._read_table("weakdeps"), **self._read_table("extras")}
        targets = self._content.get("targets")
        tests = targets.get("test", []) if isinstance(targets, dict) and with_tests else []
        rows = [(name, uuid, False) for name, uuid in self._read_table("deps").items()]
        rows += [(str(name), extras[name], True) for name in tests if name in extras]
        for name, uuid, is_test in rows:
            line = self._find_line(name)
            yield RequiredPackage(
                name=name, uuid=uuid, compat=compat.get(name, ""), is_test=is_test, path=self.path, line=line
            )

    def _read_text(self, key: str) -> str:
        value = self._content.get(key)
        return value if isinstance(value, str) else ""

    def _read_table(self, key: str) -> dict[str, str]:
        table = self._content.get(key)
        return {k: v for k, v in table.items() if isinstance(v, str)} if isinstance(table, dict) else {}

    def _find_line(self, key: str) -> int:
        match = re.search(rf"^\s*{re.escape(key)}\s*=", self.text, re.MULTILINE)
        return self.text.count("\n", 0, match.start()) + 1 if match else 0


def is_standard(name: str, version: str) -> bool:
    """Return whether a package belongs to the standard library of a release."""
    return name in _STANDARD or version_key(version) >= _SINCE.get(name, (1000,))


def convert_range(text: str) -> str:
    """Return a range of [compat] as a constraint of `languages.scripting.versions.parse_constraint`.

    A version alone is `^`, `~1.6` allows a minor version, `1.6 - 1.9` is a range, and commas separate alternatives.
    """
    return " || ".join(_convert_term(term.strip()) for term in text.split(",") if term.strip())


def _convert_term(term: str) -> str:
    if match := re.fullmatch(r"v?([\d.]+)\s+-\s+v?([\d.]+)", term):
        last = match[2]
        return f">= {match[1]} " + (f"<= {last}" if "." in last else f"< {int(last) + 1}")
    term = term.replace("≥", ">=").replace("≤", "<=")
    match = re.fullmatch(r"([~=^]?)\s*v?(\d+(?:\.\d+)?)[\d.]*", term)
    if not match:
        return term
    is_exact = match[1] in ("~", "=") and "." in match[2]
    return f"=={match[2]}" if is_exact else f"^{match[2]}"
