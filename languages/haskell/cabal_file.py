"""Parser of NAME.cabal: stanzas and their fields, as far as a plan needs them. Conditions are ignored."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from languages.facts import SourcedValue
from languages.source_tree import SourceTree

BOOT_PACKAGES = frozenset(
    (
        *("array", "base", "binary", "bytestring", "cabal", "cabal-syntax", "containers", "deepseq", "directory"),
        *(
            "exceptions",
            "filepath",
            "ghc",
            "ghc-bignum",
            "ghc-boot",
            "ghc-boot-th",
            "ghc-compact",
            "ghc-heap",
            "ghc-prim",
        ),
        *("ghci", "haskeline", "hpc", "integer-gmp", "mtl", "parsec", "pretty", "process", "stm", "template-haskell"),
        *("terminfo", "text", "time", "transformers", "unix", "xhtml"),
    )
)
"""Packages that GHC itself installs."""
_STANZA = re.compile(
    r"^(library|executable|test-suite|benchmark|common|foreign-library|flag|source-repository)\b\s*(\S*)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"^\s*([a-z][\w-]*)\s*:(.*)$", re.IGNORECASE)


@dataclass(kw_only=True)
class Stanza:
    """A stanza: its kind and name in lower case, and field -> its lines with their numbers."""

    kind: str
    name: str
    fields: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def read_words(self, name: str) -> list[str]:
        """Return the words of a field."""
        return re.split(r"[\s,]+", " ".join(text for _, text in self.fields.get(name, [])).strip())


class CabalFile:
    """A parsed NAME.cabal."""

    def __init__(self, tree: SourceTree, path: str) -> None:
        self.path = path
        self.folder = posixpath.dirname(path)
        self.stanzas = _parse_stanzas(tree.read(path))

    @property
    def name(self) -> str:
        """Name of the package."""
        return " ".join(self.stanzas[0].read_words("name")) or posixpath.basename(self.path).removesuffix(".cabal")

    def list_suites(self) -> list[Stanza]:
        """Return the test suites that are programs."""
        suites = [stanza for stanza in self.stanzas if stanza.kind == "test-suite"]
        return [suite for suite in suites if suite.read_words("main-is")[0]]

    def list_requirements(self) -> Iterator[SourcedValue]:
        """Yield the packages that library, programs and test suites require, each once; without those of GHC."""
        names = {*BOOT_PACKAGES, self.name.lower()}
        for stanza in self.stanzas:
            for number, text in stanza.fields.get("build-depends", []) if stanza.kind != "benchmark" else []:
                for name in re.findall(r"(?:^|,)\s*([A-Za-z][\w-]*)", text):
                    if name.lower() not in names:
                        names.add(name.lower())
                        yield SourcedValue(text=name, path=self.path, line=number)

    def list_tools(self) -> Iterator[SourcedValue]:
        """Yield the programs that builds run, such as `hspec-discover`, each once."""
        names = set[str]()
        for stanza in self.stanzas:
            rows = [row for key in ("build-tool-depends", "build-tools") for row in stanza.fields.get(key, [])]
            for number, text in rows if stanza.kind != "benchmark" else []:
                for name in re.findall(r"(?:^|,)\s*([A-Za-z][\w-]*)", text):
                    if name not in names:
                        names.add(name)
                        yield SourcedValue(text=name, path=self.path, line=number)

    def list_imports(self, suite: Stanza) -> list[Stanza]:
        """Return a suite and the common stanzas that it imports."""
        imported = {word.lower() for word in suite.read_words("import")}
        return [suite, *(s for s in self.stanzas if s.kind == "common" and s.name.lower() in imported)]

    def find_main(self, tree: SourceTree, suite: Stanza) -> str:
        """Return the path of a suite's main file; empty if it is not in the tree."""
        main = suite.read_words("main-is")[0]
        folders = [word for stanza in self.list_imports(suite) for word in stanza.read_words("hs-source-dirs") if word]
        paths = [posixpath.normpath(posixpath.join(self.folder, folder, main)) for folder in (*folders, ".")]
        return next((path for path in paths if tree.is_file(path)), "")


def _parse_stanzas(text: str) -> list[Stanza]:
    """Return the stanzas; the first one holds the fields of the package."""
    stanzas = [Stanza(kind="package", name="")]
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*--", line):
            continue
        if match := _STANZA.match(line):
            stanzas.append(Stanza(kind=match[1].lower(), name=match[2]))
            lines = []
        elif match := _FIELD.match(line):
            lines = stanzas[-1].fields.setdefault(match[1].lower(), [])
            lines.append((number, match[2].strip()))
        elif re.match(r"\s*(if|elif|else|\})", line):
            lines = []
        else:
            lines.append((number, line.strip()))
    return stanzas


def list_debian_names(package: str) -> tuple[str, ...]:
    """Return the Debian packages of a library; that of QuickCheck has the number of its second version in its name."""
    return (f"libghc-{package.lower()}-dev", f"libghc-{package.lower()}2-dev")
