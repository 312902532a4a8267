"""Create a plan draft from a Node repository and render it as a build plan. Both are pure functions."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.node import files, versions
from languages.node.command import BUILDERS, BUILDING, NOT_BUILDING, NodeTestCommand, find_test_command
from languages.node.manager import (
    PackageManager,
    find_package_manager,
    list_development_packages,
    list_forge_dependencies,
    list_manifests,
    list_unrelated_tools,
    render_install_steps,
)
from languages.node.package import NodePackage, NodeProject, find_project
from languages.node.runners import RUNNERS
from languages.node.scripts import expand_script, expand_scripts, parse_script_call
from languages.node.switches import BUILD
from languages.node.workspaces import list_needed_members
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, read_manifests
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import Job, read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

LANGUAGE = "javascript"
"""Language of all Node plans: JavaScript and TypeScript share bases and layers."""

SYSTEM_PACKAGES = frozenset(
    (  # noqa: SIM905 - one word per line would take thirty lines
        "build-essential ffmpeg ghostscript graphicsmagick graphviz imagemagick libcairo2-dev libgif-dev libjpeg-dev "
        "libkrb5-dev libpango1.0-dev libpixman-1-dev librsvg2-dev libsecret-1-dev libsqlite3-dev libudev-dev "
        "libvips-dev libxi-dev libxtst-dev mercurial subversion zip unzip zsh fish"
    ).split()
)
"""Packages installed by CI that exist in Debian under the same name and that tests may need."""

VARIABLES = re.compile(r"TZ|NODE_OPTIONS|NODE_ENV|BABEL_ENV|BABEL_8_BREAKING|TS_NODE_\w+|LANG|LC_ALL")
"""Matches CI variables that affect tests."""

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
"""Packages whose install scripts download programs from outside the registry."""


@dataclass(frozen=True, kw_only=True)
class NodeDraft(PlanDraft):
    """A draft with the input of Node's build steps."""

    manager: PackageManager
    root: str
    """Folder of the root package; empty for the root of the tree."""
    folders: tuple[str, ...]
    """Folders of all packages, relative to `root`."""
    excluded_packages: tuple[str, ...] = ()
    """Names of dependencies that no registry provides."""
    development_packages: frozenset[str] = frozenset()
    """Names of packages that nothing but `devDependencies` lists."""
    lock_version: int = 0
    patched: bool = False
    """Whether patch-package changes installed packages."""
    build_lines: tuple[tuple[str, str], ...] = ()
    """(folder, shell line) of build commands run with the tree, in order."""
    needed_folders: tuple[str, ...] = ()
    """Folders, relative to `root`, of the workspace's members that the change touches and of those they depend on,
    dependencies first; empty where it touches no member."""
    needed_builds: tuple[str, ...] = ()
    """Those of the needed folders whose package has a script `build`."""

    def leave_out(self, name: str) -> Self:
        """Return the draft without a package that only development needs."""
        if name not in self.development_packages or name in self.excluded_packages:
            return self
        return replace(self, excluded_packages=(*self.excluded_packages, name))


