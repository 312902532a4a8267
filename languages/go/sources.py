"""Parser of Go source files: build constraints, imports, test functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import PurePosixPath

from languages.facts import SourcedValue, find_line
from languages.source_tree import SourceTree

_SYSTEMS = frozenset(
    {
        "aix",
        "android",
        "darwin",
        "dragonfly",
        "freebsd",
        "hurd",
        "illumos",
        "ios",
        "js",
        "linux",
        "nacl",
        "netbsd",
        "openbsd",
        "plan9",
        "solaris",
        "wasip1",
        "windows",
        "zos",
    }
)
_MACHINES = frozenset(
    {
        "386",
        "amd64",
        "arm",
        "arm64",
        "loong64",
        "mips",
        "mips64",
        "mips64le",
        "mipsle",
        "ppc64",
        "ppc64le",
        "riscv64",
        "s390x",
        "sparc64",
        "wasm",
    }
)
_TermPredicate = Callable[[str], bool]
"""Returns whether a build tag is set."""

_TARGET_TERMS = frozenset({"linux", "amd64", "unix", "cgo", "gc"})

_TESTS = re.compile(r"^func (?:Test(?!Main\b)|Fuzz)(?![a-z])\w*\(", re.MULTILINE)
_EXAMPLE = re.compile(r"^func Example(?![a-z])\w*\(\) \{.*?^\s*// (?:Unordered )?[Oo]utput:", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^import\s*\((.*?)^\s*\)", re.MULTILINE | re.DOTALL)
_SINGLE = re.compile(r'^import\s+(?:[\w.]+\s+)?"([^"\n]+)"', re.MULTILINE)
_QUOTED = re.compile(r'^\s*(?:[\w.]+\s+)?["`]([^"`\n]+)["`]', re.MULTILINE)


def is_ignored(path: str) -> bool:
    """Return whether `./...` excludes the file: vendored, test data or hidden."""
    *folders, name = PurePosixPath(path).parts
    return name[0] in "._" or any(part in ("vendor", "testdata") or part[0] in "._" for part in folders)


def is_compiled(path: str, text: str, tags: Collection[str], minor: int) -> bool:
    """Return whether a file is compiled on linux/amd64 with `tags` by Go 1.`minor`."""
    words = path.rpartition("/")[2].removesuffix(".go").removesuffix("_test").split("_")[1:]
    if len(words) > 1 and words[-2] in _SYSTEMS and words[-1] in _MACHINES and words[-2] != "linux":
        return False
    if words and (words[-1] in _SYSTEMS - {"linux"} or words[-1] in _MACHINES - {"amd64"}):
        return False
    header = re.split(r"^package\s", text, maxsplit=1, flags=re.MULTILINE)[0]
    tags_set = _TARGET_TERMS | set(tags)

    def holds(word: str) -> bool:
        release = re.fullmatch(r"go1\.(\d+)", word)
        return int(release[1]) <= minor if release else word in tags_set

    if modern := re.search(r"^//go:build (.+)$", header, re.MULTILINE):
        return _BuildConstraint(modern[1], holds).is_satisfied()
    lines = re.findall(r"^//\s*\+build (.+)$", header, re.MULTILINE)
    return all(any(_match_all_terms(option, holds) for option in line.split()) for line in lines)


def _match_all_terms(option: str, holds: _TermPredicate) -> bool:
    return all(not holds(term[1:]) if term[:1] == "!" else holds(term) for term in option.split(","))


class _BuildConstraint:
    """Evaluates a `//go:build` line: words, `!`, `&&`, `||` and parentheses."""

    def __init__(self, text: str, holds: _TermPredicate) -> None:
        self.words = re.findall(r"&&|\|\||[!()]|[\w.]+", text)
        self.holds = holds

    def is_satisfied(self) -> bool:
        """Return whether the constraint is satisfied."""
        met = self._parse_and()
        while self._accept_word("||"):
            met = self._parse_and() or met
        return met

    def _parse_and(self) -> bool:
        met = self._parse_term()
        while self._accept_word("&&"):
            met = self._parse_term() and met
        return met

    def _parse_term(self) -> bool:
        if self._accept_word("!"):
            return not self._parse_term()
        if self._accept_word("("):
            met = self.is_satisfied()
            self._accept_word(")")
            return met
        return bool(self.words) and self.holds(self.words.pop(0))

    def _accept_word(self, word: str) -> bool:
        if self.words[:1] == [word]:
            self.words.pop(0)
            return True
        return False


def parse_imports(path: str, text: str) -> Iterator[SourcedValue]:
    """Yield the import paths of a file with their lines."""
    head = re.split(r"^(?:func|type|var|const)\s", text, maxsplit=1, flags=re.MULTILINE)[0]
    for block in _BLOCK.finditer(head):
        for match in _QUOTED.finditer(block[1]):
            line = head.count("\n", 0, block.start(1) + match.start(1)) + 1
            yield SourcedValue(text=match[1], path=path, line=line)
    for match in _SINGLE.finditer(head):
        yield SourcedValue(text=match[1], path=path, line=find_line(head, match[0]))


def defines_tests(text: str) -> bool:
    """Return whether a file has a function that `go test` runs."""
    return bool(_TESTS.search(text) or _EXAMPLE.search(text))


def find_external_imports(
    tree: SourceTree, files: Iterable[str], own: Collection[str], tags: Collection[str], minor: int
) -> list[SourcedValue]:
    """Return external packages imported by the files, each with its first occurrence, sorted by import path.

    Args:
        tree: the source tree.
        files: Go files.
        own: import paths of the tree's own modules.
        tags: build tags.
        minor: minor Go version.
    """
    paths = sorted(files)
    texts = tree.read_many(paths)
    first_imports: dict[str, SourcedValue] = {}
    for path in paths:
        if is_compiled(path, texts[path], tags, minor):
            for imported in parse_imports(path, texts[path]):
                is_own = any(imported.text == name or imported.text.startswith(f"{name}/") for name in own)
                if "." in imported.text.partition("/")[0] and not imported.text.startswith(".") and not is_own:
                    first_imports.setdefault(imported.text, imported)
    return [first_imports[text] for text in sorted(first_imports)]
