"""What the project declares of itself: pyproject.toml, setup.cfg, setup.py, merged in this order."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from packaging.utils import canonicalize_name

from languages.facts import Fact, Kind, Wanted, line_of, requirement
from languages.python.setup_py import setup_arguments
from languages.tree import Tree

PYPROJECT, SETUP_CFG, SETUP_PY = "pyproject.toml", "setup.cfg", "setup.py"


@dataclass
class Project:
    """Declared metadata. `extras` and `groups` map a name to its requirements."""

    name: str = ""
    requires: list[Wanted] = field(default_factory=list)
    build_requires: list[Wanted] = field(default_factory=list)
    test_requires: list[Wanted] = field(default_factory=list)
    """`tests_require` of setuptools."""
    extras: dict[str, list[Wanted]] = field(default_factory=dict)
    groups: dict[str, list[Wanted]] = field(default_factory=dict)
    backend: str = ""
    packaged: bool = False
    """Whether there is anything an installer could install."""
    facts: list[Fact] = field(default_factory=list)


def read_project(tree: Tree) -> Project:
    """Everything the three files say."""
    project = Project()
    _pyproject(tree, project)
    _setup_cfg(tree, project)
    _setup_py(tree, project)
    return project


def load_toml(tree: Tree, path: str) -> dict[str, Any]:
    """A TOML file, empty when there is none or it is broken."""
    try:
        return tomllib.loads(tree.read(path))
    except tomllib.TOMLDecodeError:
        return {}


def _wanted(items: Any, path: str, text: str) -> list[Wanted]:
    """A list of requirement strings (or text of one per line), those that are none left out."""
    lines = items.splitlines() if isinstance(items, str) else items
    return [
        Wanted(text=clean, path=path, line=line_of(text, item.strip()))
        for item in (lines if isinstance(lines, Iterable) else ())
        if isinstance(item, str) and (clean := requirement(item))
    ]


def _classifiers(items: Iterable[Any], path: str, text: str) -> Iterator[Fact]:
    for item in items:
        if match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", str(item).strip()):
            yield Fact(kind=Kind.PYTHON, value=match.group(1), path=path, line=line_of(text, str(item)))


def _requires_python(value: Any, path: str, text: str) -> Iterator[Fact]:
    if isinstance(value, str) and value:
        yield Fact(kind=Kind.REQUIRES_PYTHON, value=value, path=path, line=line_of(text, value))


def _pyproject(tree: Tree, project: Project) -> None:
    text, data = tree.read(PYPROJECT), load_toml(tree, PYPROJECT)
    system = data.get("build-system", {})
    project.backend = system.get("build-backend", "setuptools.build_meta" if system else "")
    project.packaged = bool(system) or "project" in data
    project.build_requires += _wanted(system.get("requires", []), PYPROJECT, text)
    declared = data.get("project", {})
    project.name = declared.get("name", "")
    project.requires += _wanted(declared.get("dependencies", []), PYPROJECT, text)
    project.facts += _classifiers(declared.get("classifiers", []), PYPROJECT, text)
    project.facts += _requires_python(declared.get("requires-python"), PYPROJECT, text)
    for name, items in declared.get("optional-dependencies", {}).items():
        project.extras[name] = _wanted(items, PYPROJECT, text)
    groups = data.get("dependency-groups", {})
    for name in groups:
        project.groups[name] = _wanted(_group(groups, name), PYPROJECT, text)
    _tools(data.get("tool", {}), project, text)


def _group(groups: dict[str, Any], name: str, depth: int = 8) -> Iterator[str]:
    """The strings of a PEP 735 group, includes followed."""
    for item in groups.get(name, []) if depth else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict) and "include-group" in item:
            yield from _group(groups, item["include-group"], depth - 1)


def _tools(tools: dict[str, Any], project: Project, text: str) -> None:
    poetry = tools.get("poetry", {})
    project.name = project.name or poetry.get("name", "")
    project.packaged = project.packaged or bool(poetry)
    for name, value in poetry.get("dependencies", {}).items():
        if name.lower() == "python":
            project.facts += _requires_python(_caret(value) if isinstance(value, str) else "", PYPROJECT, text)
        elif not (isinstance(value, dict) and value.get("optional")):
            project.requires += _poetry(name, value, text)
    groups = {"dev": poetry.get("dev-dependencies", {})} | {
        name: group.get("dependencies", {}) for name, group in poetry.get("group", {}).items()
    }
    for name, items in groups.items():
        for package, value in items.items():
            project.groups.setdefault(name, []).extend(_poetry(package, value, text))
    for name, items in poetry.get("extras", {}).items():
        found = [_poetry(p, poetry.get("dependencies", {}).get(p, "*"), text) for p in items if isinstance(p, str)]
        project.extras[name] = [wanted for part in found for wanted in part]
    for name, items in tools.get("pdm", {}).get("dev-dependencies", {}).items():
        project.groups.setdefault(name, []).extend(_wanted(items, PYPROJECT, text))
    project.groups.setdefault("dev", []).extend(
        _wanted(tools.get("uv", {}).get("dev-dependencies", []), PYPROJECT, text)
    )
    for name, env in tools.get("hatch", {}).get("envs", {}).items():
        project.groups.setdefault("test" if name == "default" else name, []).extend(
            _wanted([*env.get("dependencies", []), *env.get("extra-dependencies", [])], PYPROJECT, text)
        )


def _poetry(name: str, value: Any, text: str) -> list[Wanted]:
    """A poetry dependency as PEP 508; of several constraints the first."""
    if isinstance(value, list):
        value = value[0] if value else "*"
    table = value if isinstance(value, dict) else {"version": value}
    extras = f"[{','.join(table['extras'])}]" if table.get("extras") else ""
    python = _caret(str(table.get("python", "")))
    conditions = [f"python_version {m.group(1)} '{m.group(2)}'" for m in re.finditer(r"([<>=!]+)\s*([\d.]+)", python)]
    markers = [f"({table['markers']})"] if table.get("markers") else []
    marker = " and ".join(conditions + markers)
    found = f"{name}{extras}{_caret(str(table.get('version', '*')))}" + (f"; {marker}" if marker else "")
    line = line_of(text, f"\n{name} ") or line_of(text, name)
    clean = requirement(found)
    return [Wanted(text=clean, path=PYPROJECT, line=line)] if clean else []


def _caret(version: str) -> str:
    """Poetry's and cargo's `^1.2` and `~1.2` as PEP 440; `*` and alternatives as no constraint."""
    if version.strip() in ("*", "") or "||" in version:
        return ""
    parts = []
    for part in re.split(r"\s*,\s*|\s+(?=[<>=!^~])", version.strip()):
        if match := re.fullmatch(r"([\^~])\s*(\d+)((?:\.\d+)*)(.*)", part):
            numbers = [int(match.group(2)), *(int(n) for n in match.group(3).split(".")[1:])]
            first = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
            at = first if match.group(1) == "^" else min(1, len(numbers) - 1)
            upper = [*numbers[:at], numbers[at] + 1]
            parts.append(f">={'.'.join(map(str, numbers))}{match.group(4)},<{'.'.join(map(str, upper))}")
        else:
            parts.append(part if part[0] in "<>=!~" else f"=={part}")
    return ",".join(parts)


def _setup_cfg(tree: Tree, project: Project) -> None:
    text = tree.read(SETUP_CFG)
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    project.name = project.name or (parser.get("metadata", "name", fallback="") or "")
    options = dict(parser.items("options")) if parser.has_section("options") else {}
    project.requires += _wanted((options.get("install_requires") or "").replace(";\n", "\n"), SETUP_CFG, text)
    project.test_requires += _wanted(options.get("tests_require") or "", SETUP_CFG, text)
    project.build_requires += _wanted(options.get("setup_requires") or "", SETUP_CFG, text)
    project.facts += _requires_python(options.get("python_requires"), SETUP_CFG, text)
    classifiers = parser.get("metadata", "classifiers", fallback="") or parser.get(
        "metadata", "classifier", fallback=""
    )
    project.facts += _classifiers((classifiers or "").splitlines(), SETUP_CFG, text)
    if parser.has_section("options.extras_require"):
        for name, items in parser.items("options.extras_require"):
            project.extras.setdefault(name, []).extend(_wanted(items or "", SETUP_CFG, text))


def _setup_py(tree: Tree, project: Project) -> None:
    if not tree.is_file(SETUP_PY):
        return
    text, project.packaged = tree.read(SETUP_PY), True
    arguments = {name: value for name, (value, _) in setup_arguments(tree).items()}
    if isinstance(arguments.get("name"), str):
        project.name = project.name or arguments["name"]
    for keyword, into in (
        ("install_requires", project.requires),
        ("requires", project.requires),
        ("tests_require", project.test_requires),
        ("setup_requires", project.build_requires),
    ):
        into.extend(_wanted(arguments.get(keyword, []), SETUP_PY, text))
    extras = arguments.get("extras_require")
    for name, items in extras.items() if isinstance(extras, dict) else ():
        project.extras.setdefault(str(name), []).extend(_wanted(items, SETUP_PY, text))
    classifiers = arguments.get("classifiers", [])
    # The classifiers often are text that some call splits; the file's lines say the same.
    listed = (
        classifiers
        if isinstance(classifiers, list) and classifiers
        else re.findall(r"Programming Language :: Python :: 3\.\d+", text)
    )
    project.facts += _classifiers(listed, SETUP_PY, text)
    project.facts += _requires_python(arguments.get("python_requires"), SETUP_PY, text)


def self_references(project: Project, items: Iterable[Wanted]) -> Iterator[str]:
    """Extras of the project itself that requirements name, such as `me[tests]` in an extra `dev`."""
    own = canonicalize_name(project.name) if project.name else ""
    for item in items:
        if own and item.name == own and (match := re.search(r"\[([^\]]*)\]", item.text)):
            yield from (part.strip() for part in match.group(1).split(","))
