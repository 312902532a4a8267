"""Lists of requirements that lie in files of their own: pip's requirements, conda environments, Pipfile."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

import yaml

from languages.facts import Fact, Kind, Wanted, line_of, requirement
from languages.python.project import load_toml
from languages.tree import Tree

TEST_FILES = re.compile(
    r"(^|/)(test[_-]?(ing|s)?[_-]?)?req[^/]*(test|ci)[^/]*\.(txt|in|pip)$"
    r"|(^|/)(tests?|testing|ci)[_-]?req[^/]*\.(txt|in|pip)$"
    r"|(^|/)requirements?/[^/]*(tests?|testing|ci)\.(txt|in|pip)$"
    r"|^tests?/requirements[^/]*\.(txt|in|pip)$"
)
"""Names that say: what the tests need."""

DEV_FILES = re.compile(
    r"(^|/)req[^/]*(dev|develop|development)[^/]*\.(txt|in|pip)$|(^|/)dev[^/]*[_-]?req[^/]*\.(txt|in|pip)$"
    r"|(^|/)requirements?/(dev|develop|development|local)\.(txt|in|pip)$"
)
"""Names that say: what developers need; asked when nobody says what tests need."""

CONDA_NAMES = {"pytables": "tables", "matplotlib-base": "matplotlib", "seaborn-base": "seaborn",
               "iris": "scitools-iris",
               "dask-core": "dask", "py-opencv": "opencv-python-headless", "msgpack-python": "msgpack",
               "pytorch": "torch", "nc-time-axis": "nc-time-axis", "lz4-python": "lz4"}  # fmt: skip
"""What a conda package is called on PyPI, where the names differ."""

RICH = 0.75

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


def requirements_file(tree: Tree, path: str, depth: int = 5) -> Iterator[Wanted]:
    """The requirements of a pip file, `-r` includes followed relative to it; options are passed over."""
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        if match := re.match(r"\s*(?:-r|--requirement)[ =]?\s*(\S+)", line):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), match.group(1)))
            if depth and tree.is_file(inner):
                yield from requirements_file(tree, inner, depth - 1)
        elif not line.lstrip().startswith(("#", "-")) and (clean := requirement(line)):
            yield Wanted(text=clean, path=path, line=number)


def own_extras(tree: Tree, path: str, depth: int = 5) -> Iterator[str]:
    """The project's own extras that a pip file asks for, as in `-e .[test]`."""
    for line in tree.read(path).splitlines():
        if match := re.match(r"\s*(?:-r|--requirement)[ =]?\s*(\S+)", line):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), match.group(1)))
            if depth and tree.is_file(inner):
                yield from own_extras(tree, inner, depth - 1)
        elif match := re.match(r"\s*(?:-e\s+|--editable[ =]\s*)?['\"]?\.?\./?\[([^\]]*)\]", line):
            yield from (name.strip() for name in match.group(1).split(",") if name.strip())


def conda_files(tree: Tree) -> list[str]:
    """Environment files that lie where projects keep those of their CI, the one for the newest Python first.

    Files that name less than RICH of what the longest one names are left out: what a new Python can't have yet, or the
    least a project runs with.
    """
    found = [
        path
        for pattern in ("ci/*.y*ml", "environment*.y*ml", "continuous_integration/*.y*ml", "requirements/*.y*ml")
        for path in tree.glob(pattern)
        if re.search(r"env|req|py-?3", path) and not re.search(r"doc|min|bare|upstream|windows|osx|dev\b", path)
    ]
    sizes = {path: sum(1 for _ in conda_requirements(tree, path)) for path in dict.fromkeys(found)}
    rich = [path for path, size in sizes.items() if size >= RICH * max(sizes.values())]
    return sorted(rich, key=lambda path: (_latest_python(path), -len(path), path), reverse=True)


def _latest_python(path: str) -> int:
    match = re.search(r"py-?3\.?(\d+)", path)
    return int(match.group(1)) if match else 0


def conda_requirements(tree: Tree, path: str) -> Iterator[Wanted]:
    """The requirements of a conda environment under their PyPI names, its `pip:` part included."""
    text = tree.read(path)
    try:
        data = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - the one loader that constructs nothing
    except yaml.YAMLError:
        return
    items: list[Any] = data.get("dependencies") or [] if isinstance(data, dict) else []
    flat = [i for item in items for i in ((item.get("pip") or []) if isinstance(item, dict) else [item])]
    for item in flat:
        if not isinstance(item, str):
            continue
        name, *rest = re.split(r"(?=[<>=!~])", item.split("::")[-1].replace(" ", ""), maxsplit=1)
        # `numpy=1.17` is a prefix in conda's grammar.
        version = re.sub(r"^=(?!=)([\d.]+).*", r"==\1.*", rest[0]) if rest else ""
        if name in _NOT_ON_PYPI or name.startswith("_"):
            continue
        if clean := requirement(CONDA_NAMES.get(name, name) + version):
            yield Wanted(text=clean, path=path, line=line_of(text, item))


def conda_python(tree: Tree) -> Iterator[Fact]:
    """Pythons that environment files are named for or pin."""
    for path in conda_files(tree):
        text = tree.read(path)
        for match in [re.search(r"py-?3\.?(\d+)", path), re.search(r"-\s*python\s*=+\s*3\.(\d+)", text)]:
            if match:
                yield Fact(kind=Kind.PYTHON, value=f"3.{match.group(1)}", path=path, line=line_of(text, "python="))


def pipfile(tree: Tree) -> Iterator[Wanted]:
    """Development packages of a Pipfile."""
    text = tree.read("Pipfile")
    for name, value in load_toml(tree, "Pipfile").get("dev-packages", {}).items():
        version = value if isinstance(value, str) and value != "*" else ""
        if clean := requirement(f"{name}{version}"):
            yield Wanted(text=clean, path="Pipfile", line=line_of(text, name))
