"""Which requirements a commit's box gets, and for the sake of which line of which file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from languages.draft import Dependency, Role
from languages.facts import Fact, Kind, Wanted
from languages.python import imports, requirements
from languages.python.commands import NOT_FOR_TESTS
from languages.python.project import Project, self_references
from languages.tree import Tree

TEST_SETS = re.compile(
    r"^(all[-_])?(unit)?tests?(ing)?([-_](base|core|deps|requires?|dependencies|requirements))?$|^pytest$",
    re.IGNORECASE,
)
"""Names of extras and groups that hold what the tests need."""
DEV_SETS = re.compile(r"^(dev|develop|development|dev[-_]deps|all)$", re.IGNORECASE)
"""Asked when no other place names pytest."""
OTHER_SETS = re.compile(r"doc|lint|typ|mypy|style|bench|release|publish|profil|gui|cuda|gpu", re.IGNORECASE)
"""Never worth installing for the tests, whoever asks."""


def collect(
    tree: Tree, project: Project, facts: Sequence[Fact], *, pytest: bool, configured: Sequence[Wanted] = ()
) -> list[Dependency]:
    """All requirements, best evidence first, each distribution and role once.

    `configured`: modules that the runner's configuration imports (`testing.configured_modules`).
    """
    needed = imports.needed(tree, configured)

    def useful(wanted: Wanted) -> bool:
        return wanted.name in needed or not beside_the_tests(wanted)

    found = [Dependency(role=Role.RUNTIME, wanted=w) for w in project.requires]
    found += [Dependency(role=Role.BUILD, wanted=w) for w in _build(project)]
    test = _unconflicted(w for w in _test(tree, project, facts) if useful(w))
    found += [Dependency(role=Role.TEST, wanted=w) for w in test]
    names = {d.wanted.name for d in found}
    if pytest and "pytest" not in names:
        developers = _unconflicted(w for w in _developers(tree, project) if useful(w))
        found += [Dependency(role=Role.OPTIONAL, wanted=w) for w in developers if w.name not in names]
    names = {d.wanted.name for d in found}
    found += [Dependency(role=Role.OPTIONAL, wanted=w) for w in _imported_conda(tree) if w.name not in names]
    have = sorted({d.wanted.name for d in found})
    known = everything(tree, project, facts)
    for place, text in imports.missing(tree, canonicalize_name(project.name), have, known, configured):
        found.append(Dependency(role=Role.OPTIONAL, wanted=Wanted(text=text, path=place.path, line=place.line)))
    return [d for d in _once(found) if d.wanted.name != canonicalize_name(project.name or "-")]


def beside_the_tests(wanted: Wanted) -> bool:
    """Whether a requirement of the tests' set-up is a tool that the tests themselves hardly need."""
    return wanted.name in NOT_FOR_TESTS or bool(re.match(r"types-|.*-stubs$|flake8-|sphinx-.*-theme", wanted.name))


def everything(tree: Tree, project: Project, facts: Sequence[Fact]) -> list[Wanted]:
    """Every requirement that any file names, also of sets that are not installed."""
    sets = [*project.extras.values(), *project.groups.values()]
    found = [*project.requires, *project.test_requires, *(w for items in sets for w in items)]
    found += [Wanted(text=f.value, path=f.path, line=f.line) for f in facts if f.kind is Kind.REQUIREMENT]
    for path in tree.glob("*req*.txt") + tree.glob("requirements/*"):
        if path.count("/") <= 1 and not OTHER_SETS.search(path):
            found += requirements.requirements_file(tree, path)
    return found + list(requirements.pipfile(tree))


def _build(project: Project) -> Iterator[Wanted]:
    """What an editable install without build isolation needs; setuptools for all that name no other backend."""
    yield from project.build_requires
    if not project.backend or project.backend.startswith("setuptools"):
        yield Wanted(text="setuptools", path="(default)")
        yield Wanted(text="wheel", path="(default)")
    if project.backend.startswith("hatchling"):
        yield Wanted(text="editables", path="(default)")


