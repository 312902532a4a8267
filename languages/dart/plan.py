"""Create a plan draft from a Dart package and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from languages.dart.pubspec import NAME, Pubspec
from languages.dart.releases import RELEASES
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.facts import SourcedValue
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

FRAMEWORK = "dart-test"
TEST_FILE = r"(^|/)test/(.*/)?[^/]*_test\.dart$"
PACKAGES = ".dart_tool"
"""Folder in which pub notes where the packages are."""
_SETTINGS = (("PUB_CACHE", "/opt/pub"), ("DART_SUPPRESS_ANALYTICS", "true"))
_NO_DATES = "pub cannot resolve by date: versions come from the lock file, else from the ranges alone"
_NO_SUBSTITUTE = "Debian has no packages of Dart"


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    prefix = f"{folder}/" if folder else ""
    pubspec = Pubspec(tree, folder)
    if not pubspec.name:
        raise NoPlanError("there is no pubspec.yaml of a package")
    if line := pubspec.flutter_line:
        raise NoPlanError(f"Flutter is not supported ({pubspec.path}:{line})")
    files = list_test_files(tree, folder)
    if not files:
        raise NoPlanError(f"no file {prefix}test/**/*_test.dart")
    bound = pubspec.sdk_bound
    bounds = [VersionBounds(allows=parse_constraint(bound.text), source=bound)] if bound else []
    lock = f"{prefix}pubspec.lock"
    draft = PlanDraft(
        language="dart",
        name=pubspec.name,
        versions=rank_versions(RELEASES, context, list(_read_named_versions(tree)), bounds),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework=FRAMEWORK, argv=("dart", "test"), paths=(f"{prefix}test",), folder=folder),
        dependencies=tuple(pubspec.list_dependencies()),
        manifests=read_manifests(tree, [lock, *(path for path in tree.entries if posixpath.basename(path) == NAME)]),
        system_packages=tuple(find_system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, *_SETTINGS),
        evidence=(
            Evidence(choice="test.framework", value=FRAMEWORK, path=pubspec.path, line=0),
            Evidence(choice="test.paths", value=f"{prefix}test", path=files[0], line=0),
            Evidence(choice="pin", value="lock file", path=lock, line=0)
            if tree.is_file(lock)
            else Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the deepest package that contains the changed Dart files, else the first one."""
    changed = [path for path in changed_paths if path.endswith(".dart")]
    roots = {posixpath.dirname(path) for path in (NAME, *tree.glob(f"*/{NAME}")) if tree.is_file(path)}
    found = find_common_folder(roots, changed)
    return min(roots, key=lambda root: (len(root), root), default="") if found is None else found


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return files `test/**/*_test.dart` of the package in `folder`, sorted."""
    start = posixpath.join(folder, "test/")
    return sorted(path for path in tree.entries if path.startswith(start) and re.search(TEST_FILE, path))


def _read_named_versions(tree: SourceTree) -> Iterator[SourcedValue]:
    """Yield the versions of CI; others are `stable`, `beta` and `dev`."""
    for job in read_jobs(tree):
        is_set_up = any("setup-dart" in use.text for use in job.uses)
        values = [value for key in ("sdk", "dart") for value in job.values.get(key, ()) if is_set_up or key == "dart"]
        versions = [(value.text, value.line) for value in values]
        versions += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)dart:\d", use.text)]
        for version, line in () if job.is_auxiliary else versions:
            if re.search(r"\d+\.\d+", version):
                yield SourcedValue(text=version, path=job.path, line=line)


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    inside = posixpath.join("/testbed", draft.test.folder).rstrip("/")
    get = f"(cd {quote_words([inside])} && dart pub get)"
    report = f"{{ {get} 2>&1 | grep -q 'Got socket error' && echo 'pub.dev: could not reach host'; false; }}"
    step = render_registry_install("pub.dev", f"{{ {get} && chmod -R a+rX /opt/pub; }} || {report}", _NO_SUBSTITUTE)
    return build_plan(draft, (step,), (), kept_folders=(posixpath.join(draft.test.folder, PACKAGES),))
