"""Modules that programs of worlds and checks may import."""

from __future__ import annotations

from importlib import import_module

ALLOWED_MODULES = (
    "__future__",
    "abc",
    "bisect",
    "calendar",
    "collections",
    "collections.abc",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "numbers",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "textwrap",
    "typing",
    "unicodedata",
    "uuid",
)
"""Modules of the standard library that compute, and neither read files nor start processes."""
_IMPORTED_LATE = ("_strptime", "encodings.ascii", "encodings.latin_1", "encodings.utf_8", "encodings.idna", "time")
"""Modules that those import when a function is first called."""


def import_modules() -> None:
    """Import all of them: processes in an empty folder cannot."""
    for name in (*ALLOWED_MODULES, *_IMPORTED_LATE):
        import_module(name)