def _test(tree: Tree, project: Project, facts: Sequence[Fact]) -> Iterator[Wanted]:
    """What CI and local runners install for the tests, then what is named as such and nobody asked for."""
    asked_sets: set[str] = set()
    for fact in facts:
        if fact.kind is Kind.REQUIREMENT:
            yield Wanted(text=fact.value, path=fact.path, line=fact.line)
        elif fact.kind is Kind.REQUIREMENTS_FILE and not OTHER_SETS.search(fact.value):
            yield from requirements.requirements_file(tree, fact.value.removeprefix("./"))
            asked_sets.update(requirements.own_extras(tree, fact.value.removeprefix("./")))
        elif fact.kind in (Kind.EXTRA, Kind.GROUP) and not OTHER_SETS.search(fact.value):
            asked_sets.add(fact.value)
    yield from project.test_requires
    sets = project.extras | project.groups
    wanted = [n for n in sets if _same(n, asked_sets) or TEST_SETS.match(n)]
    yield from _sets(project, wanted)
    for path in tree.entries:
        if requirements.TEST_FILES.search(path) and path.count("/") <= 1 and not OTHER_SETS.search(path):
            yield from requirements.requirements_file(tree, path)


def _sets(project: Project, names: Iterable[str]) -> Iterator[Wanted]:
    """Members of extras and groups, an extra that names the project's own extras unfolded."""
    todo, seen = list(names), set[str]()
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.add(name)
        items = [*project.extras.get(name, []), *project.groups.get(name, [])]
        todo += self_references(project, items)
        yield from items


def _developers(tree: Tree, project: Project) -> Iterator[Wanted]:
    yield from _sets(project, [n for n in project.extras | project.groups if DEV_SETS.match(n)])
    for path in tree.entries:
        if requirements.DEV_FILES.search(path) and path.count("/") <= 1 and not OTHER_SETS.search(path):
            yield from requirements.requirements_file(tree, path)
    yield from requirements.pipfile(tree)


def _imported_conda(tree: Tree) -> list[Wanted]:
    """Of the first conda environment, what some file of the project imports anywhere."""
    paths = requirements.conda_files(tree)
    if not paths:
        return []
    python = [path for path in tree.entries if path.endswith(".py")]
    texts = "\n".join(tree.read_many(python).values())
    modules = set(re.findall(r"^\s*(?:from|import)\s+(\w+)", texts, re.MULTILINE))
    modules |= set(re.findall(r"""(?:importorskip|has_module|_importorskip|import_module)\(\s*["'](\w+)""", texts))
    names = {canonicalize_name(imports.DISTRIBUTIONS.get(module, module)) for module in modules}
    listed = requirements.conda_requirements(tree, paths[0])
    return [w for w in listed if not beside_the_tests(w) and (w.name in names or w.name.startswith("pytest"))]


def _unconflicted(items: Iterable[Wanted]) -> list[Wanted]:
    """Each distribution once; where jobs ask for different versions of one, any version will do.

    Where one file has several for different Pythons or systems, as locks have, these are alternatives: all are kept.
    """
    found: dict[tuple[str, str], Wanted] = {}
    first: dict[str, tuple[str, str]] = {}
    for item in items:
        key = (item.name, _marker(item))
        held = found.get(first.setdefault(item.name, key))
        if held is None or not _constraint(held.text):
            found[first[item.name]] = item
        elif _marker(held) and (held.path == item.path if key[1] else not _constraint(item.text)):
            found.setdefault(key, item)
        elif _constraint(item.text) not in ("", _constraint(held.text)) and ";" not in held.text + item.text:
            name = Requirement(held.text).name
            found[first[item.name]] = Wanted(text=name, path=held.path, line=held.line)
    return list(found.values())


def _marker(wanted: Wanted) -> str:
    """For which Pythons and systems it is asked; empty for all."""
    return str(Requirement(wanted.text).marker or "")


def _constraint(text: str) -> str:
    return str(Requirement(text).specifier)


def _once(items: Iterable[Dependency]) -> Iterator[Dependency]:
    seen: set[str] = set()
    for item in items:
        if item.wanted.text not in seen:
            seen.add(item.wanted.text)
            yield item


def _same(name: str, asked: set[str]) -> bool:
    return canonicalize_name(name) in {canonicalize_name(a) for a in asked}