def create_draft(tree: SourceTree, context: PlanningContext) -> NodeDraft:
    """Return a draft of the build plan.

    Raises:
        NoPlanError: there is no package.json with tests that run without a browser, or no suitable Node version.
    """
    project, test_files = find_project(tree, context.changed_paths), files.find_test_files(tree)
    if project is None:
        raise NoPlanError("no package.json in the tree")
    if not test_files:
        raise NoPlanError("no file in the tree defines tests")
    jobs = read_jobs(tree)
    test_jobs = [job for job in jobs if any(re.search(r"\btest|\bunit", line.text + job.name) for line in job.lines)]
    node_versions = versions.rank_versions(tree, project, test_jobs or jobs, context.list_available(), context.day)
    if not node_versions:
        raise NoPlanError("no suitable Node version is available")
    tests = find_test_command(tree, project, jobs, context.changed_paths)
    manager = find_package_manager(tree, project, test_jobs or jobs)
    forge_dependencies = list_forge_dependencies(project)
    # With a lock file all packages are installed: that set was tested, and `npm ci` rejects deviations.
    setup = [command for line in tests.setup_commands for command in expand_scripts(line, tests.package.scripts)]
    programs = {posixpath.basename(command.words[0]) for command in setup}
    tools = [] if manager.lock else list_unrelated_tools(tree, project, test_files, programs)
    job, needed = _find_job(jobs, tests.source), list_needed_members(project, context.changed_paths)
    folder = project.root.folder
    draft = NodeDraft(
        language=LANGUAGE,
        name=project.root.name,
        versions=tuple(node_versions),
        day=context.day,
        exclude_newer=context.day.replace(day=1),
        dependencies=tuple(_describe_manager(manager)),
        manifests=read_manifests(tree, list_manifests(tree, project, manager)),
        system_packages=_find_system_packages(test_jobs),
        switches=frozenset({BUILD}),
        env=(*LOCAL_SETTINGS, *_read_variables(job)),
        test=_build_test_command(tree, tests),
        evidence=(*_build_evidence(project, manager, tests, forge_dependencies, tools), *list_external_content(tree)),
        manager=manager,
        root=folder,
        folders=tuple(package.folder[len(folder) :].strip("/") for package in project.packages),
        excluded_packages=tuple(dict.fromkeys(package.text for package in (*forge_dependencies, *tools))),
        development_packages=list_development_packages(project),
        lock_version=_read_lock_version(tree, manager),
        patched=any("patch-package" in text for text in project.root.scripts.values()),
        build_lines=tuple(dict.fromkeys(_find_build_lines(project, tests, job))),
        needed_folders=tuple(member.folder[len(folder) :].strip("/") for member in needed),
        needed_builds=tuple(member.folder[len(folder) :].strip("/") for member in needed if "build" in member.scripts),
    )
    return add_ci_services(draft, test_jobs)


def _find_job(jobs: Sequence[Job], source: SourcedValue) -> Job | None:
    in_file = (job for job in jobs if job.path == source.path)
    return next((job for job in in_file if any(line.line == source.line for line in job.lines)), None)


def _describe_manager(manager: PackageManager) -> Iterator[Dependency]:
    if manager.kind != "npm":
        text = {"berry": "@yarnpkg/cli-dist"}.get(manager.kind, manager.kind)
        source = SourcedValue(text=f"{text}@{manager.version}", path=manager.source.path, line=manager.source.line)
        yield Dependency(role=Role.BUILD, source=source)


def _find_system_packages(jobs: Sequence[Job]) -> tuple[SourcedValue, ...]:
    packages = {
        package.text: package
        for job in jobs
        for package in job.list_system_packages()
        if package.text in SYSTEM_PACKAGES
    }
    return tuple(packages[name] for name in sorted(packages))


def _read_variables(job: Job | None) -> list[tuple[str, str]]:
    return [
        entry for entry in (job.env if job else ()) if VARIABLES.fullmatch(entry[0]) and entry not in LOCAL_SETTINGS
    ]


def _read_lock_version(tree: SourceTree, manager: PackageManager) -> int:
    if not manager.lock.endswith(".json"):
        return 0
    match = re.search(r'"lockfileVersion":\s*(\d+)', tree.read(manager.lock)[:2000])
    return int(match[1]) if match else 1


def _build_test_command(tree: SourceTree, tests: NodeTestCommand) -> TestCommand:
    call, package = tests.call, tests.package
    argv, paths = call.argv, call.paths
    framework = call.runner.framework
    if framework == "mocha" and package.parse_major("mocha") not in (1, 2, 3):
        argv = (*argv, "--exit")
    if not paths and framework in ("mocha", "tap") and (not call.script or _runs_no_file(tree, tests)):
        paths = tuple(_list_top_folders(tree, package))
    if call.runner is RUNNERS["uvu"]:
        argv, paths = tuple("node" if word == "uvu" else word for word in argv), _render_uvu_globs(paths)
    elif framework == "tap" and argv[-1:] == (call.runner.package,):
        argv = (*argv[:-1], "node")
    if tests.setup_commands:
        argv = (*_SETUP, f'{{ {" && ".join(tests.setup_commands)}; }} >&2 && exec "$@"', "sh", *argv)
    return TestCommand(framework=framework, argv=argv, paths=paths, folder=package.folder)


_SETUP = ("sh", "-c")


