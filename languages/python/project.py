"""Metadata that the project declares: pyproject.toml, setup.cfg, setup.py, merged in this order."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from packaging.utils import canonicalize_name

from core.toml import parse_toml
from languages.facts import Fact, FactKind, SourcedValue, find_line, parse_requirement
from languages.python.setup_py import read_setup_arguments
from languages.source_tree import SourceTree

PYPROJECT, SETUP_CFG, SETUP_PY = "pyproject.toml", "setup.cfg", "setup.py"


@dataclass
class PythonProject:
    """Declared metadata. `extras` and `groups` map a name to its requirements."""

    name: str = ""
    requirements: list[SourcedValue] = field(default_factory=list)
    build_requirements: list[SourcedValue] = field(default_factory=list)
    test_requirements: list[SourcedValue] = field(default_factory=list)
    """`tests_require` of setuptools."""
    extras: dict[str, list[SourcedValue]] = field(default_factory=dict)
    groups: dict[str, list[SourcedValue]] = field(default_factory=dict)
    backend: str = ""
    is_installable: bool = False
    """Whether the project can be installed."""
    facts: list[Fact] = field(default_factory=list)


def read_project(tree: SourceTree) -> PythonProject:
    """Return the metadata declared in the three files; a pyproject.toml with values of wrong types is left out."""
    project = PythonProject()
    try:
        _read_pyproject(tree, project)
    # A value stands where a table or a list belongs, so no tool reads the file, either.
    except (AttributeError, TypeError):
        project = PythonProject()
    _read_setup_cfg(tree, project)
    _read_setup_py(tree, project)
    return project


def load_toml(tree: SourceTree, path: str) -> dict[str, Any]:
    """Return a TOML file; empty if it is missing or invalid."""
    try:
        return parse_toml(tree.read(path))
    except ValueError:
        return {}


def _parse_requirements(items: Any, path: str, text: str) -> list[SourcedValue]:
    """Return the valid requirements of a list of strings, or of a text with one per line."""
    lines = items.splitlines() if isinstance(items, str) else items
    return [
        SourcedValue(text=clean, path=path, line=find_line(text, item.strip()))
        for item in (lines if isinstance(lines, Iterable) else ())
        if isinstance(item, str) and (clean := parse_requirement(item))
    ]


def _parse_classifiers(items: Iterable[Any], path: str, text: str) -> Iterator[Fact]:
    for item in items:
        if match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", str(item).strip()):
            yield Fact(kind=FactKind.PYTHON, value=match.group(1), path=path, line=find_line(text, str(item)))


def _parse_requires_python(value: Any, path: str, text: str) -> Iterator[Fact]:
    if isinstance(value, str) and value:
        yield Fact(kind=FactKind.REQUIRES_PYTHON, value=value, path=path, line=find_line(text, value))


def _read_pyproject(tree: SourceTree, project: PythonProject) -> None:
    text, data = tree.read(PYPROJECT), load_toml(tree, PYPROJECT)
    system = data.get("build-system", {})
    project.backend = _check_text(system.get("build-backend", "setuptools.build_meta" if system else ""))
    project.is_installable = bool(system) or "project" in data
    project.build_requirements += _parse_requirements(system.get("requires", []), PYPROJECT, text)
    declared = data.get("project", {})
    project.name = _check_text(declared.get("name", ""))
    project.requirements += _parse_requirements(declared.get("dependencies", []), PYPROJECT, text)
    project.facts += _parse_classifiers(declared.get("classifiers", []), PYPROJECT, text)
    project.facts += _parse_requires_python(declared.get("requires-python"), PYPROJECT, text)
    for name, items in declared.get("optional-dependencies", {}).items():
        project.extras[name] = _parse_requirements(items, PYPROJECT, text)
    groups = data.get("dependency-groups", {})
    for name in groups:
        project.groups[name] = _parse_requirements(_expand_group(groups, name), PYPROJECT, text)
    _read_tools(data.get("tool", {}), project, text)


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _expand_group(groups: dict[str, Any], name: str, depth: int = 8) -> Iterator[str]:
    """Yield the requirements of a PEP 735 group, includes expanded."""
    for item in groups.get(name, []) if depth else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict) and "include-group" in item:
            yield from _expand_group(groups, item["include-group"], depth - 1)


def _read_tools(tools: dict[str, Any], project: PythonProject, text: str) -> None:
    poetry = tools.get("poetry", {})
    project.name = project.name or _check_text(poetry.get("name", ""))
    project.is_installable = project.is_installable or bool(poetry)
    for name, value in poetry.get("dependencies", {}).items():
        if name.lower() == "python":
            project.facts += _parse_requires_python(
                _convert_caret(value) if isinstance(value, str) else "", PYPROJECT, text
            )
        elif not (isinstance(value, dict) and value.get("optional")):
            project.requirements += _convert_poetry(name, value, text)
    groups = {"dev": poetry.get("dev-dependencies", {})} | {
        name: group.get("dependencies", {}) for name, group in poetry.get("group", {}).items()
    }
    for name, items in groups.items():
        for package, value in items.items():
            project.groups.setdefault(name, []).extend(_convert_poetry(package, value, text))
    for name, items in poetry.get("extras", {}).items():
        dependencies = [
            _convert_poetry(p, poetry.get("dependencies", {}).get(p, "*"), text) for p in items if isinstance(p, str)
        ]
        project.extras[name] = [requirement for part in dependencies for requirement in part]
    for name, items in tools.get("pdm", {}).get("dev-dependencies", {}).items():
        project.groups.setdefault(name, []).extend(_parse_requirements(items, PYPROJECT, text))
    project.groups.setdefault("dev", []).extend(
        _parse_requirements(tools.get("uv", {}).get("dev-dependencies", []), PYPROJECT, text)
    )
    for name, env in tools.get("hatch", {}).get("envs", {}).items():
        project.groups.setdefault("test" if name == "default" else name, []).extend(
            _parse_requirements([*env.get("dependencies", []), *env.get("extra-dependencies", [])], PYPROJECT, text)
        )


def _convert_poetry(name: str, value: Any, text: str) -> list[SourcedValue]:
    """Return a poetry dependency as PEP 508; only the first of several constraints."""
    if isinstance(value, list):
        value = value[0] if value else "*"
    table = value if isinstance(value, dict) else {"version": value}
    extras = f"[{','.join(table['extras'])}]" if table.get("extras") else ""
    python = _convert_caret(str(table.get("python", "")))
    conditions = [f"python_version {m.group(1)} '{m.group(2)}'" for m in re.finditer(r"([<>=!]+)\s*([\d.]+)", python)]
    markers = [f"({table['markers']})"] if table.get("markers") else []
    marker = " and ".join(conditions + markers)
    requirement_text = f"{name}{extras}{_convert_caret(str(table.get('version', '*')))}" + (
        f"; {marker}" if marker else ""
    )
    line = find_line(text, f"\n{name} ") or find_line(text, name)
    clean = parse_requirement(requirement_text)
    return [SourcedValue(text=clean, path=PYPROJECT, line=line)] if clean else []


def _convert_caret(version: str) -> str:
    """Return poetry's and cargo's `^1.2` and `~1.2` as PEP 440; `*` and alternatives as no constraint."""
    if version.strip() in ("*", "") or "||" in version:
        return ""
    parts = []
    for part in re.split(r"\s*,\s*|\s+(?=[<>=!^~])", version.strip()):
        if match := re.fullmatch(r"([\^~])\s*(\d+)((?:\.\d+)*)(.*)", part):
            numbers = [int(match.group(2)), *(int(n) for n in match.group(3).split(".")[1:])]
            first = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
            position = first if match.group(1) == "^" else min(1, len(numbers) - 1)
            upper = [*numbers[:position], numbers[position] + 1]
            parts.append(f">={'.'.join(map(str, numbers))}{match.group(4)},<{'.'.join(map(str, upper))}")
        else:
            parts.append(part if part[0] in "<>=!~" else f"=={part}")
    return ",".join(parts)


def _read_setup_cfg(tree: SourceTree, project: PythonProject) -> None:
    text = tree.read(SETUP_CFG)
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    project.name = project.name or (parser.get("metadata", "name", fallback="") or "")
    options = dict(parser.items("options")) if parser.has_section("options") else {}
    project.requirements += _parse_requirements(
        (options.get("install_requires") or "").replace(";\n", "\n"), SETUP_CFG, text
    )
    project.test_requirements += _parse_requirements(options.get("tests_require") or "", SETUP_CFG, text)
    project.build_requirements += _parse_requirements(options.get("setup_requires") or "", SETUP_CFG, text)
    project.facts += _parse_requires_python(options.get("python_requires"), SETUP_CFG, text)
    classifiers = parser.get("metadata", "classifiers", fallback="") or parser.get(
        "metadata", "classifier", fallback=""
    )
    project.facts += _parse_classifiers((classifiers or "").splitlines(), SETUP_CFG, text)
    if parser.has_section("options.extras_require"):
        for name, items in parser.items("options.extras_require"):
            project.extras.setdefault(name, []).extend(_parse_requirements(items or "", SETUP_CFG, text))


def _read_setup_py(tree: SourceTree, project: PythonProject) -> None:
    if not tree.is_file(SETUP_PY):
        return
    text, project.is_installable = tree.read(SETUP_PY), True
    arguments = {name: value for name, (value, _) in read_setup_arguments(tree).items()}
    if isinstance(arguments.get("name"), str):
        project.name = project.name or arguments["name"]
    for keyword, target in (
        ("install_requires", project.requirements),
        ("requires", project.requirements),
        ("tests_require", project.test_requirements),
        ("setup_requires", project.build_requirements),
    ):
        target.extend(_parse_requirements(arguments.get(keyword, []), SETUP_PY, text))
    extras = arguments.get("extras_require")
    for name, items in extras.items() if isinstance(extras, dict) else ():
        project.extras.setdefault(str(name), []).extend(_parse_requirements(items, SETUP_PY, text))
    classifiers = arguments.get("classifiers", [])
    # Classifiers are often computed from text; the lines of the file contain the same values.
    listed = (
        classifiers
        if isinstance(classifiers, list) and classifiers
        else re.findall(r"Programming Language :: Python :: 3\.\d+", text)
    )
    project.facts += _parse_classifiers(listed, SETUP_PY, text)
    project.facts += _parse_requires_python(arguments.get("python_requires"), SETUP_PY, text)


def find_self_references(project: PythonProject, items: Iterable[SourcedValue]) -> Iterator[str]:
    """Yield the project's own extras that requirements refer to, such as `me[tests]` in an extra `dev`."""
    own = canonicalize_name(project.name) if project.name else ""
    for item in items:
        if own and item.distribution_name == own and (match := re.search(r"\[([^\]]*)\]", item.text)):
            yield from (part.strip() for part in match.group(1).split(","))
