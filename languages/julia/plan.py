"""Create a plan draft from a Julia package and render it as a build plan."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue, find_line
from languages.julia.project import NAMES, ProjectFile, RequiredPackage, convert_range, is_standard
from languages.julia.releases import RELEASES
from languages.julia.tests import MAIN, list_test_files
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

FRAMEWORK = "julia-test"
HOME = "/opt/julia"
REGISTRY = "https://github.com/JuliaRegistries/General"
"""The registry of packages: a git repository, whose history has its state on every day."""
OPTIONS = ("--startup-file=no", "--color=no", "--check-bounds=yes", "--depwarn=yes")
"""Options with which Pkg.test runs tests."""
_DEPENDENCY = re.compile(r"(?P<name>\S+)(?: (?P<range>[^\[]+?))?(?: \[(?P<uuid>[0-9a-fA-F-]{36})\])?")
_BY_DATE = f"the last commit of {REGISTRY} before this day"
_NO_SUBSTITUTE = "Debian has no packages of Julia"


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    prefix = f"{folder}/" if folder else ""
    project = ProjectFile(tree, folder)
    if not project.name or not project.uuid:
        raise NoPlanError("there is no Project.toml of a package")
    files = list_test_files(tree, folder)
    if not files:
        raise NoPlanError(f"no file that {prefix}{MAIN} includes has tests")
    bound = project.julia_bound
    bounds = [VersionBounds(allows=parse_constraint(convert_range(bound.text)), source=bound)] if bound else []
    manifest = f"{prefix}Manifest.toml"
    versions = rank_versions(RELEASES, context, list(_read_named_versions(tree, manifest)), bounds)
    packages = list_local_packages(tree, project)
    external = [r for r in _list_requirements(tree, packages) if not is_standard(r.name, RELEASES[0].version)]
    folders = [f"{HOME}/env", *(posixpath.join("/testbed", package.folder).rstrip("/") for package in packages)]
    draft = PlanDraft(
        language="julia",
        name=project.name,
        versions=versions,
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework=FRAMEWORK, argv=("julia", *OPTIONS), paths=(f"{prefix}test",), folder=folder),
        dependencies=tuple(
            Dependency(role=Role.TEST if requirement.is_test else Role.RUNTIME, source=requirement.source)
            for requirement in external
        ),
        manifests=read_manifests(tree, [manifest] if external else []),
        system_packages=tuple(find_system_packages(tree).values()),
        # The empty entry stands for Julia's own depots. No module of the tree replaces one of the standard library.
        env=(
            *LOCAL_SETTINGS,
            ("JULIA_DEPOT_PATH", f"{HOME}/depot:"),
            ("JULIA_LOAD_PATH", ":".join(["@stdlib", *folders])),
        ),
        source_steps=tuple(_list_build_scripts(tree, packages)),
        evidence=(
            Evidence(choice="test.framework", value=FRAMEWORK, path=f"{prefix}{MAIN}", line=0),
            Evidence(choice="test.paths", value=f"{prefix}test", path=files[0], line=0),
            *([_describe_pin(tree, manifest)] if external else []),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def _describe_pin(tree: SourceTree, manifest: str) -> Evidence:
    if tree.is_file(manifest):
        return Evidence(choice="pin", value="lock file", path=manifest, line=0)
    return Evidence(choice="pin", value="date", path="(registry)", line=0, note=_BY_DATE)


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the deepest package with tests that contains the changed Julia files, else the first."""
    changed = [path for path in changed_paths if path.endswith(".jl")]
    roots = {posixpath.dirname(path) for name in NAMES for path in (name, *tree.glob(f"*/{name}"))}
    roots = {root for root in roots if tree.is_file(posixpath.join(root, MAIN))}
    common_folder = find_common_folder(roots, changed)
    return min(roots, key=lambda root: (len(root), root), default="") if common_folder is None else common_folder


def list_local_packages(tree: SourceTree, project: ProjectFile) -> list[ProjectFile]:
    """Return a package, and the packages of the tree that it requires."""
    paths = [path for name in NAMES for path in (name, *tree.glob(f"*/{name}")) if tree.is_file(path)]
    known = {file.uuid: file for file in (ProjectFile(tree, posixpath.dirname(path)) for path in sorted(paths))}
    projects, packages = [project], list[ProjectFile]()
    while projects:
        packages.append(projects.pop(0))
        seen = {file.uuid for file in (*packages, *projects)}
        required = {r.uuid for r in _read_requirements(tree, packages[-1], with_tests=len(packages) == 1)}
        projects += [known[uuid] for uuid in sorted(required - seen) if uuid in known]
    return packages