def drop_build(draft: PlanDraft) -> PlanDraft:
    """Run no build, neither with the tree nor before the tests: tests that need no generated files still run."""
    argv = draft.test.argv
    if argv[: len(_SETUP)] == _SETUP:
        argv = argv[len(_SETUP) + 2 :]
    test = draft.test.model_copy(update={"argv": argv})
    return replace(draft, test=test, switches=draft.switches - {BUILD})


def _render_uvu_globs(words: Sequence[str]) -> tuple[str, ...]:
    """Return the glob of the files that uvu runs; their folder if its regex is more than the end of their names."""
    folder, pattern, *_ = (*words, "", "")
    end = pattern.removesuffix("$").replace("\\.", ".")
    if not folder or not re.fullmatch(r"[\w.-]+", end):
        return (folder,) if folder else ()
    return (f"{folder.rstrip('/')}/**/*{end}",)


_BENCHMARKS = re.compile(r"(^|/)(bench|benchmarks?|perf|performance)$")


def _runs_no_file(tree: SourceTree, tests: NodeTestCommand) -> bool:
    """Return whether mocha would look for its default folder, `test`, which does not exist."""
    folder = tests.package.folder
    names = (".mocharc.js", ".mocharc.cjs", ".mocharc.mjs", ".mocharc.json", ".mocharc.jsonc", ".mocharc.yml")
    return (
        tests.call.runner is RUNNERS["mocha"]
        and posixpath.join(folder, "test") not in tree.folders
        and not any(tree.is_file(posixpath.join(folder, name)) for name in (*names, ".mocharc.yaml"))
        and "mocha" not in tests.package.data
        and not any(word.partition("=")[0] in ("--config", "--opts") for word in tests.call.argv)
    )


def _list_top_folders(tree: SourceTree, package: NodePackage) -> list[str]:
    """Return globs for the outermost folders with test files of the package, and test files that are in no folder.

    The glob of a folder that has fixtures in it does not enter folders, as fixtures look like tests.
    """
    prefix = f"{package.folder}/" if package.folder else ""
    relative = [path[len(prefix) :] for path in files.find_test_files(tree) if path.startswith(prefix)]
    tops, level = list[str](), sorted({path.partition("/")[0] for path in relative if "/" in path})
    single = [path for path in relative if "/" not in path]
    while level:
        folder = level.pop(0)
        own = [path for path in relative if path.startswith(f"{folder}/")]
        direct = [path for path in own if posixpath.dirname(path) == folder]
        below = {posixpath.join(folder, path[len(folder) + 1 :].partition("/")[0]) for path in {*own} - {*direct}}
        has_fixtures = any(
            f"{prefix}{folder}/{name}" in tree.folders for name in ("fixtures", "fixture", "__fixtures__")
        )
        if has_fixtures or not direct:
            single += [f"{folder}/*{end}" for end in sorted({_file_suffix(path) for path in direct})]
            level += sorted(name for name in below if not _BENCHMARKS.search(name))
        else:
            tops.append(folder)
    patterns = [
        f"{top}/**/*{end}"
        for top in sorted(tops)
        for end in sorted({_file_suffix(p) for p in relative if p.startswith(f"{top}/")})
    ]
    return [*patterns, *single]


def _file_suffix(path: str) -> str:
    return posixpath.splitext(path)[1]


def _find_build_lines(project: NodeProject, tests: NodeTestCommand, job: Job | None) -> Iterator[tuple[str, str]]:
    """Yield (folder, line) of builds.

    The package's install hooks, then the commands that CI builds before its tests.
    """
    scripts = project.root.scripts
    for name in ("postinstall", "prepare", "prepublish"):
        if name in scripts and any(_is_build_command(command.words) for command in expand_script(name, scripts)):
            yield project.root.folder, f"npm run --offline {name}"
    for line in job.lines if job else ():
        if line.line == tests.source.line:
            break
        build = _render_build_line(
            line.text, next((p for p in project.packages if p.folder == line.folder), project.root)
        )
        if build:
            yield line.folder, build


def _is_build_command(words: Sequence[str]) -> bool:
    return posixpath.basename(words[0]) in BUILDERS and "--noEmit" not in words


