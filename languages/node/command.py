"""Which command runs the tests: what CI runs, through package.json's scripts, else a runner among the dependencies."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from languages.draft import NoPlanError
from languages.facts import Wanted
from languages.node.package import Package, Project
from languages.node.runners import BROWSERS, PLAIN_NODE, RUNNERS, Call, read_call
from languages.node.scripts import Simple, expand, run_script
from languages.tree import Tree
from languages.workflows import Job

SCRIPTS = ("test", "test:unit", "test-unit", "unit", "test:node", "test:ci", "tests", "test:js", "test:jest", "jest",
           "mocha", "test:all", "test:run", "test-node", "testonly", "test:only", "ava", "tap", "vitest")  # fmt: skip
"""Where else than in CI the tests are looked for, in this order."""

BUILDERS = frozenset(
    (  # noqa: SIM905 - one word a line would hide the list
        "tsc tsup rollup webpack esbuild babel vite microbundle tsdown unbuild swc parcel gulp grunt bunchee pkgroll "
        "father ngc tshy wireit turbo nx preconstruct bob-esbuild node-gyp peggy pegjs jison copyfiles cpy make zshy"
    ).split()
)
"""Commands that make files out of sources."""


@dataclass(frozen=True, kw_only=True)
class Tests:
    """How the tests are run."""

    package: Package
    call: Call
    place: Wanted
    """Where the command stands."""
    before: tuple[str, ...] = ()
    """Scripts of the package that the project runs right before, each time, because they build."""


def find_tests(tree: Tree, project: Project, jobs: Sequence[Job], touched: Sequence[str]) -> Tests:
    """The command for the tests that the change is about.

    Raises:
        NoPlanError: nothing that is known runs them; says so when it needs a browser.
    """
    order = _packages(tree, project, touched)
    seen: set[str] = set()
    # A file that is merely run by node tells of itself; that is taken where nothing better is there.
    for plain in (False, True):
        for package in order:
            if found := _by_scripts(package, jobs, seen, plain=plain):
                return found
        if not plain and (found := _by_dependency(order[0], project)):
            return found
    if browsers := sorted(seen & BROWSERS):
        raise NoPlanError(f"the tests need a browser ({', '.join(browsers)})")
    raise NoPlanError("no test runner that is known: " + (", ".join(sorted(seen)[:8]) or "there is no test script"))


def _by_dependency(first: Package, project: Project) -> Tests | None:
    for package in (first, project.root):
        for name, runner in RUNNERS.items():
            if name in package.dependencies:
                call = Call(runner=runner, argv=(name,), paths=(), script="")
                return Tests(package=package, call=call, place=_at(package, f'"{name}"'))
    return None


def _packages(tree: Tree, project: Project, touched: Sequence[str]) -> list[Package]:
    """The root, then the members: those of the change's files first, then by the number of their files."""
    counted = {
        one.folder: (
            -sum(path.startswith(f"{one.folder}/") for path in touched),
            -sum(path.startswith(f"{one.folder}/") and "test" in path for path in tree.entries) if not touched else 0,
        )
        for one in project.members
    }
    members = sorted(project.members, key=lambda one: (*counted[one.folder], one.folder))
    # Several commands of the root may each be about a part; a member that the change is about knows its own best
    # only where the root has none.
    return [project.root, *members]


def _by_scripts(package: Package, jobs: Sequence[Job], seen: set[str], *, plain: bool) -> Tests | None:
    for place, commands in _sources(package, jobs):
        listed = list(commands)
        seen.update(posixpath.basename(one.words[0]) for one in listed)
        calls = [call for one in listed if (call := read_call(one)) and (plain or call.runner is not PLAIN_NODE)]
        if calls:
            return Tests(package=package, call=_best(calls), place=place, before=_before(listed, package))
    return None


def _sources(package: Package, jobs: Sequence[Job]) -> Iterator[tuple[Wanted, Iterator[Simple]]]:
    """(place, commands) of what may run the tests, in the order of trust."""
    scripts = package.scripts
    for job in sorted(jobs, key=lambda job: job.is_beside):
        for line in job.lines:
            if line.folder == package.folder and "test" in line.text + job.name:
                yield Wanted(text=line.text, path=job.path, line=line.line), expand(line.text, scripts)
    for name in SCRIPTS:
        if name in scripts:
            yield _at(package, f'"{name}":'), run_script(name, scripts)
    for name in scripts:
        if "test" in name and name not in SCRIPTS and not name.startswith(("pre", "post")):
            yield _at(package, f'"{name}":'), run_script(name, scripts)


def _best(calls: Sequence[Call]) -> Call:
    """The call that names no files, else the first with the files of all that are called alike."""
    whole = next((call for call in calls if not call.paths), None)
    if whole is not None:
        return whole
    first = calls[0]
    paths = tuple(dict.fromkeys(path for call in calls if call.key == first.key for path in call.paths))
    return Call(runner=first.runner, argv=first.argv, paths=paths, script=first.script)


def _before(commands: Sequence[Simple], package: Package) -> tuple[str, ...]:
    """Scripts with a building command before the first runner."""
    names: list[str] = []
    for one in commands:
        if read_call(one):
            break
        checks_only = "--noEmit" in one.words or "--no-emit" in one.words
        if posixpath.basename(one.words[0]) in BUILDERS and one.script in package.scripts and not checks_only:
            names.append(one.script)
    return tuple(dict.fromkeys(names))


def _at(package: Package, needle: str) -> Wanted:
    return Wanted(text=needle.strip('":'), path=package.path, line=package.line(needle))
