"""Modules of Python: the names of those that a file defines, and of those that it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from languages.modules import ModuleReader

PACKAGE_ROOTS = ("src/", "lib/", "python/")
"""Folders that hold packages and are not part of a module's name."""


def parse_imports(source: bytes) -> Iterable[str]:
    """Yield the dotted names that a Python file imports; `from a import b` yields `a` and `a.b`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _list_modules(path: str) -> list[str]:
    if not path.endswith(".py"):
        return []
    for root in PACKAGE_ROOTS:
        path = path.removeprefix(root)
    return [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")]


MODULES = ModuleReader(list_modules=_list_modules, separator=".", parse_imports=parse_imports)
