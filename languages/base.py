"""What a language is: everything particular to it, in one module of this package that has these names.

A module `languages/NAME.py` (or package) with these constants and functions is a language; `languages.registry`
finds it. Nothing else in the system knows languages by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from languages.draft import Context, Draft
from languages.tree import Tree
from taskdb.records import BuildPlan

Fallback = Callable[[Draft], Draft]
"""Gives up one choice of a draft that could not be built or tested; the same draft when there is nothing to give up."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version of a language and where a base image for it can come from."""

    version: str
    """Such as `3.11`, `1.22`, `17`: what projects ask for."""
    official: str
    """Name of the official image, such as `golang:1.22-bookworm`; dockerfiles/catalog.toml may pin its digest."""
    released: date | None = None
    """First final release, for choosing by date."""
    suite: str | None = None
    """Debian release that a base can be made of: its own `packages` are this version, or it carries the `toolchain`."""
    packages: tuple[str, ...] = ()
    """Debian packages beside those of every base."""
    toolchain: str = ""
    """Shell lines that bring the toolchain from a package registry to the Debian base; as root, with network."""
    probe: str = "true"
    """Shell that fails unless the language works in the base, such as `go version`."""


@dataclass(frozen=True, kw_only=True)
class Canary:
    """How to write a test that passes and one that fails beside the real ones, under a name nobody can guess."""

    name: Callable[[Sequence[str]], str]
    """Bash word for the file's name, from the test files that run (formed as they are, so that the runner takes it in);
    it sees $word, 32 hexadecimal digits."""
    body: str
    """Bash that prints the file: a test whose name holds $word and that asserts 3 * 4 == $sum ($sum is 12 or 13). It
    sees $folder (of the tree, `.` for the root) and $file (with the folder) too."""


@dataclass(frozen=True, kw_only=True)
class Framework:
    """How the tests are started so that a report falls out."""

    name: str
    """Of `TestCommand.framework`; unique over all languages."""
    shell: str
    """Jinja2 over bash that sets the array `command`. Jinja2 sees argv, paths, folder (of the TestCommand) and
    `harness(NAME)` (base64 of a file of backends/testing/harness); bash sees $out (a folder for reports, owned by the
    tests' user), `reports` (`"${reports[@]}" asset NAME` prints a reporter of ours), $report
    (root's), $workdir, $seed and the array `arguments`: the test files to run, from the tree's root; empty for all.
    The command runs in `folder`."""
    report: str | None = None
    """Format by which `backends/testing/harness/reports` reads what the runner left in $out; null when the runner
    writes $out/junit.xml itself, in pytest's form."""
    canary: Canary | None = None
    """Null when the framework takes in no files that its build does not name."""


class Language(Protocol):
    """The names a language module has."""

    NAME: str
    """The word in plans, records and on the command line: `go`."""
    TITLE: str
    """As people write it: `Go`."""
    SUFFIXES: tuple[str, ...]
    """Ends of names of its program files, such as `.go`."""
    TEST_PATTERNS: tuple[str, ...]
    """POSIX-extended (grep -E) and Python regex at once, on paths from the root: test files and what lies beside them
    (fixtures, snapshots). They must not take in other languages' sources: end them with the suffix where needed."""
    RUNNER_PATTERNS: tuple[str, ...]
    """Configuration of test runners: not for a submission to change."""
    CONFIG_PATTERNS: tuple[str, ...]
    """Files that may hold a runner's configuration beside other things (package.json): a submission's edits are put
    back, and the gold patch's version belongs to the tests' side."""
    TEST_FILE: str
    """Regex of paths of files in which a framework looks for tests."""
    KEPT_FOLDERS: tuple[str, ...]
    """Names of folders in the tree that dependency steps fill and tests use (`node_modules`)."""
    PATH: tuple[str, ...]
    """Folders of executables before the usual ones."""
    RELEASES: tuple[Release, ...]
    """Oldest first."""
    DEFAULT: str
    """The version made when none is named."""
    FRAMEWORKS: tuple[Framework, ...]
    SWITCHES: Mapping[str, str]
    """Switch of a draft -> what it does, in a line."""
    FALLBACKS: tuple[Fallback, ...]
    """What is given up when a plan fails and nothing else is known to mend it, in this order."""

    def draft(self, tree: Tree, context: Context) -> Draft:
        """All choices for the tree. Pure: the same tree and context, the same draft.

        Raises:
            NoPlanError: there is no project of this language with tests, or no version for it.
        """

    def render(self, draft: Draft) -> BuildPlan:
        """The plan of a draft. Pure."""

    def defining_files(self, tree: Tree, plan: BuildPlan | None = None) -> list[str]:
        """Files that define tests, sorted: those a whole run of the plan should collect, or without a plan all.

        Empty for a plan whose reports cannot be told by file.
        """
