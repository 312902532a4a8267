"""Modules that files define and import, by which tests of a changed file are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ModuleReader:
    """Reader of a language's modules. Both functions are pure and return nothing for files of other languages."""

    list_modules: Callable[[str], Iterable[str]]
    """Returns the names of the modules that a file defines, given its path."""
    separator: str = ""
    """Separator between a module's name and the packages that contain it; empty if imports name no packages."""
    parse_imports: Callable[[bytes], Iterable[str]]
    """Returns the names of the modules that a file imports, given its content."""
