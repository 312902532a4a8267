"""Selection of the requirements of an environment, each with the line that requires it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from languages.draft import Dependency, Role
from languages.facts import Fact, FactKind, SourcedValue
from languages.python import imports, requirements
from languages.python.commands import NOT_FOR_TESTS
from languages.python.patterns import OLDEST
from languages.python.project import PythonProject, find_self_references
from languages.source_tree import SourceTree

TEST_SETS = re.compile(
    r"^(all[-_])?(unit)?tests?(ing)?([-_](base|core|deps|requires?|dependencies|requirements))?$|^pytest$",
    re.IGNORECASE,
)
"""Matches names of extras and groups that contain test requirements."""
DEV_SETS = re.compile(r"^(dev|develop|development|dev[-_]deps|all)$", re.IGNORECASE)
"""Matches names of extras and groups for developers; used if no other place requires pytest."""
OTHER_SETS = re.compile(r"doc|lint|typ|mypy|style|bench|release|publish|profil|gui|cuda|gpu", re.IGNORECASE)
"""Matches names of sets that are never installed for the tests."""


def collect_requirements(
    tree: SourceTree,
    project: PythonProject,
    facts: Sequence[Fact],
    *,
    pytest: bool,
    configured: Sequence[SourcedValue] = (),
) -> list[Dependency]:
    """Return all requirements, best evidence first, without duplicates.

    `configured`: modules that the runner's configuration imports (`testing.find_configured_modules`).
    """
    needed = imports.find_needed_distributions(tree, configured)

    def is_useful(requirement: SourcedValue) -> bool:
        return requirement.distribution_name in needed or not is_unrelated_tool(requirement)

    dependencies = _make_dependencies(Role.RUNTIME, project.requirements)
    dependencies += _make_dependencies(Role.BUILD, _build_requirements(project))
    dependencies += _make_dependencies(
        Role.TEST, _resolve_conflicts(w for w in _test_requirements(tree, project, facts) if is_useful(w))
    )
    # Without pytest among them, what the tests require stands elsewhere, often among the tools of developers.
    if pytest and "pytest" not in _list_names(dependencies):
        developer_tools = _resolve_conflicts(w for w in _developer_requirements(tree, project) if is_useful(w))
        dependencies += _make_dependencies(Role.OPTIONAL, developer_tools, besides=_list_names(dependencies))
    dependencies += _make_dependencies(
        Role.OPTIONAL, _find_imported_conda_packages(tree), besides=_list_names(dependencies)
    )
    own_name = canonicalize_name(project.name)
    missing = imports.find_missing_requirements(
        tree, own_name, sorted(_list_names(dependencies)), collect_all_requirements(tree, project, facts), configured
    )
    dependencies += _make_dependencies(Role.OPTIONAL, (replace(source, text=text) for source, text in missing))
    return [item for item in _deduplicate(dependencies) if item.source.distribution_name != (own_name or "-")]


def _list_names(dependencies: Iterable[Dependency]) -> frozenset[str]:
    return frozenset(dependency.source.distribution_name for dependency in dependencies)


def _make_dependencies(
    role: Role, requirements: Iterable[SourcedValue], *, besides: frozenset[str] = frozenset()
) -> list[Dependency]:
    return [Dependency(role=role, source=item) for item in requirements if item.distribution_name not in besides]


def is_unrelated_tool(requirement: SourcedValue) -> bool:
    """Return whether a requirement of the test set-up is a tool that the tests themselves do not need."""
    return requirement.distribution_name in NOT_FOR_TESTS or bool(
        re.match(r"types-|.*-stubs$|flake8-|sphinx-.*-theme", requirement.distribution_name)
    )


def collect_all_requirements(tree: SourceTree, project: PythonProject, facts: Sequence[Fact]) -> list[SourcedValue]:
    """Return every requirement in any file, including sets that are not installed."""
    sets = [*project.extras.values(), *project.groups.values()]
    requirements_found = [
        *project.requirements,
        *project.test_requirements,
        *(requirement for items in sets for requirement in items),
    ]
    requirements_found += [
        SourcedValue(text=f.value, path=f.path, line=f.line) for f in facts if f.kind is FactKind.REQUIREMENT
    ]
    for path in tree.glob("*req*.txt") + tree.glob("requirements/*"):
        if path.count("/") <= 1 and not _is_other_set(path):
            requirements_found += requirements.read_requirements_file(tree, path)
    return requirements_found + list(requirements.read_pipfile(tree))


def _is_other_set(name: str) -> bool:
    """Return whether a file, extra or group is for something else than the usual test environment."""
    return bool(OTHER_SETS.search(name) or OLDEST.search(name))


def _build_requirements(project: PythonProject) -> Iterator[SourcedValue]:
    """Yield the requirements of an editable install without build isolation; setuptools by default.

    A requirement that pins the oldest NumPy to compile against is for isolated builds: here it would replace the NumPy
        of the tests.
    """
    for requirement in project.build_requirements:
        is_pin = requirement.distribution_name == "oldest-supported-numpy"
        yield replace(requirement, text="numpy") if is_pin else requirement
    if not project.backend or project.backend.startswith("setuptools"):
        yield SourcedValue(text="setuptools", path="(default)")
        yield SourcedValue(text="wheel", path="(default)")
    if project.backend.startswith("hatchling"):
        yield SourcedValue(text="editables", path="(default)")


def _test_requirements(tree: SourceTree, project: PythonProject, facts: Sequence[Fact]) -> Iterator[SourcedValue]:
    """Yield the requirements that CI and local runners install, then those of files and sets named after tests."""
    requested_sets: set[str] = set()
    for fact in facts:
        if fact.kind is FactKind.REQUIREMENT:
            yield SourcedValue(text=fact.value, path=fact.path, line=fact.line)
        elif fact.kind is FactKind.REQUIREMENTS_FILE and not _is_other_set(fact.value):
            yield from requirements.read_requirements_file(tree, fact.value.removeprefix("./"))
            requested_sets.update(requirements.read_own_extras(tree, fact.value.removeprefix("./")))
        elif fact.kind in (FactKind.EXTRA, FactKind.GROUP) and not _is_other_set(fact.value):
            requested_sets.add(fact.value)
    yield from project.test_requirements
    sets = project.extras | project.groups
    set_names = [n for n in sets if _is_same_requirement(n, requested_sets) or TEST_SETS.match(n)]
    yield from _expand_sets(project, set_names)
    for path in tree.entries:
        if requirements.TEST_FILES.search(path) and path.count("/") <= 1 and not _is_other_set(path):
            yield from requirements.read_requirements_file(tree, path)


def _expand_sets(project: PythonProject, names: Iterable[str]) -> Iterator[SourcedValue]:
    """Yield the members of extras and groups, references to the project's own extras expanded."""
    queue, seen = list(names), set[str]()
    while queue:
        name = queue.pop(0)
        if name in seen:
            continue
        seen.add(name)
        items = [*project.extras.get(name, []), *project.groups.get(name, [])]
        queue += find_self_references(project, items)
        yield from items


