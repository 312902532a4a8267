"""Parser of DESCRIPTION, the metadata of an R package. Read as text, never executed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages.draft import Dependency, Role
from languages.facts import SourcedValue
from languages.source_tree import SourceTree

_BASE_PACKAGES = frozenset(
    {
        "R",
        "base",
        "compiler",
        "datasets",
        "graphics",
        "grDevices",
        "grid",
        "methods",
        "parallel",
        "splines",
        "stats",
        "stats4",
        "tcltk",
        "tools",
        "utils",
    }
)
"""R itself and the packages that belong to it."""
_TOOLS = frozenset(
    {"covr", "devtools", "goodpractice", "lintr", "pkgdown", "rcmdcheck", "rhub", "roxygen2", "spelling", "usethis"}
)
"""Suggested packages that development uses, but no test."""
_FIELDS = {
    "Depends": Role.RUNTIME,
    "Imports": Role.RUNTIME,
    "LinkingTo": Role.RUNTIME,
    "Suggests": Role.OPTIONAL,
}


class PackageDescription:
    """A DESCRIPTION; empty if it is missing."""

    def __init__(self, tree: SourceTree, folder: str) -> None:
        self.path = f"{folder}/DESCRIPTION" if folder else "DESCRIPTION"
        self.lines = tree.read(self.path).splitlines()

    @property
    def name(self) -> str:
        """Name of the package; empty if it has none."""
        return next((text for _, text in self._read_field("Package")), "").strip()

    @property
    def r_bound(self) -> SourcedValue | None:
        """The range of R versions, such as `>= 3.5`."""
        for number, text in self._read_field("Depends"):
            if match := re.search(r"(?:^|[\s,])R\s*\(([^)]*)\)", text):
                return SourcedValue(text=match[1].strip(), path=self.path, line=number)
        return None

    def list_dependencies(self, code: str) -> Iterator[Dependency]:
        """Yield the packages that the package needs, and the suggested packages that `code` names; each once."""
        names = set(_BASE_PACKAGES)
        for field, role in _FIELDS.items():
            for number, text in self._read_field(field):
                for name in re.findall(r"(?:^|,)\s*([A-Za-z][\w.]*)", re.sub(r"\([^)]*\)", "", text)):
                    is_unused = role is Role.OPTIONAL and not re.search(rf"\b{re.escape(name)}\b", code)
                    if name in names or is_unused or (name in _TOOLS and role is Role.OPTIONAL):
                        continue
                    names.add(name)
                    yield Dependency(role=role, source=SourcedValue(text=name, path=self.path, line=number))

    def _read_field(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield (number, text) of the lines of a field."""
        is_inside = False
        for number, line in enumerate(self.lines, 1):
            if match := re.match(r"([\w/@.-]+):(.*)", line):
                is_inside = match[1] == name
                if is_inside:
                    yield number, match[2]
            elif is_inside:
                yield number, line


def list_debian_names(package: str) -> tuple[str, ...]:
    """Return the Debian packages that may contain a package of CRAN or Bioconductor."""
    return (f"r-cran-{package.lower()}", f"r-bioc-{package.lower()}")
