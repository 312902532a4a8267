"""Create a plan draft from a Lua repository and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages import apt
from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.lua import rocks
from languages.lua.releases import RELEASES, list_packages
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, render_debian_install, render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

MAKE = "luarocks-make"
SPEC_FILE = r"(^|/)[^/]*_spec\.lua$"
UNIT_FILE = r"(^|/)(test[^/]*|[^/]*[_-]?tests?)\.lua$"
TEST_FILE = f"{SPEC_FILE}|{UNIT_FILE}"
_LUAUNIT = re.compile(r"""\brequire\s*\(?\s*["'](?:[\w.]+\.)?luaunit["']""")
_EXCLUDED = re.compile(r"(^|/)(fixtures?|vendor|lua_modules|third_party|deps)/")
_USUAL_PATTERNS = ("?.lua", "?/init.lua", "src/?.lua", "src/?/init.lua", "lib/?.lua", "lib/?/init.lua")
_FRAMEWORKS = {"busted": "busted", "luaunit": "luaunit"}
"""Framework -> its rock."""
_REPORT_UNREACHABLE = (
    "{ luarocks search luasocket 2>&1 | grep -q 'Failed searching manifest: .*luarocks.org' && "
    "echo 'LuaRocks: could not reach host'; false; }"
)
"""LuaRocks reports a rock that is not found in the same way where its server cannot be reached."""
_NO_DATES = "LuaRocks installs the newest versions: those that the project requires are minimums"


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    framework, files = detect_framework(tree, folder)
    rockspec = rocks.find_rockspec(tree, folder)
    requirements = list(rocks.read_requirements(tree, rockspec)) if rockspec else []
    jobs = read_jobs(tree)
    patterns, is_complete = rocks.list_module_paths(tree, folder, rockspec) if rockspec else ([], True)
    needs_make = rockspec and (not is_complete or rocks.has_native_code(tree, rockspec))
    paths = list_test_folders(folder, files)
    argv = ("luarocks", "make", _enter(rockspec, folder)) if needs_make else ()
    evidence = [
        Evidence(choice="test.framework", value=framework, path=_find_configuration(tree, folder, files), line=0),
        Evidence(choice="test.paths", value=" ".join(paths), path=files[0], line=0),
        Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
        *list_external_content(tree),
    ]
    search = [f"./{pattern}" for pattern in (*patterns, *_USUAL_PATTERNS)]
    draft = PlanDraft(
        language="lua",
        name=re.sub(r"-[^-]+-\d+\.rockspec$", "", posixpath.basename(rockspec)),
        versions=rank_versions(RELEASES, context, list(_read_named_versions(tree)), list(_read_bounds(requirements))),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework=framework, argv=argv, paths=paths, folder=folder),
        dependencies=tuple(_list_dependencies(tree, folder, framework, files, requirements)),
        system_packages=tuple(find_system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, ("LUA_PATH", f"{';'.join(dict.fromkeys(search))};;")),
        switches=frozenset({MAKE} if needs_make else ()),
        evidence=tuple(evidence),
    )
    return add_ci_services(draft, jobs)


def _enter(path: str, folder: str) -> str:
    """Return a path relative to the folder of the project."""
    return posixpath.relpath(path, folder or ".")


def drop_make(draft: PlanDraft) -> PlanDraft:
    """Use the modules where they are in the tree: the rockspec may not build."""
    return replace(draft, switches=draft.switches - {MAKE}, test=draft.test.model_copy(update={"argv": ()}))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the deepest folder with a rockspec or .busted that contains all changed tests; else the root, as ``."""
    tests = [path for path in changed_paths if re.search(TEST_FILE, path)]
    roots = {posixpath.dirname(path) for path in tree.entries if re.search(r"(^|/)(\.busted|[^/]+\.rockspec)$", path)}
    return find_common_folder(roots, tests) or ""


def detect_framework(tree: SourceTree, folder: str) -> tuple[str, list[str]]:
    """Return (framework, its test files).

    Raises:
        NoPlanError: there are no test files.
    """
    specs, units = list_spec_files(tree, folder), list_unit_files(tree, folder)
    if not specs and not units:
        raise NoPlanError("no file *_spec.lua, and no test file that loads luaunit")
    return ("busted", specs) if len(specs) >= len(units) else ("luaunit", units)


def list_spec_files(tree: SourceTree, folder: str) -> list[str]:
    """Return files `*_spec.lua` below the folders that .busted names, sorted."""
    prefix = f"{folder}/" if folder else ""
    roots = _read_roots(tree, prefix)
    paths = [p for p in tree.entries if p.startswith(prefix) and re.search(SPEC_FILE, p) and not _EXCLUDED.search(p)]
    below = [path for path in paths if any(path == root or path.startswith(f"{root}/") for root in roots)]
    return sorted(below or paths)


def _read_roots(tree: SourceTree, prefix: str) -> list[str]:
    """Return the folders or files in ROOT of .busted, relative to the root of the tree."""
    tables = re.findall(r"\bROOT\s*=\s*\{([^}]*)\}", tree.read(f"{prefix}.busted"))
    names = [name for table in tables for name in re.findall(r"""["']([^"']+)["']""", table)]
    return [posixpath.normpath(prefix + name) for name in names]


def list_unit_files(tree: SourceTree, folder: str) -> list[str]:
    """Return the test files that load luaunit, sorted."""
    prefix = f"{folder}/" if folder else ""
    paths = [p for p in tree.entries if p.startswith(prefix) and re.search(UNIT_FILE, p) and not _EXCLUDED.search(p)]
    return sorted(path for path, text in tree.read_many(sorted(paths)).items() if _LUAUNIT.search(text))


def list_test_folders(folder: str, files: Sequence[str]) -> tuple[str, ...]:
    """Return the top folders that contain the files, or files at the root, relative to the root of the tree."""
    prefix = f"{folder}/" if folder else ""
    return tuple(sorted({prefix + path.removeprefix(prefix).partition("/")[0] for path in files}))


def _find_configuration(tree: SourceTree, folder: str, files: Sequence[str]) -> str:
    path = posixpath.join(folder, ".busted")
    return path if tree.is_file(path) else files[0]


def _list_dependencies(
    tree: SourceTree, folder: str, framework: str, files: Sequence[str], requirements: Sequence[SourcedValue]
) -> Iterator[Dependency]:
    """Yield the rocks of the rockspec, of CI and of known modules, and the framework, each once; without Lua itself."""
    rock = _FRAMEWORKS[framework]
    names = {"lua", rock, "luacheck", "luacov", "luacov-coveralls", "luacov-cobertura", "cluacov", "ldoc", "moonscript"}
    yield Dependency(role=Role.TEST, source=SourcedValue(text=rock, path=files[0]))
    named = [(Role.RUNTIME, source) for source in requirements]
    named += [(Role.OPTIONAL, source) for source in rocks.read_installed(read_jobs(tree))]
    named += [(Role.OPTIONAL, source) for source in rocks.find_used_rocks(tree, folder)]
    for role, source in named:
        name = re.split(r"[\s<>=~]", source.text, maxsplit=1)[0].lower()
        if name not in names:
            names.add(name)
            yield Dependency(role=role, source=source)


def _read_named_versions(tree: SourceTree) -> Iterator[SourcedValue]:
    """Yield the versions of CI; LuaJIT implements Lua 5.1."""
    for job in read_jobs(tree):
        keys = ("luaversion", "lua-version", "lua_version", "lua")
        values = [value for key in keys for value in job.values.get(key, ())]
        for value in () if job.is_auxiliary else values:
            text = "5.1" if "jit" in value.text.lower() else value.text
            yield SourcedValue(text=text, path=job.path, line=value.line)


def _read_bounds(requirements: Sequence[SourcedValue]) -> Iterator[VersionBounds]:
    for source in requirements:
        if match := re.match(r"lua\b(?!-)\s*(.+)", source.text):
            yield VersionBounds(allows=parse_constraint(match[1]), source=replace(source, text=match[1]))


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    version = draft.versions[0].value
    words = " ".join(list_packages(version))
    interpreter = f"dpkg -s {words} > /dev/null 2>&1 || {{ {apt.render_install(list_packages(version))}; }}"
    names = [re.split(r"[\s<>=~]", d.source.text, maxsplit=1)[0] for d in draft.dependencies]
    if DEBIAN_PACKAGES in draft.switches:
        install = render_debian_install([(name, rocks.list_debian_names(name)) for name in names])
    else:
        rows = " && ".join(_render_rock(version, dependency) for dependency in draft.dependencies)
        install = render_registry_install("LuaRocks", f"{{ {rows}; }} || {_REPORT_UNREACHABLE}")
    test = draft.test.model_copy(update={"argv": (f"lua{version}", *draft.test.argv)})
    return build_plan(replace(draft, test=test), (interpreter, install), ())


def _render_rock(version: str, dependency: Dependency) -> str:
    """Return the command that installs `name`, or `name == 1.2`."""
    name, *others = re.split(r"[\s<>=~]", dependency.source.text, maxsplit=1)
    exact = re.search(r"==\s*([\w.-]+)$", dependency.source.text) if others else None
    command = f"luarocks --lua-version {version} install {shlex.quote(name)}{f' {exact[1]}' if exact else ''}"
    if dependency.role is Role.OPTIONAL:
        return f'{{ {command} || echo {shlex.quote(name)} "cannot be installed"; }}'
    return command
