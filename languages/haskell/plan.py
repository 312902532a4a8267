"""Create a plan draft from a Haskell repository and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from languages.base import read_packaged_file
from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.haskell.cabal_file import CabalFile, Stanza, list_debian_names
from languages.haskell.releases import RELEASES
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, render_debian_install, render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

TEST_FILE = r"(^|/)([^/]*(Spec|Tests?)|Main)\.l?hs$|(^|/)(tests?|spec|unit|testsuite)/.*\.l?hs$"
FRAMEWORK = "cabal-test"
_HOME = "/opt/haskell"
_SETTINGS = (("CABAL_CONFIG", f"{_HOME}/config"), ("CABAL_DIR", f"{_HOME}/cabal"))
_SPEC_FILE = r"[^/]*Spec\.l?hs$"
_REPORT_UNREACHABLE = (
    "{ cabal v2-update 2>&1 | grep -qE 'DnsHostNotFound|establish HTTP connection' && "
    "echo 'Hackage: could not reach host'; false; }"
)
_CI_PACKAGES = frozenset(
    {"ca-certificates", "curl", "dirmngr", "git", "gnupg", "libnuma-dev", "libtinfo5", "software-properties-common"}
)
"""Packages with which CI installs GHC itself."""
_NO_DATES = "cabal resolves from the state of Hackage on this day"
_MAKE_TOOLS = read_packaged_file("languages.haskell", "tools.sh")


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    packages = _list_local_packages(tree, folder)
    if not packages:
        hint = " (package.yaml is not read)" if tree.glob("*package.yaml") else ""
        raise NoPlanError(f"there is no file *.cabal{hint}")
    suites = list(_list_suites(tree, packages[0]))
    if not suites:
        raise NoPlanError(f"{packages[0].path} has no test suite whose main file is in the tree")
    files = list_test_files(tree, folder)
    paths = tuple(sorted({posixpath.dirname(main) or main for _, _, main in suites}))
    own_names = {package.name for package in packages}
    required = {r.text: r for package in packages for r in package.list_requirements() if r.text not in own_names}
    tools = {tool.text: tool for package in packages for tool in package.list_tools()}
    draft = PlanDraft(
        language="haskell",
        name=packages[0].name,
        versions=rank_versions(RELEASES, context, list(_read_named_versions(tree, packages[0])), []),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(
            framework=FRAMEWORK,
            argv=(f"{packages[0].name}", *(f"{name}:{kind}:{main}" for name, kind, main in suites)),
            paths=paths,
            folder=folder,
        ),
        dependencies=(
            *(Dependency(role=Role.RUNTIME, source=required[name]) for name in required),
            *(Dependency(role=Role.BUILD, source=tools[name]) for name in tools),
        ),
        manifests=read_manifests(tree, [package.path for package in packages]),
        system_packages=tuple(p for p in find_system_packages(tree).values() if p.text not in _CI_PACKAGES),
        env=(*LOCAL_SETTINGS, *_SETTINGS),
        evidence=(
            Evidence(choice="test.framework", value=FRAMEWORK, path=packages[0].path, line=0),
            Evidence(choice="test.paths", value=" ".join(paths), path=files[0], line=0),
            Evidence(choice="pin", value="date", path="(registry)", line=0, note=_NO_DATES),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the folder of the package whose tests run.

    It is that of the changed Haskell files, or else the first; where it has no test suites, the first of the packages
    that have some and require it.
    """
    changed = [path for path in changed_paths if path.endswith((".hs", ".lhs"))]
    folders = {posixpath.dirname(path) for path in _list_cabal_files(tree)}
    roots = sorted(folders, key=lambda root: (root.count("/"), root))
    common_folder = find_common_folder(roots, changed)
    chosen = next(iter(roots), "") if common_folder is None else common_folder
    for root in dict.fromkeys((chosen, *roots)):
        packages = _list_local_packages(tree, root)
        is_related = not changed or any(package.folder == chosen for package in packages)
        if packages and is_related and any(_list_suites(tree, packages[0])):
            return root
    return chosen


def _list_cabal_files(tree: SourceTree) -> list[str]:
    """Return the packages' files; those in folders of tests and examples where a cabal.project lists them."""
    listed = {
        posixpath.normpath(posixpath.join(posixpath.dirname(path), word))
        for path in tree.glob("*cabal.project")
        for line in re.findall(r"^packages:(.*(?:\n[ \t]+.*)*)", tree.read(path), re.MULTILINE)
        for word in line.split()
    }
    return [
        path
        for path in tree.glob("*.cabal")
        if not re.search(r"(^|/)(vendor|fixtures?|tests?|examples?)/", path)
        or not listed.isdisjoint((path, posixpath.dirname(path)))
    ]