def _read_requirements(tree: SourceTree, package: ProjectFile, *, with_tests: bool) -> Iterator[RequiredPackage]:
    """Yield the packages that a package requires; its tests may have a project of their own."""
    yield from package.list_requirements(with_tests=with_tests)
    if with_tests:
        for requirement in ProjectFile(tree, posixpath.join(package.folder, "test")).list_requirements(
            with_tests=False
        ):
            yield RequiredPackage(**{**vars(requirement), "is_test": True})


def _list_requirements(tree: SourceTree, packages: Sequence[ProjectFile]) -> Iterator[RequiredPackage]:
    """Yield the requirements of the packages that the tree does not have, each once."""
    seen = {package.uuid for package in packages}
    for package in packages:
        for requirement in _read_requirements(tree, package, with_tests=package is packages[0]):
            if requirement.uuid not in seen:
                seen.add(requirement.uuid)
                yield requirement


def _list_build_scripts(tree: SourceTree, packages: Sequence[ProjectFile]) -> Iterator[str]:
    """Yield the steps that Pkg.build would run."""
    for package in packages:
        folder = posixpath.join(package.folder, "deps")
        if tree.is_file(f"{folder}/build.jl"):
            yield f"(cd {quote_words([f'/testbed/{folder}'])} && julia --startup-file=no build.jl)"


def _read_named_versions(tree: SourceTree, manifest: str) -> Iterator[SourcedValue]:
    """Yield the version with which the manifest was made, and those of CI, such as `1.6`; `1` names no release."""
    text = tree.read(manifest)
    if match := re.search(r'^julia_version\s*=\s*"([\d.]+)', text, re.MULTILINE):
        yield SourcedValue(text=match[1], path=manifest, line=find_line(text, "julia_version"))
    for job in read_jobs(tree):
        is_set_up = any("setup-julia" in use.text for use in job.uses)
        keys = ("julia-version", "julia_version", "julia", *(("version",) if is_set_up else ()))
        versions = [(value.text, value.line) for key in keys for value in job.values.get(key, ())]
        versions += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)julia:\d", use.text)]
        for version, line in () if job.is_auxiliary else versions:
            if re.search(r"\d+\.\d+", version):
                yield SourcedValue(text=version, path=job.path, line=line)


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`.

    Packages of the registry are in a project of their own. Without any, there is no project, and no step needs Pkg.
    """
    steps = [_render_packages(draft, packages)] if (packages := _list_packages(draft)) else []
    julia = quote_words(draft.test.argv)
    load = f"{julia} -e {quote_words([f'import {draft.name}'])} && chown -R 1000:1000 {HOME}"
    return build_plan(draft, steps, (f"mkdir -p {HOME} && {load}",))


def _list_packages(draft: PlanDraft) -> list[re.Match[str]]:
    """Return the packages that the standard library of the draft's version does not have."""
    matches = [match for dependency in draft.dependencies if (match := _DEPENDENCY.fullmatch(dependency.source.text))]
    return [match for match in matches if not is_standard(match["name"], draft.versions[0].value)]


def _render_packages(draft: PlanDraft, matches: Sequence[re.Match[str]]) -> str:
    known = [match for match in matches if match["uuid"]]
    added = "".join(f"Pkg.add({json.dumps(match['name'])}); " for match in matches if not match["uuid"])
    lines = ["[deps]", *(f'{match["name"]} = "{match["uuid"]}"' for match in known)]
    lines += ["[compat]", *(f'{match["name"]} = "{match["range"]}"' for match in known if match["range"])]
    write = (
        f"mkdir -p {HOME}/env {HOME}/depot/registries && printf '%s\\n' {quote_words(lines)} > {HOME}/env/Project.toml"
    )
    lock = (
        f"cp {quote_words([f'/testbed/{draft.manifests[0][0]}'])} {HOME}/env/Manifest.toml && "
        if draft.manifests
        else ""
    )
    registry = f"{HOME}/depot/registries/General"
    last = f'"$(git -C {registry} rev-list -1 --before={draft.exclude_newer}T00:00:00Z HEAD)"'
    install = (
        f"{lock}git clone -q --filter=blob:none --no-checkout {REGISTRY} {registry} && "
        f"git -C {registry} checkout -q --detach {last} && "
        f"{quote_words(draft.test.argv)} --project={HOME}/env -e "
        + quote_words([f"using Pkg; {added}Pkg.resolve(); Pkg.instantiate(); Pkg.precompile()"])
    )
    return f"{write}\n{render_registry_install('General', install, _NO_SUBSTITUTE)}"
