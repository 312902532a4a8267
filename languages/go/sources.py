"""What Go files say: build constraints, imports, test functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import PurePosixPath

from languages.facts import Wanted, line_of
from languages.tree import Tree

_SYSTEMS = frozenset(
    {
        "aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl", "netbsd",
        "openbsd", "plan9", "solaris", "wasip1", "windows", "zos",
    }
)  # fmt: skip
_MACHINES = frozenset(
    {
        "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le",
        "riscv64", "s390x", "sparc64", "wasm",
    }
)  # fmt: skip
_Holds = Callable[[str], bool]
"""Whether a build tag is set."""

_HERE = frozenset({"linux", "amd64", "unix", "cgo", "gc"})

_TESTS = re.compile(r"^func (?:Test(?!Main\b)|Fuzz)(?![a-z])\w*\(", re.MULTILINE)
_EXAMPLE = re.compile(r"^func Example(?![a-z])\w*\(\) \{.*?^\s*// (?:Unordered )?[Oo]utput:", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^import\s*\((.*?)^\s*\)", re.MULTILINE | re.DOTALL)
_SINGLE = re.compile(r'^import\s+(?:[\w.]+\s+)?"([^"\n]+)"', re.MULTILINE)
_QUOTED = re.compile(r'^\s*(?:[\w.]+\s+)?["`]([^"`\n]+)["`]', re.MULTILINE)


def is_ignored(path: str) -> bool:
    """Whether `./...` passes the file over: vendored, test data, hidden."""
    *folders, name = PurePosixPath(path).parts
    return name[0] in "._" or any(part in ("vendor", "testdata") or part[0] in "._" for part in folders)


def applies(path: str, text: str, tags: Collection[str], minor: int) -> bool:
    """Whether a file is compiled on Linux on amd64 with `tags` by Go 1.`minor`."""
    words = path.rpartition("/")[2].removesuffix(".go").removesuffix("_test").split("_")[1:]
    if len(words) > 1 and words[-2] in _SYSTEMS and words[-1] in _MACHINES and words[-2] != "linux":
        return False
    if words and (words[-1] in _SYSTEMS - {"linux"} or words[-1] in _MACHINES - {"amd64"}):
        return False
    head = re.split(r"^package\s", text, maxsplit=1, flags=re.MULTILINE)[0]
    has = _HERE | set(tags)

    def holds(word: str) -> bool:
        release = re.fullmatch(r"go1\.(\d+)", word)
        return int(release[1]) <= minor if release else word in has

    if modern := re.search(r"^//go:build (.+)$", head, re.MULTILINE):
        return _Expression(modern[1], holds).value()
    lines = re.findall(r"^//\s*\+build (.+)$", head, re.MULTILINE)
    return all(any(_all_of(option, holds) for option in line.split()) for line in lines)


def _all_of(option: str, holds: _Holds) -> bool:
    return all(not holds(term[1:]) if term[:1] == "!" else holds(term) for term in option.split(","))


class _Expression:
    """A `//go:build` line: words, `!`, `&&`, `||` and parentheses."""

    def __init__(self, text: str, holds: _Holds) -> None:
        self.words = re.findall(r"&&|\|\||[!()]|[\w.]+", text)
        self.holds = holds

    def value(self) -> bool:
        """Whether it is met."""
        met = self._both()
        while self._next("||"):
            met = self._both() or met
        return met

    def _both(self) -> bool:
        met = self._one()
        while self._next("&&"):
            met = self._one() and met
        return met

    def _one(self) -> bool:
        if self._next("!"):
            return not self._one()
        if self._next("("):
            met = self.value()
            self._next(")")
            return met
        return bool(self.words) and self.holds(self.words.pop(0))

    def _next(self, word: str) -> bool:
        if self.words[:1] == [word]:
            self.words.pop(0)
            return True
        return False


def imports(path: str, text: str) -> Iterator[Wanted]:
    """Import paths of a file, with their lines."""
    head = re.split(r"^(?:func|type|var|const)\s", text, maxsplit=1, flags=re.MULTILINE)[0]
    for block in _BLOCK.finditer(head):
        for match in _QUOTED.finditer(block[1]):
            line = head.count("\n", 0, block.start(1) + match.start(1)) + 1
            yield Wanted(text=match[1], path=path, line=line)
    for match in _SINGLE.finditer(head):
        yield Wanted(text=match[1], path=path, line=line_of(head, match[0]))


def defines_tests(text: str) -> bool:
    """Whether a file has a function that `go test` runs."""
    return bool(_TESTS.search(text) or _EXAMPLE.search(text))


def foreign(tree: Tree, files: Iterable[str], own: Collection[str], tags: Collection[str], minor: int) -> list[Wanted]:
    """Packages of other modules that the files import, each with its first place, sorted.

    Args:
        tree: the tree.
        files: Go files.
        own: import paths of the tree's own modules.
        tags: build tags.
        minor: of Go's version.
    """
    paths = sorted(files)
    texts = tree.read_many(paths)
    found: dict[str, Wanted] = {}
    for path in paths:
        if applies(path, texts[path], tags, minor):
            for wanted in imports(path, texts[path]):
                is_own = any(wanted.text == name or wanted.text.startswith(f"{name}/") for name in own)
                if "." in wanted.text.partition("/")[0] and not wanted.text.startswith(".") and not is_own:
                    found.setdefault(wanted.text, wanted)
    return [found[text] for text in sorted(found)]
