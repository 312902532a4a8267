"""From what a repository of JavaScript or TypeScript says to a draft, and from a draft to the plan; both pure."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from languages.draft import Context, Dependency, Draft, NoPlanError, Role
from languages.facts import Wanted
from languages.node import files, versions
from languages.node.command import BUILDERS, Tests, find_tests
from languages.node.manager import Manager, beside, find_manager, from_forges, install_steps, manifests
from languages.node.package import Package, Project, find_project
from languages.node.scripts import called, expand, run_script
from languages.node.switches import BUILD
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, read_manifests
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import Job, jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

LANGUAGE = "javascript"
"""Of all plans here: both languages share bases and layers."""

SYSTEM_PACKAGES = frozenset(
    (  # noqa: SIM905 - one word a line would hide the list
        "build-essential ffmpeg ghostscript graphicsmagick graphviz imagemagick libcairo2-dev libgif-dev libjpeg-dev "
        "libkrb5-dev libpango1.0-dev libpixman-1-dev librsvg2-dev libsecret-1-dev libsqlite3-dev libudev-dev "
        "libvips-dev libxi-dev libxtst-dev mercurial subversion zip unzip zsh fish"
    ).split()
)
"""Of what CI installs, the packages that exist in Debian under this name and that tests may need."""

VARIABLES = re.compile(r"TZ|NODE_OPTIONS|NODE_ENV|BABEL_ENV|BABEL_8_BREAKING|TS_NODE_\w+|LANG|LC_ALL")
"""Of what CI sets, the variables that belong to the tests."""

DOWNLOADERS = (
    "puppeteer",
    "playwright",
    "cypress",
    "electron",
    "chromedriver",
    "geckodriver",
    "node-sass",
    "phantomjs-prebuilt",
)
"""Packages whose install scripts fetch programs from where no registry is."""


@dataclass(frozen=True, kw_only=True)
class NodeDraft(Draft):
    """A draft with what its language's steps are made from."""

    manager: Manager
    root: str
    """Folder of the package that is installed, empty for the tree's root."""
    folders: tuple[str, ...]
    """Of all its packages, from `root`."""
    left_out: tuple[str, ...] = ()
    """Names of dependencies that no registry has."""
    lock_version: int = 0
    patched: bool = False
    """Whether patch-package changes installed packages."""
    builds: tuple[tuple[str, str], ...] = ()
    """(folder, shell line) of what is built with the tree, in order."""


def draft(tree: Tree, context: Context) -> NodeDraft:
    """All choices for the tree.

    Raises:
        NoPlanError: there is no package.json with tests that run without a browser, or no Node for it.
    """
    project = find_project(tree, context.touched)
    if project is None:
        raise NoPlanError("no package.json in the tree")
    if not files.defining_files(tree):
        raise NoPlanError("no file in the tree defines tests")
    known = jobs(tree)
    running = [job for job in known if any(re.search(r"\btest|\bunit", line.text + job.name) for line in job.lines)]
    nodes = versions.candidates(tree, project, running or known, context.available(), context.day)
    if not nodes:
        raise NoPlanError("this machine has no Node that fits")
    tests = find_tests(tree, project, known, context.touched)
    manager, forges = find_manager(tree, project, running or known), from_forges(project)
    # A lock file is installed as it is: that is what was tested, and strict about what is missing.
    tools = [] if manager.lock else beside(tree, project, files.defining_files(tree))
    paths = (*manifests(tree, project), *([manager.release] if manager.release else []))
    job = next((one for one in known if one.path == tests.place.path and _holds(one, tests.place.line)), None)
    folder = project.root.folder
    made = NodeDraft(
        language=LANGUAGE,
        name=project.root.name,
        versions=tuple(nodes),
        day=context.day,
        exclude_newer=context.day.replace(day=1),
        dependencies=tuple(_named(manager)),
        manifests=read_manifests(tree, paths),
        system_packages=_system_packages(running),
        switches=frozenset({BUILD}),
        env=(*LOCAL_SETTINGS, *_variables(job)),
        test=_test_command(tree, tests),
        evidence=(*_evidence(project, manager, tests, forges, tools), *elsewhere_evidence(tree)),
        manager=manager,
        root=folder,
        folders=tuple(one.folder[len(folder) :].strip("/") for one in project.packages),
        left_out=tuple(dict.fromkeys(one.text for one in (*forges, *tools))),
        lock_version=_lock_version(tree, manager),
        patched=any("patch-package" in text for text in project.root.scripts.values()),
        builds=tuple(dict.fromkeys(_builds(project, tests, job))),
    )
    return with_services(made, running)


def _holds(job: Job, line: int) -> bool:
    return any(one.line == line for one in job.lines)


def _named(manager: Manager) -> Iterator[Dependency]:
    if manager.kind != "npm":
        text = {"berry": "@yarnpkg/cli-dist"}.get(manager.kind, manager.kind)
        place = Wanted(text=f"{text}@{manager.version}", path=manager.place.path, line=manager.place.line)
        yield Dependency(role=Role.BUILD, wanted=place)


def _system_packages(known: Sequence[Job]) -> tuple[Wanted, ...]:
    found = {one.text: one for job in known for one in job.system_packages() if one.text in SYSTEM_PACKAGES}
    return tuple(found[name] for name in sorted(found))


def _variables(job: Job | None) -> list[tuple[str, str]]:
    return [one for one in (job.env if job else ()) if VARIABLES.fullmatch(one[0]) and one not in LOCAL_SETTINGS]


def _lock_version(tree: Tree, manager: Manager) -> int:
    if not manager.lock.endswith(".json"):
        return 0
    match = re.search(r'"lockfileVersion":\s*(\d+)', tree.read(manager.lock)[:2000])
    return int(match[1]) if match else 1


