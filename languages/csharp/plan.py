"""Create a plan draft from a repository with C# projects and render it as a build plan."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from languages.base import read_packaged_file
from languages.csharp.projects import TestProject, list_inputs, list_test_projects, parse_framework_version
from languages.csharp.releases import RELEASES
from languages.csharp.tests import list_test_files
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.facts import SourcedValue, find_line
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import render_registry_install
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

FRAMEWORK = "dotnet-test"
HOME = "/opt/dotnet"
NO_SUBSTITUTE = "and Debian has no packages of .NET"
_SETTINGS = (
    ("DOTNET_CLI_HOME", f"{HOME}/home"),
    ("NUGET_PACKAGES", f"{HOME}/packages"),
    ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"),
    ("DOTNET_NOLOGO", "1"),
    ("DOTNET_ROLL_FORWARD", "Major"),  # an image has one runtime, that of its SDK
    ("MSBUILDDISABLENODEREUSE", "1"),
)
_PACK = read_packaged_file("languages.csharp", "pack.sh")
_LOCKED = "the versions and hashes of the lock files"
_NO_DATES = "NuGet resolves the lowest versions that the ranges allow: the same ones on any day"
_FLOATING = re.compile(r"""\bVersion\s*=\s*"[^"]*\*[^"]*\"""")


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    projects = list_test_projects(tree)
    if not projects:
        raise NoPlanError("no file *.csproj is a project of tests")
    chosen = {project.path: framework for project in projects if (framework := project.find_framework())}
    if not chosen:
        raise NoPlanError(f"{projects[0].path} has no target framework that runs on Linux")
    projects = [project for project in projects if project.path in chosen]
    files = list_test_files(tree, [project.folder for project in projects])
    if not files:
        raise NoPlanError("no file of a project of tests defines a test")
    bounds = [_bound(framework) for framework in chosen.values()]
    inputs = list_inputs(tree)
    draft = PlanDraft(
        language="c#",
        name="",
        versions=rank_versions(RELEASES, context, _filter(list(_read_named_versions(tree)), bounds), bounds),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(
            framework=FRAMEWORK,
            argv=tuple(f"{chosen[project.path].text}:{project.path}" for project in projects),
            paths=tuple(sorted({project.folder or "." for project in projects})),
        ),
        manifests=read_manifests(tree, inputs),
        system_packages=tuple(find_system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, *_SETTINGS),
        evidence=(
            *(_describe(project, chosen[project.path]) for project in projects),
            _describe_pin(tree, inputs),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def _describe(project: TestProject, framework: SourcedValue) -> Evidence:
    mark = project.sdk_marker
    note = f"{framework.text} at {framework.path}:{framework.line}"
    return Evidence(choice="test.framework", value=mark.text, path=mark.path, line=mark.line, note=note)


def _describe_pin(tree: SourceTree, inputs: Sequence[str]) -> Evidence:
    if locks := [path for path in inputs if path.endswith("packages.lock.json")]:
        return Evidence(choice="pin", value="lock", path=locks[0], line=0, note=_LOCKED)
    for path in inputs:
        if match := _FLOATING.search(text := tree.read(path)):
            note = "NuGet resolves the newest version of a pattern with an asterisk"
            return Evidence(choice="pin", value="newest", path=path, line=find_line(text, match[0]), note=note)
    return Evidence(choice="pin", value="lowest", path="(registry)", line=0, note=_NO_DATES)


def _bound(framework: SourcedValue) -> VersionBounds:
    return VersionBounds(
        allows=parse_constraint(f">= {parse_framework_version(framework.text)}"),
        source=SourcedValue(text=framework.text, path=framework.path, line=framework.line),
    )


def _filter(named: Sequence[SourcedValue], bounds: Sequence[VersionBounds]) -> list[SourcedValue]:
    """Return the named versions that can build for all target frameworks: an SDK knows none that is newer."""
    return [item for item in named if all(bound.allows(item.text) for bound in bounds)]


def _read_named_versions(tree: SourceTree) -> Iterator[SourcedValue]:
    """Yield the SDK of global.json, then those that CI installs or in whose images it runs, as major.minor."""
    for path in sorted(path for path in tree.entries if posixpath.basename(path) == "global.json"):
        text = tree.read(path)
        if version := _read_sdk(text):
            yield SourcedValue(text=_shorten(version), path=path, line=find_line(text, version))
    for job in read_jobs(tree):
        values = [(value.text, value.line) for key in ("dotnet-version", "dotnet") for value in job.values.get(key, ())]
        values += [
            (found[1], use.line) for use in job.uses if (found := re.search(r"/dotnet/sdk:(\d[\w.-]*)", use.text))
        ]
        for text, line in () if job.is_auxiliary else values:
            for version in text.split():
                yield SourcedValue(text=_shorten(version), path=job.path, line=line)


def _read_sdk(text: str) -> str:
    try:
        version = json.loads(text)["sdk"]["version"]
    except (ValueError, KeyError, TypeError):  # comments and missing keys
        found = re.search(r'"sdk"\s*:\s*\{[^}]*"version"\s*:\s*"([^"]+)"', text)
        return found[1] if found else ""
    return str(version)


def _shorten(version: str) -> str:
    """Return `8.0` for `8.0.100`, `8.0.x` and `8.x`."""
    match = re.match(r"(\d+)(?:\.(\d+))?", version)
    return f"{match[1]}.{match[2] or 0}" if match else version


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`.

    The project files alone download the packages; later builds find them in one folder and need no network.
    """
    projects = [word.partition(":")[2] for word in draft.test.argv]
    locked = {posixpath.dirname(path) for path, _ in draft.manifests if path.endswith("packages.lock.json")}
    restores = [
        f"dotnet restore {quote_words([posixpath.join('/testbed', project)])}"
        + (" --locked-mode" if posixpath.dirname(project) in locked else "")
        for project in projects
    ]
    restore = f"(cd / && {' && '.join(restores)})"
    builds = [
        f"dotnet build {quote_words([posixpath.join('/testbed', project)])} --no-restore --nologo"
        f" --framework {quote_words([framework])}"
        for framework, _, project in (word.partition(":") for word in draft.test.argv)
    ]
    return build_plan(
        draft,
        (
            f"mkdir -p {HOME}",
            render_registry_install("NuGet", restore, NO_SUBSTITUTE),
            f"find . -mindepth 1 -delete && chown -R 1000:1000 {HOME}",
        ),
        (
            f"{restore} && (cd / && {' && '.join(builds)})",
            f"bash -c {quote_words([_PACK])} pack {HOME} && chown -R -h --from=0 1000:1000 {HOME}",
        ),
    )


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return the files that define tests; with a plan those of its projects."""
    if plan is None:
        return list_test_files(tree, [project.folder for project in list_test_projects(tree)])
    return list_test_files(tree, [posixpath.dirname(word.partition(":")[2]) for word in plan.test.argv])
