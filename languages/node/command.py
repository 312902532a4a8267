"""Detection of the test command: from CI through scripts of package.json, else from a dependency."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from languages.draft import NoPlanError
from languages.facts import SourcedValue
from languages.node.package import NodePackage, NodeProject, convert_glob
from languages.node.runners import BROWSERS, PLAIN_NODE, RUNNERS, RunnerCall, parse_call
from languages.node.scripts import SimpleCommand, expand_script, expand_scripts
from languages.source_tree import SourceTree
from languages.workflows import Job

SCRIPTS = (
    "test",
    "test:unit",
    "test-unit",
    "unit",
    "test:node",
    "test:ci",
    "tests",
    "test:js",
    "test:jest",
    "jest",
    "mocha",
    "test:all",
    "test:run",
    "test-node",
    "testonly",
    "test:only",
    "ava",
    "tap",
    "vitest",
)
"""Scripts searched for tests after CI, in this order."""

BUILDERS = frozenset(
    (  # noqa: SIM905 - one word per line would take fifty lines
        "tsc tsup rollup webpack esbuild babel vite microbundle tsdown unbuild swc parcel gulp grunt bunchee pkgroll "
        "father ngc tshy wireit turbo nx preconstruct bob-esbuild node-gyp peggy pegjs jison copyfiles cpy make zshy"
    ).split()
)
"""Commands that generate files from sources."""
BUILDING = re.compile(r"\b(build|compile|bootstrap|codegen|transpile|prepare|tsc)\b")
"""Matches names of scripts that generate files, and lines with such names."""
NOT_BUILDING = re.compile(
    r"\$|\binstall\b|\bci\b|lint|docs|storybook|website|docker|coverage|publish|playwright|cypress|sudo "
)
"""Matches those that do something else, too."""


@dataclass(frozen=True, kw_only=True)
class NodeTestCommand:
    """A detected test command."""

    package: NodePackage
    call: RunnerCall
    source: SourcedValue
    """Line that contains the command."""
    setup_commands: tuple[str, ...] = ()
    """Shell commands that build something and run directly before the tests, every time."""


def find_test_command(
    tree: SourceTree, project: NodeProject, jobs: Sequence[Job], changed_paths: Sequence[str]
) -> NodeTestCommand:
    """Return the test command for the change.

    Raises:
        NoPlanError: there is no known test runner; the message mentions browsers if the tests need a browser.
    """
    packages = _rank_packages(tree, project, changed_paths)
    programs: set[str] = set()
    # Plain node scripts report only an exit status, so they are used only if there is no test runner.
    for plain in (False, True):
        for package in packages:
            if command := _find_by_scripts(tree, package, jobs, programs, changed_paths, plain=plain):
                return command
        if not plain and (command := _find_own_command(packages[0]) or _find_by_dependency(packages[0], project)):
            return command
    if browsers := sorted(programs & BROWSERS):
        raise NoPlanError(f"the tests need a browser ({', '.join(browsers)})")
    raise NoPlanError("no known test runner: " + (", ".join(sorted(programs)[:8]) or "there is no test script"))


def _find_own_command(package: NodePackage) -> NodeTestCommand | None:
    """Return the command of a package that is a test runner."""
    for path, name in package.programs.items():
        if runner := RUNNERS.get(name):
            call = RunnerCall(runner=runner, argv=("node", path), paths=(), script="")
            return NodeTestCommand(package=package, call=call, source=_locate(package, '"bin"'))
    return None


def _find_by_dependency(first: NodePackage, project: NodeProject) -> NodeTestCommand | None:
    for package in (first, project.root):
        for name, runner in RUNNERS.items():
            if name in package.dependencies:
                call = RunnerCall(runner=runner, argv=(name,), paths=(), script="")
                return NodeTestCommand(package=package, call=call, source=_locate(package, f'"{name}"'))
    return None


def _rank_packages(tree: SourceTree, project: NodeProject, changed_paths: Sequence[str]) -> list[NodePackage]:
    """Return the root package, then the members: by number of changed files, then by number of test files."""
    counts = {
        member.folder: (
            -sum(path.startswith(f"{member.folder}/") for path in changed_paths),
            -sum(path.startswith(f"{member.folder}/") and "test" in path for path in tree.entries)
            if not changed_paths
            else 0,
        )
        for member in project.members
    }
    members = sorted(project.members, key=lambda member: (*counts[member.folder], member.folder))
    # The root comes first: its commands usually cover all members. The command of a member is used only if the root
    # has none.
    return [project.root, *members]


def _find_by_scripts(
    tree: SourceTree,
    package: NodePackage,
    jobs: Sequence[Job],
    programs: set[str],
    changed_paths: Sequence[str],
    *,
    plain: bool,
) -> NodeTestCommand | None:
    for source, commands in _list_script_sources(package, jobs):
        listed = list(commands)
        programs.update(posixpath.basename(command.words[0]) for command in listed)
        calls = [call for command in listed if (call := parse_call(command, package.programs))]
        calls = [call for call in calls if plain or call.runner is not PLAIN_NODE]
        if calls:
            return NodeTestCommand(
                package=package,
                call=_select_call(calls, package.folder, changed_paths),
                source=source,
                setup_commands=_find_setup_commands(tree, listed, package),
            )
    return None


def _list_script_sources(
    package: NodePackage, jobs: Sequence[Job]
) -> Iterator[tuple[SourcedValue, Iterator[SimpleCommand]]]:
    """Yield (source, commands) of everything that may run the tests, most trusted first."""
    scripts = package.scripts
    for job in sorted(jobs, key=lambda job: job.is_auxiliary):
        for line in job.lines:
            if line.folder == package.folder and "test" in line.text + job.name:
                yield SourcedValue(text=line.text, path=job.path, line=line.line), expand_scripts(line.text, scripts)
    for name in SCRIPTS:
        if name in scripts:
            yield _locate(package, f'"{name}":'), expand_script(name, scripts)
    for name in scripts:
        if "test" in name and name not in SCRIPTS and not name.startswith(("pre", "post")):
            yield _locate(package, f'"{name}":'), expand_script(name, scripts)


def _select_call(calls: Sequence[RunnerCall], folder: str, changed_paths: Sequence[str]) -> RunnerCall:
    """Return the first call without files, else that with the files of all calls that differ from it in nothing else.

    Of several such sets of files it is the set with most of the changed files, else the first.
    """
    complete = next((call for call in calls if not call.paths), None)
    if complete is not None:
        return complete
    merged: dict[tuple[str, tuple[str, ...]], RunnerCall] = {}
    for call in calls:
        first = merged.setdefault(call.comparison_key, call)
        merged[call.comparison_key] = replace(first, paths=tuple(dict.fromkeys((*first.paths, *call.paths))))
    changed = [path.removeprefix(f"{folder}/") for path in changed_paths]
    return max(merged.values(), key=lambda call: sum(_selects(call, path) for path in changed))


def _selects(call: RunnerCall, path: str) -> bool:
    words = [word.removeprefix("./").rstrip("/") for word in call.paths]
    return any(path.startswith(f"{word}/") or re.fullmatch(convert_glob(word), path) for word in words)


def _find_setup_commands(tree: SourceTree, commands: Sequence[SimpleCommand], package: NodePackage) -> tuple[str, ...]:
    """Return the commands that build something before the first test runner.

    Scripts, and commands of the runner's own script.
    """
    first = next((place for place, command in enumerate(commands) if parse_call(command, package.programs)), None)
    result: list[str] = []
    for command in commands[:first]:
        is_own = first is not None and command.script == commands[first].script
        name = " ".join(command.words) if is_own else command.script
        builds = posixpath.basename(command.words[0]) in BUILDERS or _is_named_build(name, command.words)
        if not builds or command.script not in package.scripts or _only_checks_types(tree, package, command.words):
            continue
        if is_own:
            assignments = [f"{name}={shlex.quote(value)}" for name, value in command.env]
            result.append(" ".join([*assignments, shlex.join(command.words)]))
        else:
            result.append(f"npm run --silent {shlex.quote(command.script)}")
    return tuple(dict.fromkeys(result))


def _is_named_build(name: str, words: Sequence[str]) -> bool:
    """Return whether a program of the project builds something, by the name of its script or its own line."""
    return words[0] == "node" and BUILDING.search(name) is not None and NOT_BUILDING.search(name) is None


def _only_checks_types(tree: SourceTree, package: NodePackage, words: Sequence[str]) -> bool:
    """Return whether a command is a TypeScript compiler that writes nothing."""
    if "--noEmit" in words or "--no-emit" in words:
        return True
    if posixpath.basename(words[0]) != "tsc":
        return False
    project = next((value for flag, value in pairwise(words) if flag in ("-p", "--project")), "tsconfig.json")
    path = posixpath.normpath(posixpath.join(package.folder, project))
    path = posixpath.join(path, "tsconfig.json") if path in tree.folders else path
    return bool(re.search(r'^\s*"noEmit"\s*:\s*true', tree.read(path), re.MULTILINE))


def _locate(package: NodePackage, needle: str) -> SourcedValue:
    return SourcedValue(text=needle.strip('":'), path=package.path, line=package.find_line(needle))
