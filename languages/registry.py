"""Which languages there are: the modules of this package that have a NAME. A new one needs no line here."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath
from typing import cast

import languages as package
from languages.base import Framework, Language
from mergemill.errors import InputError


@cache
def all_languages() -> dict[str, Language]:
    """Name -> language, Python first, the others by name."""
    found = [importlib.import_module(f"languages.{module.name}") for module in pkgutil.iter_modules(package.__path__)]
    known = [cast("Language", module) for module in found if hasattr(module, "NAME")]
    return {one.NAME: one for one in sorted(known, key=lambda one: (one.NAME != "python", one.NAME))}


def language(name: str) -> Language:
    """The language of that name.

    Raises:
        InputError: there is none.
    """
    known = all_languages()
    if name not in known:
        raise InputError(f"{name} is not supported", advice=f"known: {', '.join(known)}")
    return known[name]


@cache
def frameworks() -> dict[str, Framework]:
    """Name -> framework, of all languages."""
    return {one.name: one for known in all_languages().values() for one in known.FRAMEWORKS}


OTHERS = {
    ".c": "c", ".h": "c", ".cc": "c++", ".cpp": "c++", ".hpp": "c++", ".rs": "rust", ".go": "go", ".java": "java",
    ".kt": "kotlin", ".js": "javascript", ".jsx": "javascript", ".mjs": "javascript", ".ts": "typescript",
    ".tsx": "typescript", ".vue": "typescript", ".rb": "ruby", ".php": "php", ".cs": "c#", ".swift": "swift",
    ".scala": "scala", ".jl": "julia", ".lua": "lua",
}  # fmt: skip
"""Ends of names of program files for which there may be no module."""


@cache
def suffixes() -> dict[str, str]:
    """End of a program file's name -> its language; what modules say goes before OTHERS."""
    return OTHERS | {suffix: one.NAME for one in reversed(all_languages().values()) for suffix in one.SUFFIXES}


def language_of_file(path: str) -> str:
    """The language a file is written in by the end of its name; empty when none is known."""
    return suffixes().get(PurePosixPath(path).suffix.lower(), "")


def language_of(paths: Iterable[str]) -> str:
    """The language of most program files among `paths`; of equally many Python first; empty when there are none.

    Headers beside files in C++ are C++.
    """
    counted = Counter(name for path in paths if (name := language_of_file(path)))
    if "c++" in counted:
        counted["c++"] += counted.pop("c", 0)
    return min(counted, key=lambda name: (-counted[name], name != "python", name), default="")


@cache
def family(name: str) -> frozenset[str]:
    """The language and those that share a test framework with it: their files lie in the same projects."""
    known = all_languages()
    if name not in known:
        return frozenset({name})
    own = {framework.name for framework in known[name].FRAMEWORKS}
    related = {one.NAME for one in known.values() if own & {framework.name for framework in one.FRAMEWORKS}}
    return frozenset({name, *related})