def _list_local_packages(tree: SourceTree, folder: str) -> list[CabalFile]:
    """Return the package in `folder`, and the packages of the tree that it requires."""
    files = {posixpath.basename(path).removesuffix(".cabal"): path for path in _list_cabal_files(tree)}
    own_packages = [path for path in files.values() if posixpath.dirname(path) == folder][:1]
    packages: list[CabalFile] = []
    while own_packages:
        packages.append(CabalFile(tree, own_packages.pop()))
        known = {package.path for package in packages} | set(own_packages)
        names = [requirement.text for requirement in packages[-1].list_requirements()]
        own_packages += [files[name] for name in names if name in files and files[name] not in known]
    return packages


def _list_suites(tree: SourceTree, package: CabalFile) -> Iterator[tuple[str, str, str]]:
    """Yield (name, library that runs the tests or `program`, main file) of each suite."""
    for suite in package.list_suites():
        if main := package.find_main(tree, suite):
            yield suite.name, _detect_kind(package, suite), main


def _detect_kind(package: CabalFile, suite: Stanza) -> str:
    lines = [row for stanza in package.list_imports(suite) for row in stanza.fields.get("build-depends", [])]
    names = {name for _, text in lines for name in re.findall(r"(?:^|,)\s*([A-Za-z][\w-]*)", text)}
    if "tasty" in names:
        return "tasty"
    return "hspec" if "hspec" in names else "program"


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return the files that results are attributed to: main files of suites, or the specs that hspec-discover finds."""
    files: set[str] = set()
    for package in _list_local_packages(tree, folder)[:1]:
        for _, kind, main in _list_suites(tree, package):
            start = f"{posixpath.dirname(main)}/".lstrip("/")
            specs = [p for p in tree.entries if p.startswith(start) and re.search(_SPEC_FILE, p) and p != main]
            is_discovered = kind == "hspec" and "hspec-discover" in tree.read(main)
            files.update(specs if is_discovered and specs else [main])
    return sorted(files)


def _read_named_versions(tree: SourceTree, package: CabalFile) -> Iterator[SourcedValue]:
    for job in read_jobs(tree):
        keys = ("ghc", "ghc-version", "ghc_version", "compiler")
        values = [value for key in keys for value in job.values.get(key, ())]
        for value in () if job.is_auxiliary else values:
            yield SourcedValue(text=value.text.removeprefix("ghc-"), path=job.path, line=value.line)
    for number, text in package.stanzas[0].fields.get("tested-with", []):
        for version in re.findall(r"\d+\.\d+", text):
            yield SourcedValue(text=version, path=package.path, line=number)


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    libraries = [d.source.text for d in draft.dependencies if d.role is not Role.BUILD]
    tools = [d.source.text for d in draft.dependencies if d.role is Role.BUILD]
    bounds = ""
    if DEBIAN_PACKAGES in draft.switches:
        rows = [*((name, list_debian_names(name)) for name in libraries), *((tool, (tool,)) for tool in tools)]
        steps = [
            render_debian_install(rows),
            f"bash -c {quote_words([_MAKE_TOOLS])} tools {quote_words([_HOME, *tools])}",
        ]
        steps.append(_render_file("config", f"repository tools\n  url: file+noindex://{_HOME}/tools"))
        # Debian has a single version of each package, which the bounds of the project may not allow.
        bounds = "\nallow-newer: *:*\nallow-older: *:*"
    else:
        steps = [f"mkdir -p {_HOME}"]
        steps.append(_render_file("config", "repository hackage.haskell.org\n  url: https://hackage.haskell.org/"))
    packages = "".join(f"\n  /testbed/{path}" for path, _ in draft.manifests)
    state = f"{draft.exclude_newer}T00:00:00Z"
    index = "" if bounds else f"\nindex-state: {state}"
    steps.append(_render_file("cabal.project", f"packages:{packages}\ntests: True\noptimization: False{bounds}{index}"))
    build = f"cabal --project-file={_HOME}/cabal.project v2-build --builddir={_HOME}/build"
    # The package qualifies the target, because a suite may be named tests, too.
    target = f"pkg:{draft.test.argv[0]}:tests"
    if not bounds:
        fetch = f"cabal v2-update && {build} --only-dependencies {target} && chown -R 1000:1000 {_HOME}"
        steps.append(render_registry_install("Hackage", f"{{ {fetch}; }} || {_REPORT_UNREACHABLE}"))
    source_steps = (f"{build} --offline {target}", f"chown -R 1000:1000 {_HOME}")
    return build_plan(draft, steps, source_steps)


def _render_file(name: str, text: str) -> str:
    return f"printf '%s\\n' {quote_words([text])} > {_HOME}/{name}"
