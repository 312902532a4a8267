"""Settings of uv that hide packages by their age: the date of packages is pinned already, so they are not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from languages.facts import find_line
from languages.python.project import PYPROJECT, load_toml
from languages.source_tree import SourceTree
from taskdb.records import Evidence

UV_TOML = "uv.toml"
SETTINGS = ("exclude-newer", "exclude-newer-package")
_NOTE = "off: the date of packages is pinned, a gate counts from the build"


def find_age_gates(tree: SourceTree) -> list[Evidence]:
    """Return the settings of the project, of all packages or of single ones, with file and line."""
    tool = load_toml(tree, PYPROJECT).get("tool")
    # uv does not read pyproject.toml where there is a uv.toml.
    path = UV_TOML if tree.is_file(UV_TOML) else PYPROJECT
    table = load_toml(tree, UV_TOML) if path == UV_TOML else _get_table(tool, "uv")
    names = [name for name in SETTINGS if name in table or name in _get_table(table, "pip")]
    text = tree.read(path)
    return [
        Evidence(choice="age_gate", value=name, path=path, line=find_line(text, name), note=_NOTE) for name in names
    ]


def _get_table(table: Any, name: str) -> Mapping[str, Any]:
    """Return a table of a table; empty where either is none."""
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, dict) else {}