def _developer_requirements(tree: SourceTree, project: PythonProject) -> Iterator[SourcedValue]:
    yield from _expand_sets(project, [n for n in project.extras | project.groups if DEV_SETS.match(n)])
    for path in tree.entries:
        if requirements.DEV_FILES.search(path) and path.count("/") <= 1 and not _is_other_set(path):
            yield from requirements.read_requirements_file(tree, path)
    yield from requirements.read_pipfile(tree)


def _find_imported_conda_packages(tree: SourceTree) -> list[SourcedValue]:
    """Return the packages of the first conda environment that some file of the project imports."""
    paths = requirements.list_conda_files(tree)
    if not paths:
        return []
    python = [path for path in tree.entries if path.endswith(".py")]
    texts = "\n".join(tree.read_many(python).values())
    modules = set(re.findall(r"^\s*(?:from|import)\s+(\w+)", texts, re.MULTILINE))
    modules |= set(re.findall(r"""(?:importorskip|has_module|_importorskip|import_module)\(\s*["'](\w+)""", texts))
    names = {canonicalize_name(imports.DISTRIBUTIONS.get(module, module)) for module in modules}
    conda_packages = requirements.read_conda_requirements(tree, paths[0])
    return [
        package
        for package in conda_packages
        if not is_unrelated_tool(package)
        and (package.distribution_name in names or package.distribution_name.startswith("pytest"))
    ]


def _resolve_conflicts(items: Iterable[SourcedValue]) -> list[SourcedValue]:
    """Return each distribution once; conflicting version constraints of different jobs are dropped.

    Several requirements of a distribution in a single file, for different Pythons or systems as in lock files, are
    alternatives; all are kept.
    """
    resolved: dict[tuple[str, str], SourcedValue] = {}
    first: dict[str, tuple[str, str]] = {}
    for item in items:
        key = (item.distribution_name, _parse_marker(item))
        previous = resolved.get(first.setdefault(item.distribution_name, key))
        if previous is None or not _parse_constraint(previous.text):
            resolved[first[item.distribution_name]] = item
        elif _parse_marker(previous) and (previous.path == item.path if key[1] else not _parse_constraint(item.text)):
            resolved.setdefault(key, item)
        elif (
            _parse_constraint(item.text) not in ("", _parse_constraint(previous.text))
            and ";" not in previous.text + item.text
        ):
            name = Requirement(previous.text).name
            resolved[first[item.distribution_name]] = SourcedValue(text=name, path=previous.path, line=previous.line)
    return list(resolved.values())


def _parse_marker(requirement: SourcedValue) -> str:
    """Return the environment marker; empty if there is none."""
    return str(Requirement(requirement.text).marker or "")


def _parse_constraint(text: str) -> str:
    return str(Requirement(text).specifier)


def _deduplicate(items: Iterable[Dependency]) -> Iterator[Dependency]:
    seen: set[str] = set()
    for item in items:
        if item.source.text not in seen:
            seen.add(item.source.text)
            yield item


def _is_same_requirement(name: str, requested: set[str]) -> bool:
    return canonicalize_name(name) in {canonicalize_name(requested_name) for requested_name in requested}
