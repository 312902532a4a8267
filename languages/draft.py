"""A draft: all choices of a plan with their alternatives and evidence, in the same form for every language.

A language reads a tree into a draft and renders a draft as a BuildPlan. What mends a build that failed
(`builders.repair`) edits drafts, so each attempt is data again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from languages.facts import Wanted
from taskdb.records import Evidence, TestCommand


class NoPlanError(Exception):
    """Nothing in the tree can be planned for; the message says why, for a rejection."""


class Role(StrEnum):
    """Why a package is there. OPTIONAL ones are given up when they cannot be had."""

    BUILD = "build"
    RUNTIME = "runtime"
    TEST = "test"
    OPTIONAL = "optional"


@dataclass(frozen=True, kw_only=True)
class Dependency:
    """A package of the language's registry, its role and its place."""

    role: Role
    wanted: Wanted


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a language is told beside the tree."""

    available: Callable[[], Sequence[str]]
    """Versions of the language for which this machine has or can make a base, oldest first. Asking may take seconds."""
    day: date
    """The change's date (UTC)."""
    version: str = ""
    """The project's version where its source knows it, such as `v1.2`."""
    touched: tuple[str, ...] = ()
    """Files of the change: in a repository of several projects they say which one it is about."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A plan's choices before they are rendered, with their alternatives."""

    language: str
    name: str
    """The project's own name, empty when it has none."""
    versions: tuple[Evidence, ...]
    """Versions of the language worth trying, best first; the first is the choice."""
    day: date
    """The change's date (UTC)."""
    exclude_newer: date
    """Packages uploaded from this day on don't exist for the build, where the registry tells dates."""
    test: TestCommand
    dependencies: tuple[Dependency, ...] = ()
    """Packages named one by one, beside those that `manifests` name for the language's own installer."""
    manifests: tuple[tuple[str, str], ...] = ()
    """(path, blob id) of files of the tree that the dependency steps read (package.json, lock files, go.mod ...)."""
    system_packages: tuple[Wanted, ...] = ()
    """Debian packages."""
    services: tuple[Wanted, ...] = ()
    """Servers the tests need, names of `backends/testing/services/`, such as `postgresql`."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables while building and testing."""
    switches: frozenset[str] = frozenset()
    """Named ways to do things that the language knows (its SWITCHES say what each does)."""
    dependency_steps: tuple[str, ...] = ()
    """Shell lines after the language's own dependency steps; with network, without the tree."""
    source_steps: tuple[str, ...] = ()
    """Shell lines before the language's own source steps, in the tree."""
    evidence: tuple[Evidence, ...] = field(default=())
    """Of choices that have no field of their own here."""
