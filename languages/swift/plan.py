"""Create a plan draft from a Swift package and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import (
    VersionBounds,
    parse_constraint,
    parse_minor_version,
    rank_versions,
    version_key,
)
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.swift.manifest import LOCK_FILE, PackageManifest, is_manifest, list_packages
from languages.swift.releases import RELEASES
from languages.swift.tests import list_test_files
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

FRAMEWORK = "swift-test"
HOME = "/opt/swift"
FOLDERS = ("--scratch-path", f"{HOME}/build", "--cache-path", f"{HOME}/cache")
"""Where builds are: outside of the tree, and written by the user of the tests."""
NO_SUBSTITUTE = "and Debian has no packages of Swift"
_OPTIONS = (*FOLDERS, "--enable-test-discovery")
"""A list of tests in LinuxMain.swift is ignored: tests that it does not name would not run."""
_SUITES = "--enable-swift-testing"
"""Option of Swift 6.0 and later, which leaves out Swift Testing where there is a LinuxMain.swift."""
_SUITES_SINCE = (6, 0)
_EXCLUDED = re.compile(r"(^|/)(\.build|Carthage|Pods|Fixtures?|Resources|Vendor|vendor)/")
_CI_PACKAGES = frozenset(
    {"binutils", "curl", "git", "gnupg2", "libcurl4", "libedit2", "tzdata", "unzip", "wget", "zlib1g-dev"}
)
"""Packages with which CI installs Swift itself."""
_LOCKED = "the versions and commits of the lock file"
_NO_DATES = "dependencies are git repositories: the newest tags that the ranges allow"
_NONE = "there are no dependencies outside of the tree"


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    packages = list_packages(tree, folder)
    package = packages[0]
    if not tree.is_file(package.path):
        raise NoPlanError("there is no Package.swift")
    files = list_test_files(tree, folder)
    if not package.has_tests or not files:
        raise NoPlanError(f"{package.path} has no target of tests whose files run on Linux")
    remotes = [remote for manifest in packages for remote in manifest.list_remotes()]
    system = {
        item.text: item for manifest in packages for item in manifest.list_system_packages()
    } | find_system_packages(tree)
    draft = PlanDraft(
        language="swift",
        name=package.name,
        versions=rank_versions(RELEASES, context, list(_read_named_versions(tree)), list(_read_bounds(packages))),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework=FRAMEWORK, argv=_OPTIONS, paths=_list_folders(folder, files), folder=folder),
        dependencies=tuple(Dependency(role=Role.RUNTIME, source=remote) for remote in remotes),
        manifests=read_manifests(tree, _list_manifests(tree, packages)) if remotes else (),
        system_packages=tuple(system[name] for name in sorted(system) if name not in _CI_PACKAGES),
        env=LOCAL_SETTINGS,
        evidence=(
            Evidence(choice="test.framework", value=FRAMEWORK, path=package.path, line=0),
            Evidence(choice="test.paths", value=" ".join(_list_folders(folder, files)), path=files[0], line=0),
            _describe_pin(tree, folder, remotes),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def _describe_pin(tree: SourceTree, folder: str, remotes: Sequence[SourcedValue]) -> Evidence:
    path = posixpath.join(folder, LOCK_FILE)
    if not remotes:
        return Evidence(choice="pin", value="none", path=posixpath.join(folder, "Package.swift"), line=0, note=_NONE)
    if tree.is_file(path):
        return Evidence(choice="pin", value="lock", path=path, line=0, note=_LOCKED)
    return Evidence(choice="pin", value="ranges", path=remotes[0].path, line=remotes[0].line, note=_NO_DATES)


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the deepest package with tests that contains the changed Swift files, else the one nearest to the root."""
    changed = [path for path in changed_paths if path.endswith(".swift")]
    folders = {posixpath.dirname(p) for p in tree.entries if is_manifest(p) and not _EXCLUDED.search(p)}
    tested = [folder for folder in folders if PackageManifest(tree, folder).has_tests]
    roots = sorted(tested or folders, key=lambda root: (root.count("/") + bool(root), root))
    common_folder = find_common_folder(roots, changed)
    return next(iter(roots), "") if common_folder is None else common_folder


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return the files that define tests; with a plan those of its package."""
    return list_test_files(tree, plan.test.folder if plan else find_project_folder(tree, ()))


def _list_folders(folder: str, files: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of test targets: `Tests/CupTests`, as far as files are in folders of this depth."""
    prefix = f"{folder}/" if folder else ""
    parts = [path.removeprefix(prefix).split("/") for path in files]
    return tuple(sorted({prefix + "/".join(names[: min(2, len(names) - 1)] or names) for names in parts}))


