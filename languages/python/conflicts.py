"""Packages that the message of a failed install blames, and which of it the project can do without."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from languages.draft import Dependency, PlanDraft, Role
from languages.python.fallbacks import midnight_after

_NO_SOLUTION = "No solution found when resolving"
_LACKS_VERSIONS = re.compile(r"there (is|are) no versions? of|only .{1,200}? (is|are) available|was published after")
"""Matches messages about releases that did not exist on the day, as `uv pip install` writes them."""
_REQUIRED = re.compile(r"\byou require ((?:[A-Za-z0-9][\w.-]*[^\s,]*(?: and )?)+)")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_UNBUILDABLE = re.compile(r"Failed to (?:download and )?build `([A-Za-z0-9][\w.-]*?)(?:==[^`]*)?`")
_OWN_FILES = re.compile(r"(^|/)(pyproject\.toml|setup\.(py|cfg)|Pipfile)$")
"""Matches files in which a project declares the versions that it supports.

The versions that others pin are a way to set up its tests.
"""


def find_conflicts(log: str, draft: PlanDraft) -> list[Dependency]:
    """Return the dependencies that the message blames, those to give up first in front.

    They have versions that conflict, or cannot be built. The project's own declarations are never among them. Empty
    where a release is missing that a later day may have.
    """
    message = _read_message(log)
    if not message and (unbuildable := {canonicalize_name(name) for name in _UNBUILDABLE.findall(log)}):
        needed = {dependency.source.distribution_name for dependency in draft.dependencies if _is_own(dependency)}
        return [
            dependency
            for dependency in draft.dependencies
            if dependency.source.distribution_name in unbuildable - needed
        ]
    if not message or (_LACKS_VERSIONS.search(message) and draft.exclude_newer < midnight_after(draft.day)):
        return []
    blamed = {
        canonicalize_name(name)
        for listed in _REQUIRED.findall(message)
        for name in _NAME.findall(re.sub(r"\[[^]]*\]|[<>=~!][^\s]*", "", listed))
    }
    secondary = [
        dependency
        for dependency in draft.dependencies
        if dependency.source.distribution_name in blamed
        and not _is_own(dependency)
        and Requirement(dependency.source.text).specifier
    ]
    own = {dependency.source.distribution_name for dependency in draft.dependencies if dependency not in secondary}
    return sorted(
        secondary, key=lambda dependency: (dependency.source.distribution_name not in own, not _is_exact(dependency))
    )


def _read_message(log: str) -> str:
    """Return the resolver's last message as a line; empty if there is none."""
    start = log.rfind(_NO_SOLUTION)
    return " ".join(re.sub(r"[^\x00-\x7f]", " ", log[start:]).split()) if start >= 0 else ""


def _is_own(dependency: Dependency) -> bool:
    """Return whether the project itself declares a requirement, and not a way to set up its tests."""
    return dependency.role in (Role.RUNTIME, Role.BUILD) or bool(_OWN_FILES.search(dependency.source.path))


def _is_exact(dependency: Dependency) -> bool:
    return any(specifier.operator in ("==", "===") for specifier in Requirement(dependency.source.text).specifier)
