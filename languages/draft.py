"""The plan draft: every choice of a build plan with its alternatives and evidence, in a single form for all languages.

A language reads a source tree into a draft and renders a draft as a BuildPlan. Repair (`builders.repair`) edits drafts,
so every attempt is data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Self

from languages.facts import SourcedValue
from taskdb.records import Evidence, TestCommand


class NoPlanError(Exception):
    """No build plan exists for the tree; the message is the detail of the rejection."""


class Role(StrEnum):
    """Purpose of a package. OPTIONAL packages are dropped when they cannot be installed."""

    BUILD = "build"
    RUNTIME = "runtime"
    TEST = "test"
    OPTIONAL = "optional"


@dataclass(frozen=True, kw_only=True)
class Dependency:
    """A package of the language's registry, its role, and the line that requires it."""

    role: Role
    source: SourcedValue


@dataclass(frozen=True, kw_only=True)
class PlanningContext:
    """Input of the planner besides the source tree."""

    list_available: Callable[[], Sequence[str]]
    """Returns the versions of the language whose base image exists or can be made on this machine, oldest first. May
    take seconds."""
    day: date
    """Date of the change (UTC)."""
    version: str = ""
    """Version of the project where the source provides it, such as `v1.2`."""
    changed_paths: tuple[str, ...] = ()
    """Files of the change; in a repository of several projects they select the project."""


@dataclass(frozen=True, kw_only=True)
class PlanDraft:
    """Choices of a build plan before rendering, with their alternatives."""

    language: str
    name: str
    """Name of the project; empty if it has none."""
    versions: tuple[Evidence, ...]
    """Versions of the language to try, best first; the first is used."""
    day: date
    """Date of the change (UTC)."""
    exclude_newer: date
    """Packages uploaded on or after this date are hidden from the build, where the registry records upload dates."""
    test: TestCommand
    dependencies: tuple[Dependency, ...] = ()
    """Packages installed by name, in addition to those that the language's own installer reads from `manifests`."""
    manifests: tuple[tuple[str, str], ...] = ()
    """(path, blob id) of files of the tree that the dependency steps read (package.json, lock files, go.mod ...)."""
    system_packages: tuple[SourcedValue, ...] = ()
    """Debian packages."""
    services: tuple[SourcedValue, ...] = ()
    """Servers that the tests need: names of `evaluation/services/`, such as `postgresql`."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of build and tests."""
    switches: frozenset[str] = frozenset()
    """Names of optional behaviours; `Language.switches` describes each of them."""
    dependency_steps: tuple[str, ...] = ()
    """Shell commands after the language's own dependency steps; with network, without the source tree."""
    source_steps: tuple[str, ...] = ()
    """Shell commands before the language's own source steps, run in the source tree."""
    evidence: tuple[Evidence, ...] = field(default=())
    """Evidence of choices that have no field of their own."""

    def leave_out(self, name: str) -> Self:
        """Return the draft without a package that the language's own installer would read from `manifests`.

        It is the same draft where the package is not among them, or where more than the tests may need it.
        """
        del name
        return self
