"""Extract the `go test` command from CI configuration.

Flags, packages and variables that change the code that is tested.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from languages.facts import SourcedValue
from languages.go.modules import GoModule
from languages.source_tree import SourceTree
from languages.workflows import Job

START = ("go", "test", "-vet=off", "-p", "2")
"""Vet is a linter; its findings would fail whole packages. Two parallel builds fit into memory."""

_WITH_VALUE = frozenset({"-tags", "-ldflags", "-gcflags", "-timeout"})
"""Flags kept with their value."""
_DROPPED_WITH_VALUE = frozenset(
    {
        "-p",
        "-count",
        "-coverprofile",
        "-covermode",
        "-coverpkg",
        "-bench",
        "-benchtime",
        "-run",
        "-skip",
        "-cpu",
        "-parallel",
        "-o",
        "-exec",
        "-vet",
        "-mod",
        "-modfile",
        "-outputdir",
        "-cpuprofile",
        "-memprofile",
        "-trace",
        "-shuffle",
        "-fuzz",
        "-fuzztime",
        "-asmflags",
        "-installsuffix",
        "-pkgdir",
        "-toolexec",
        "-list",
        "-blockprofile",
        "-mutexprofile",
    }
)
_KEPT_FLAGS = frozenset({"-short", "-trimpath"})
_VARIABLES = frozenset({"CGO_ENABLED", "GOEXPERIMENT", "GODEBUG"})
_LIBRARIES = re.compile(r"-dev$|^(protobuf-compiler|sqlite3|graphviz|git-lfs|zip|unzip|xz-utils|zstd|bzip2|jq|curl)$")


_NO_SOURCE = SourcedValue(text="", path="(default)")
_CALL = re.compile(r"(?:\bgo(?:[\d.]+)? test|\bgotestsum\b[^|;&]*? --|\$[({]?GO[)}]? test)(?=\s|$)([^|;&]*)")


@dataclass(frozen=True, kw_only=True)
class GoTestCommand:
    """A `go test` command line."""

    __test__ = False
    argv: tuple[str, ...]
    paths: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    source: SourcedValue = _NO_SOURCE


def runs_go_tests(job: Job) -> bool:
    """Return whether a job runs Go tests."""
    return any(
        _split_calls(line.text) or re.search(r"\b(make|just|task|mage)\b.*\btest", line.text) for line in job.lines
    )


def find_test_command(tree: SourceTree, jobs: Sequence[Job], module: GoModule) -> GoTestCommand:
    """Return the first command (CI, Makefile) for the whole module, else for a part of it, else the bare command."""
    lines: list[tuple[str, SourcedValue, tuple[tuple[str, str], ...]]] = [
        (line.text, SourcedValue(text="", path=job.path, line=line.line), job.env)
        for job in sorted(jobs, key=lambda job: job.is_auxiliary)
        for line in job.lines
        if line.folder in ("", module.folder)
    ]
    for name in ("Makefile", "GNUmakefile", "makefile"):
        for number, text in enumerate(tree.read(name).splitlines(), 1):
            lines.append((text, SourcedValue(text="", path=name, line=number), ()))
    commands = [command for text, source, env in lines for command in _parse_commands(text, source, env, tree, module)]
    complete = [command for command in commands if not command.paths]
    return next(iter([*complete, *commands]), GoTestCommand(argv=START))


def _parse_commands(
    text: str, source: SourcedValue, env: Sequence[tuple[str, str]], tree: SourceTree, module: GoModule
) -> Iterator[GoTestCommand]:
    for words in _split_calls(text):
        if read := _parse_flags(words):
            kept = tuple((name, value) for name, value in env if name in _VARIABLES)
            yield GoTestCommand(argv=read[0], paths=_resolve_packages(read[1], tree, module), env=kept, source=source)


def _split_calls(text: str) -> list[list[str]]:
    """Return the words after each `go test` or `gotestsum ... --` of a line."""
    calls = []
    for match in re.finditer(
        r"(?:\bgo(?:[\d.]+)? test|\bgotestsum\b[^|;&]*? --|\$[({]?GO[)}]? test)(?=\s|$)([^|;&]*)", text
    ):
        try:
            calls.append(shlex.split(re.sub(r"\$\([^()]*\)|`[^`]*`", " ./... ", match[1])))
        except ValueError:
            calls.append(match[1].split())
    return calls


def _parse_flags(words: list[str]) -> tuple[tuple[str, ...], list[str]] | None:
    """Return (command, packages) from the words after `go test`; None for benchmarks and single tests."""
    kept, packages = list(START), []
    remaining = iter(words)
    for word in remaining:
        flag, _, value = word.replace("--", "-", 1).partition("=")
        if flag in ("-bench", "-run", "-fuzz", "-list", "-c") and value != ".":
            return None
        if flag in _WITH_VALUE:
            argument = value or next(remaining, "")
            if argument and "$" not in argument and flag != "-timeout":
                kept.append(f"{flag}={argument}")
        elif flag in _DROPPED_WITH_VALUE:
            if not value:
                next(remaining, "")
        elif flag in _KEPT_FLAGS:
            kept.append(flag)
        elif word in ("-args", "--args"):
            break
        elif not word.startswith("-") and "$" not in word:
            packages.append(word)
    return tuple(kept), packages


def _resolve_packages(packages: Sequence[str], tree: SourceTree, module: GoModule) -> tuple[str, ...]:
    """Return the package patterns if all of them are folders of the tree; empty for `./...`."""
    patterns = [package.rstrip("/") for package in packages]
    prefixes = [f"{module.folder}/" if module.folder else "" for _ in patterns]
    all_exist = all(
        package.startswith("./") and (folder + package[2:].removesuffix("...").rstrip("/")).rstrip("/") in tree.folders
        for package, folder in zip(patterns, prefixes, strict=True)
    )
    return tuple(patterns) if patterns and all_exist and "./..." not in patterns else ()


def parse_build_tags(argv: Sequence[str]) -> frozenset[str]:
    """Return the build tags that a command sets."""
    values = [word.partition("=")[2] for word in argv if word.startswith("-tags=")]
    return frozenset(tag for text in values for tag in re.split(r"[\s,]+", text) if tag)


def find_system_packages(jobs: Sequence[Job]) -> tuple[SourcedValue, ...]:
    """Return the Debian packages installed by CI that cgo code or tests may need."""
    packages: dict[str, SourcedValue] = {}
    for package in _list_installed_packages(jobs):
        if _LIBRARIES.search(package.text):
            packages.setdefault(package.text, package)
    return tuple(packages[name] for name in sorted(packages))


def _list_installed_packages(jobs: Sequence[Job]) -> Iterator[SourcedValue]:
    for job in jobs:
        if runs_go_tests(job) and not job.is_auxiliary:
            yield from job.list_system_packages()


def get_environment(command: GoTestCommand) -> tuple[tuple[str, str], ...]:
    """Return the CI variables that change the code that is compiled."""
    return command.env
