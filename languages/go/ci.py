"""How CI starts `go test`: its flags, packages and variables, as far as they change what is tested."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from languages.facts import Wanted
from languages.go.modules import Module
from languages.tree import Tree
from languages.workflows import Job

START = ("go", "test", "-vet=off", "-p", "2")
"""Vet is a linter that would keep whole packages from being tested; two links at a time fit into memory."""

_WITH_VALUE = frozenset({"-tags", "-ldflags", "-gcflags", "-timeout"})
"""Flags that are kept with their value."""
_DROPPED_WITH_VALUE = frozenset(
    {
        "-p", "-count", "-coverprofile", "-covermode", "-coverpkg", "-bench", "-benchtime", "-run", "-skip", "-cpu",
        "-parallel", "-o", "-exec", "-vet", "-mod", "-modfile", "-outputdir", "-cpuprofile", "-memprofile", "-trace",
        "-shuffle", "-fuzz", "-fuzztime", "-asmflags", "-installsuffix", "-pkgdir", "-toolexec", "-list",
        "-blockprofile", "-mutexprofile",
    }
)  # fmt: skip
_KEPT = frozenset({"-short", "-trimpath"})
_VARIABLES = frozenset({"CGO_ENABLED", "GOEXPERIMENT", "GODEBUG"})
_LIBRARIES = re.compile(r"-dev$|^(protobuf-compiler|sqlite3|graphviz|git-lfs|zip|unzip|xz-utils|zstd|bzip2|jq|curl)$")


_NOWHERE = Wanted(text="", path="(default)")
_CALL = re.compile(r"(?:\bgo(?:[\d.]+)? test|\bgotestsum\b[^|;&]*? --|\$[({]?GO[)}]? test)(?=\s|$)([^|;&]*)")


@dataclass(frozen=True, kw_only=True)
class TestRun:
    """A `go test` line."""

    __test__ = False
    argv: tuple[str, ...]
    paths: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    place: Wanted = _NOWHERE


def tests_here(job: Job) -> bool:
    """Whether a job runs Go tests."""
    return any(_calls(line.text) or re.search(r"\b(make|just|task|mage)\b.*\btest", line.text) for line in job.lines)


def test_run(tree: Tree, found: Sequence[Job], module: Module) -> TestRun:
    """The first line of CI or the Makefile that tests the whole module, else some of it, else the bare command."""
    lines: list[tuple[str, Wanted, tuple[tuple[str, str], ...]]] = [
        (line.text, Wanted(text="", path=job.path, line=line.line), job.env)
        for job in sorted(found, key=lambda job: job.is_beside)
        for line in job.lines
        if line.folder in ("", module.folder)
    ]
    for name in ("Makefile", "GNUmakefile", "makefile"):
        for number, text in enumerate(tree.read(name).splitlines(), 1):
            lines.append((text, Wanted(text="", path=name, line=number), ()))
    runs = [run for text, place, env in lines for run in _runs(text, place, env, tree, module)]
    whole = [run for run in runs if not run.paths]
    return next(iter([*whole, *runs]), TestRun(argv=START))


def _runs(text: str, place: Wanted, env: Sequence[tuple[str, str]], tree: Tree, module: Module) -> Iterator[TestRun]:
    for words in _calls(text):
        if read := _read(words):
            kept = tuple((name, value) for name, value in env if name in _VARIABLES)
            yield TestRun(argv=read[0], paths=_paths(read[1], tree, module), env=kept, place=place)


def _calls(text: str) -> list[list[str]]:
    """The words after each `go test` or `gotestsum ... --` of a line."""
    found = []
    for match in re.finditer(
        r"(?:\bgo(?:[\d.]+)? test|\bgotestsum\b[^|;&]*? --|\$[({]?GO[)}]? test)(?=\s|$)([^|;&]*)", text
    ):
        try:
            found.append(shlex.split(re.sub(r"\$\([^()]*\)|`[^`]*`", " ./... ", match[1])))
        except ValueError:
            found.append(match[1].split())
    return found


def _read(words: list[str]) -> tuple[tuple[str, ...], list[str]] | None:
    """(command, packages) of the words after `go test`; None for benchmarks and single tests."""
    kept, packages = list(START), []
    rest = iter(words)
    for word in rest:
        flag, _, value = word.replace("--", "-", 1).partition("=")
        if flag in ("-bench", "-run", "-fuzz", "-list", "-c") and value != ".":
            return None
        if flag in _WITH_VALUE:
            given = value or next(rest, "")
            if given and "$" not in given and flag != "-timeout":
                kept.append(f"{flag}={given}")
        elif flag in _DROPPED_WITH_VALUE:
            if not value:
                next(rest, "")
        elif flag in _KEPT:
            kept.append(flag)
        elif word in ("-args", "--args"):
            break
        elif not word.startswith("-") and "$" not in word:
            packages.append(word)
    return tuple(kept), packages


def _paths(packages: Sequence[str], tree: Tree, module: Module) -> tuple[str, ...]:
    """Package patterns, where all of them are folders of the tree and they are not simply everything."""
    plain = [package.rstrip("/") for package in packages]
    inside = [f"{module.folder}/" if module.folder else "" for _ in plain]
    known = all(
        package.startswith("./") and (folder + package[2:].removesuffix("...").rstrip("/")).rstrip("/") in tree.folders
        for package, folder in zip(plain, inside, strict=True)
    )
    return tuple(plain) if plain and known and "./..." not in plain else ()


def tags(argv: Sequence[str]) -> frozenset[str]:
    """Build tags that a command sets."""
    given = [word.partition("=")[2] for word in argv if word.startswith("-tags=")]
    return frozenset(tag for text in given for tag in re.split(r"[\s,]+", text) if tag)


def system_packages(found: Sequence[Job]) -> tuple[Wanted, ...]:
    """Debian packages that CI installs and that code in C or tests may need."""
    chosen: dict[str, Wanted] = {}
    for wanted in _installed(found):
        if _LIBRARIES.search(wanted.text):
            chosen.setdefault(wanted.text, wanted)
    return tuple(chosen[name] for name in sorted(chosen))


def _installed(found: Sequence[Job]) -> Iterator[Wanted]:
    for job in found:
        if tests_here(job) and not job.is_beside:
            yield from job.system_packages()


def environment(run: TestRun) -> tuple[tuple[str, str], ...]:
    """Variables of CI that change what is compiled."""
    return run.env