def _test_command(tree: Tree, tests: Tests) -> TestCommand:
    call, package = tests.call, tests.package
    argv, paths = call.argv, call.paths
    framework = call.runner.framework
    if framework == "mocha" and package.major("mocha") not in (1, 2, 3):
        argv = (*argv, "--exit")
    if not call.script and not paths and framework in ("mocha", "tap"):
        paths = tuple(_tops(tree, package))
    if framework == "tap" and argv[-1:] == (call.runner.package,):
        argv = (*argv[:-1], "node")
    if tests.before:
        build = " && ".join(f"npm run --silent {shlex.quote(name)}" for name in tests.before)
        argv = ("sh", "-c", f'{{ {build}; }} >&2 && exec "$@"', "sh", *argv)
    return TestCommand(framework=framework, argv=argv, paths=paths, folder=package.folder)


def _tops(tree: Tree, package: Package) -> list[str]:
    """The folders of the package's test files, outermost ones only; files that lie in none."""
    start = f"{package.folder}/" if package.folder else ""
    inside = [path[len(start) :] for path in files.defining_files(tree) if path.startswith(start)]
    parents = sorted({posixpath.dirname(path) for path in inside})
    tops = [one for one in parents if one and not any(one.startswith(f"{other}/") for other in parents if other)]
    patterns = [
        f"{top}/**/*{end}" for top in tops for end in sorted({_end(p) for p in inside if p.startswith(f"{top}/")})
    ]
    return [*patterns, *(path for path in inside if "/" not in path)]


def _end(path: str) -> str:
    return posixpath.splitext(path)[1]


def _builds(project: Project, tests: Tests, job: Job | None) -> Iterator[tuple[str, str]]:
    """(folder, line): what installing the tree builds, then what CI builds before its tests."""
    scripts = project.root.scripts
    for name in ("postinstall", "prepare", "prepublish"):
        if name in scripts and any(_makes(one.words) for one in run_script(name, scripts)):
            yield project.root.folder, f"npm run --offline {name}"
    for line in job.lines if job else ():
        if line.line == tests.place.line:
            break
        made = _build_line(line.text, next((p for p in project.packages if p.folder == line.folder), project.root))
        if made:
            yield line.folder, made


def _makes(words: Sequence[str]) -> bool:
    return posixpath.basename(words[0]) in BUILDERS and "--noEmit" not in words


_BUILDING = re.compile(r"\b(build|compile|bootstrap|codegen|transpile|prepare|tsc)\b")
_NOT_BUILDING = re.compile(
    r"\$|\binstall\b|\bci\b|lint|docs|storybook|website|docker|coverage|publish|playwright|cypress|sudo "
)


def _build_line(text: str, package: Package) -> str:
    """How a line of CI is run with the tree; empty when it builds nothing."""
    if _NOT_BUILDING.search(text):
        return ""
    try:
        call = called(shlex.split(text))
    except ValueError:
        return ""
    if call:
        made = call[0] in package.scripts and any(_makes(one.words) for one in expand(text, package.scripts))
        named = call[0] in package.scripts and _BUILDING.search(call[0])
        return f"npm run --offline {call[0]}" if made or named else ""
    if re.match(r"(npx|yarn|pnpm|npm|make|node|lerna)\s", text) and _BUILDING.search(text):
        return f": --offline ; {text}"
    return ""


def _evidence(
    project: Project, manager: Manager, tests: Tests, forges: Sequence[Wanted], tools: Sequence[Wanted]
) -> Iterator[Evidence]:
    note = f"locked by {manager.lock}" if manager.lock else "no lock file: ranges, as of the date where dates are true"
    value = f"{manager.kind}@{manager.version}" if manager.version else manager.kind
    yield _place("package_manager", value, manager.place, note)
    yield _place("test.framework", tests.call.runner.framework, tests.place, tests.place.text)
    for one in forges:
        yield _place("left out", one.text, one, "comes from a forge, which no registry has")
    for one in tools:
        yield _place("left out", one.text, one, "a tool beside the tests")
    for package in project.packages:
        for name in DOWNLOADERS:
            if name in package.dependencies:
                place = Wanted(text=name, path=package.path, line=package.line(f'"{name}"'))
                yield _place("install script", name, place, "what it would fetch from elsewhere is missing")


def _place(choice: str, value: str, wanted: Wanted, note: str = "") -> Evidence:
    return Evidence(choice=choice, value=value, path=wanted.path, line=wanted.line, note=note)


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """The plan of a draft.

    Raises:
        TypeError: the draft is not of `draft` here.
    """
    if not isinstance(made, NodeDraft):
        raise TypeError("not a draft for Node")
    steps = install_steps(
        made.manager, made.folders, made.left_out, node=made.versions[0].value, until=made.exclude_newer,
        lock_version=made.lock_version, switches=made.switches,
    )  # fmt: skip
    if made.patched:
        steps = (*steps[:-1], "[ ! -d patches ] || npx --no-install patch-package", steps[-1])
    if made.root:
        steps = (f"cd {shlex.quote(made.root)}", *steps)
    kept = [posixpath.join(made.root, folder, "node_modules") for folder in made.folders]
    return plan_of(made, steps, tuple(_source_steps(made)), kept_folders=kept)


def _source_steps(made: NodeDraft) -> Iterator[str]:
    if BUILD not in made.switches:
        return
    for folder, line in made.builds:
        bins = 'export PATH="$PWD/node_modules/.bin:$PATH" HUSKY=0'
        yield f"(cd {shlex.quote(folder or '.')} && {bins} && {line})"
