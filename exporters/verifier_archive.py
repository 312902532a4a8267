"""Archives of the modules that score submissions in a container, each packed into a single file.

`verifier.pyz` needs the standard library alone. `checks.pyz`, which decides on instructions, needs CHECK_PACKAGES, too.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable

_MAIN = b"import sys\n\nfrom guest.verifier.main import main\n\nsys.exit(main())\n"
_MODULES = {
    "guest": ("reports", "scoring", "verifier"),
    "guest.controls": ("blind.py", "choices.py", "texts.py"),
}
"""Package -> its modules, and subpackages as a whole, that are packed; of its own `__init__.py` only the name."""
_CHECKS_MAIN = b"""\
import os
import sys

from evaluation.instructions.log_grader import main

sys.exit(main(os.path.dirname(os.path.abspath(sys.argv[0]))))
"""
_CHECKS_MODULES = {
    "core": ("errors.py", "templates.py", "toml.py", "validation.py"),
    "evaluation": ("instructions",),
    "taskdb": ("records",),
}
_CHECKS_PACKAGES = ("languages", "mutation")
"""Packages that are packed as a whole, with their templates."""
CHECK_PACKAGES = (
    "jinja2",
    "packaging",
    "pydantic",
    "pyyaml",
    "tree-sitter",
    "tree-sitter-bash",
    "tree-sitter-c",
    "tree-sitter-cpp",
    "tree-sitter-elixir",
    "tree-sitter-go",
    "tree-sitter-java",
    "tree-sitter-javascript",
    "tree-sitter-kotlin",
    "tree-sitter-lua",
    "tree-sitter-perl",
    "tree-sitter-php",
    "tree-sitter-python",
    "tree-sitter-ruby",
    "tree-sitter-rust",
    "tree-sitter-typescript",
)
"""Packages that `checks.pyz` imports."""


@cache
def pack_verifier() -> bytes:
    """Return a zip file for `python3 -I -S -B verifier.pyz` (Python >= 3.9). Equal sources give equal bytes."""
    return _pack({"__main__.py": _MAIN, **_read_modules(_MODULES)})


@cache
def pack_checks() -> bytes:
    """Return a zip file for `python3 -I -B checks.pyz` (Python >= 3.11). Equal sources give equal bytes."""
    whole = {
        f"{package}/{path}": content
        for package in _CHECKS_PACKAGES
        for path, content in list_packed_files(files(package))
    }
    return _pack({"__main__.py": _CHECKS_MAIN, **_read_modules(_CHECKS_MODULES), **whole})


def render_requirements() -> str:
    """Return the requirements of `checks.pyz`, a line each, in the versions that are installed here."""
    return "".join(f"{name}=={version(name)}\n" for name in CHECK_PACKAGES)


def _read_modules(parts: Mapping[str, tuple[str, ...]]) -> dict[str, bytes]:
    """Return path -> content of modules and of all below subpackages."""
    entries: dict[str, bytes] = {}
    for package, names in parts.items():
        folder = package.replace(".", "/")
        entries[f"{folder}/__init__.py"] = b""
        for name in names:
            source = files(package).joinpath(name)
            listed = _list_modules(source) if source.is_dir() else [("", source.read_bytes())]
            entries |= {f"{folder}/{name}/{path}".rstrip("/"): content for path, content in listed}
    return entries


def _list_modules(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of all modules below a folder."""
    yield from ((path, content) for path, content in list_packed_files(folder) if path.endswith(".py"))


def list_packed_files(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of all files below a folder that are not compiled."""
    for entry in folder.iterdir():
        if not entry.is_dir():
            yield entry.name, entry.read_bytes()
        elif entry.name != "__pycache__":
            yield from ((f"{entry.name}/{path}", content) for path, content in list_packed_files(entry))


def _pack(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, entries[name], zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()
