"""Requirement lists in files of their own: pip's requirements, conda environments, Pipfile."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

import yaml

from core.toml import get_table
from languages.facts import Fact, FactKind, SourcedValue, find_line, parse_requirement
from languages.python.project import load_toml
from languages.source_tree import SourceTree

TEST_FILES = re.compile(
    r"(^|/)(test[_-]?(ing|s)?[_-]?)?req[^/]*(test|ci)[^/]*\.(txt|in|pip)$"
    r"|(^|/)(tests?|testing|ci)[_-]?req[^/]*\.(txt|in|pip)$"
    r"|(^|/)requirements?/[^/]*(tests?|testing|ci)\.(txt|in|pip)$"
    r"|^tests?/requirements[^/]*\.(txt|in|pip)$"
)
"""Matches names of files with test requirements."""

DEV_FILES = re.compile(
    r"(^|/)req[^/]*(dev|develop|development)[^/]*\.(txt|in|pip)$|(^|/)dev[^/]*[_-]?req[^/]*\.(txt|in|pip)$"
    r"|(^|/)requirements?/(dev|develop|development|local)\.(txt|in|pip)$"
)
"""Matches names of files with developer requirements; used if there are no test requirements."""

CONDA_NAMES = {
    "pytables": "tables",
    "matplotlib-base": "matplotlib",
    "seaborn-base": "seaborn",
    "iris": "scitools-iris",
    "dask-core": "dask",
    "py-opencv": "opencv-python-headless",
    "msgpack-python": "msgpack",
    "pytorch": "torch",
    "nc-time-axis": "nc-time-axis",
    "lz4-python": "lz4",
}
"""Conda package -> PyPI distribution, where the names differ."""

WELL_KNOWN_LINES = 0.75

_NOT_ON_PYPI = frozenset(
    [
        "python",
        "pip",
        "nodefaults",
        "conda",
        "gcc",
        "gxx",
        "compilers",
        "make",
        "cmake",
        "nodejs",
        "git",
        "graphviz",
        "pandoc",
    ]
)


def read_requirements_file(tree: SourceTree, path: str, depth: int = 5) -> Iterator[SourcedValue]:
    """Yield the requirements of a pip file, `-r` includes resolved relative to it; options are skipped."""
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        if match := re.match(r"\s*(?:-r|--requirement)[ =]?\s*(\S+)", line):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), match.group(1)))
            if depth and tree.is_file(inner):
                yield from read_requirements_file(tree, inner, depth - 1)
        elif not line.lstrip().startswith(("#", "-")) and (clean := parse_requirement(line)):
            yield SourcedValue(text=clean, path=path, line=number)


def read_own_extras(tree: SourceTree, path: str, depth: int = 5) -> Iterator[str]:
    """Yield the project's own extras that a pip file refers to, as in `-e .[test]`."""
    for line in tree.read(path).splitlines():
        if match := re.match(r"\s*(?:-r|--requirement)[ =]?\s*(\S+)", line):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), match.group(1)))
            if depth and tree.is_file(inner):
                yield from read_own_extras(tree, inner, depth - 1)
        elif match := re.match(r"\s*(?:-e\s+|--editable[ =]\s*)?['\"]?\.?\./?\[([^\]]*)\]", line):
            yield from (name.strip() for name in match.group(1).split(",") if name.strip())


def list_conda_files(tree: SourceTree) -> list[str]:
    """Return the environment files in the usual CI folders, the file for the newest Python first.

    Files with fewer requirements than WELL_KNOWN_RATIO of the longest are skipped: they are for a new Python or a
    minimal set-up.
    """
    paths = [
        path
        for pattern in ("ci/*.y*ml", "environment*.y*ml", "continuous_integration/*.y*ml", "requirements/*.y*ml")
        for path in tree.glob(pattern)
        if re.search(r"env|req|py-?3", path) and not re.search(r"doc|min|bare|upstream|windows|osx|dev\b", path)
    ]
    sizes = {path: sum(1 for _ in read_conda_requirements(tree, path)) for path in dict.fromkeys(paths)}
    complete = [path for path, size in sizes.items() if size >= WELL_KNOWN_LINES * max(sizes.values())]
    return sorted(complete, key=lambda path: (_latest_python(path), -len(path), path), reverse=True)


def _latest_python(path: str) -> int:
    match = re.search(r"py-?3\.?(\d+)", path)
    return int(match.group(1)) if match else 0


def read_conda_requirements(tree: SourceTree, path: str) -> Iterator[SourcedValue]:
    """Yield the requirements of a conda environment under their PyPI names, including its `pip:` part."""
    text = tree.read(path)
    try:
        data = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - BaseLoader constructs no objects
    except yaml.YAMLError:
        return
    items: list[Any] = data.get("dependencies") or [] if isinstance(data, dict) else []
    flat = [i for item in items for i in ((item.get("pip") or []) if isinstance(item, dict) else [item])]
    for item in flat:
        if not isinstance(item, str):
            continue
        name, *rest = re.split(r"(?=[<>=!~])", item.split("::")[-1].replace(" ", ""), maxsplit=1)
        # `numpy=1.17` is a prefix match in conda.
        version = re.sub(r"^=(?!=)([\d.]+).*", r"==\1.*", rest[0]) if rest else ""
        if name in _NOT_ON_PYPI or name.startswith("_"):
            continue
        if clean := parse_requirement(CONDA_NAMES.get(name, name) + version):
            yield SourcedValue(text=clean, path=path, line=find_line(text, item))


def read_conda_python(tree: SourceTree) -> Iterator[Fact]:
    """Yield the Pythons that environment files pin or have in their name."""
    for path in list_conda_files(tree):
        text = tree.read(path)
        for match in [re.search(r"py-?3\.?(\d+)", path), re.search(r"-\s*python\s*=+\s*3\.(\d+)", text)]:
            if match:
                yield Fact(
                    kind=FactKind.PYTHON, value=f"3.{match.group(1)}", path=path, line=find_line(text, "python=")
                )


def read_pipfile(tree: SourceTree) -> Iterator[SourcedValue]:
    """Yield the development packages of a Pipfile."""
    text = tree.read("Pipfile")
    for name, value in get_table(load_toml(tree, "Pipfile"), "dev-packages").items():
        version = value if isinstance(value, str) and value != "*" else ""
        if clean := parse_requirement(f"{name}{version}"):
            yield SourcedValue(text=clean, path="Pipfile", line=find_line(text, name))