def _render_build_line(text: str, package: NodePackage) -> str:
    """Return the line that runs a CI build step with the tree; empty if the step builds nothing."""
    if NOT_BUILDING.search(text):
        return ""
    try:
        call = parse_script_call(shlex.split(text))
    except ValueError:
        return ""
    if call:
        builds = call[0] in package.scripts and any(
            _is_build_command(command.words) for command in expand_scripts(text, package.scripts)
        )
        is_named_build = call[0] in package.scripts and BUILDING.search(call[0])
        return f"npm run --offline {call[0]}" if builds or is_named_build else ""
    if re.match(r"(npx|yarn|pnpm|npm|make|node|lerna)\s", text) and BUILDING.search(text):
        return f": --offline ; {text}"
    return ""


def _build_evidence(
    project: NodeProject,
    manager: PackageManager,
    tests: NodeTestCommand,
    forge_dependencies: Sequence[SourcedValue],
    tools: Sequence[SourcedValue],
) -> Iterator[Evidence]:
    note = (
        f"locked by {manager.lock}"
        if manager.lock
        else "no lock file: ranges, resolved as of the date if the registry has dates"
    )
    value = f"{manager.kind}@{manager.version}" if manager.version else manager.kind
    yield _cite("package_manager", value, manager.source, note)
    for entry in manager.age_gates:
        yield _cite("age_gate", entry.text, entry, "off: the date of packages is pinned, a gate counts from the build")
    yield _cite("test.framework", tests.call.runner.framework, tests.source, tests.source.text)
    for entry in forge_dependencies:
        yield _cite("left out", entry.text, entry, "comes from a forge, not from a registry")
    for entry in tools:
        yield _cite("left out", entry.text, entry, "a tool unrelated to the tests")
    for package in project.packages:
        for name in DOWNLOADERS:
            if name in package.dependencies:
                source = SourcedValue(text=name, path=package.path, line=package.find_line(f'"{name}"'))
                yield _cite("install script", name, source, "its download from outside the registry is missing")


def _cite(choice: str, value: str, source: SourcedValue, note: str = "") -> Evidence:
    return Evidence(choice=choice, value=value, path=source.path, line=source.line, note=note)


_RUNS_FOLDERS = frozenset({"vitest", "jest"})
"""Frameworks whose arguments may be folders."""


def select_changed_packages(draft: PlanDraft) -> PlanDraft:
    """Install, build and test only the packages of the workspace that the change touches, with their dependencies."""
    if not isinstance(draft, NodeDraft) or not draft.needed_folders:
        return draft
    kept = ("", *(folder for folder in draft.folders if folder in draft.needed_folders))
    if set(kept) == set(draft.folders):
        return draft
    left_out = {
        posixpath.join(draft.root, folder, name)
        for folder in draft.folders
        if folder not in kept
        for name in ("package.json", ".npmrc")
    }
    builds = [(posixpath.join(draft.root, folder), "npm run --offline build") for folder in draft.needed_builds]
    test = draft.test
    if test.folder == draft.root and not test.paths and test.framework in _RUNS_FOLDERS:
        test = test.model_copy(update={"paths": draft.needed_folders})
    return replace(
        draft,
        folders=kept,
        manifests=tuple(manifest for manifest in draft.manifests if manifest[0] not in left_out),
        build_lines=tuple(builds) if draft.build_lines else (),
        test=test,
    )


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft.

    Raises:
        TypeError: the draft was not created for Node.
    """
    if not isinstance(draft, NodeDraft):
        raise TypeError("not a draft for Node")
    steps = render_install_steps(
        draft.manager,
        draft.folders,
        draft.excluded_packages,
        node=draft.versions[0].value,
        until=draft.exclude_newer,
        lock_version=draft.lock_version,
        switches=draft.switches,
    )
    if draft.patched:
        steps = (*steps[:-1], "[ ! -d patches ] || npx --no-install patch-package", steps[-1])
    if draft.root:
        steps = (f"cd {shlex.quote(draft.root)}", *steps)
    kept = [posixpath.join(draft.root, folder, "node_modules") for folder in draft.folders]
    return build_plan(draft, steps, tuple(_render_source_steps(draft)), kept_folders=kept)


def _render_source_steps(draft: NodeDraft) -> Iterator[str]:
    if BUILD not in draft.switches:
        return
    for folder, line in draft.build_lines:
        bins = 'export PATH="$PWD/node_modules/.bin:$PATH" HUSKY=0'
        yield f"(cd {shlex.quote(folder or '.')} && {bins} && {line})"