def _list_manifests(tree: SourceTree, packages: Sequence[PackageManifest]) -> list[str]:
    folders = {package.folder for package in packages}
    locks = [posixpath.join(packages[0].folder, LOCK_FILE)]
    return locks + [path for path in tree.entries if is_manifest(path) and posixpath.dirname(path) in folders]


def _read_named_versions(tree: SourceTree) -> Iterator[SourcedValue]:
    """Yield the versions of CI: of its matrix, and of images `swift:5.9` in which its jobs run."""
    for job in read_jobs(tree):
        keys = ("swift-version", "swift_version", "swift-versions", "swift")
        values = [(value.text, value.line) for key in keys for value in job.values.get(key, ())]
        images = [(image.text, image.line) for image in job.uses]
        images += [(value.text, value.line) for key in ("image", "container") for value in job.values.get(key, ())]
        values += [(match[1], line) for text, line in images if (match := re.search(r"\bswift:(\d[\w.-]*)", text))]
        for text, line in () if job.is_auxiliary else values:
            version = _complete(text.removeprefix("swift:").removeprefix("swift-"))
            yield SourcedValue(text=version or text, path=job.path, line=line)


def _read_bounds(packages: Sequence[PackageManifest]) -> Iterator[VersionBounds]:
    for package in packages:
        if tools := package.tools_version:
            yield VersionBounds(allows=parse_constraint(f">= {_complete(tools.text)}"), source=tools)


def _complete(version: str) -> str:
    """Return `6.0` for `6`, and `5.9` for `5.9.2`; empty if there is no version."""
    return parse_minor_version(version if "." in version else f"{version}.0")


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`.

    The manifests alone fetch the dependencies; later builds use them and need no network. The finished build is packed
    with its exact times, which layers of images round to seconds: otherwise each run would compile everything again.
    """
    enter = f"cd {quote_words([posixpath.join('/testbed', draft.test.folder).rstrip('/')])}"
    steps = []
    if draft.dependencies:
        resolve = f"({enter} && swift package resolve {quote_words(FOLDERS)})"
        places = [d.source.text for d in draft.dependencies if "://" in d.source.text]
        lookups = "; ".join(f"GIT_TERMINAL_PROMPT=0 git ls-remote {quote_words([place])} HEAD" for place in places)
        # SwiftPM hides the message of git about a server that cannot be reached.
        install = f"{resolve} || {{ {lookups}; false; }}" if lookups else resolve
        steps = [
            render_registry_install("The server of a dependency", install, NO_SUBSTITUTE),
            f"find . -mindepth 1 -delete && rm -rf /tmp/*.lock && chown -R 1000:1000 {HOME}",
        ]
    has_suites = version_key(draft.versions[0].value) >= _SUITES_SINCE
    options = (*draft.test.argv, *([_SUITES] if has_suites else []))
    build = f"({enter} && swift build --build-tests {quote_words(options)})"
    pack = f"chown -R 1000:1000 {HOME} && tar --format=posix -C {HOME} -cf {HOME}/build.tar build && rm -r {HOME}/build"
    test = draft.test.model_copy(update={"argv": options})
    return build_plan(replace(draft, test=test), steps, (build, pack))
