"""Create a plan draft from a Go repository and render it as a build plan. Both are pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from languages.base import Fallback
from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.go import ci, versions
from languages.go.modules import GoModule, find_innermost, infer_module_name, read_modules, select_module
from languages.go.releases import parse_version
from languages.go.sources import defines_tests, find_external_imports, is_compiled, is_ignored
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

GOPATH = "/opt/go"
"""Downloaded modules and compiled packages; writable for the tests' user."""

ALL_MODULES, VENDORED, WORKSPACE, BELOW_GOPATH = "all-modules", "vendored", "workspace", "below-gopath"
CHANGED_MODULES = "changed-modules"
NEEDED = "needed_modules"
"""Evidence choice with the folders of the modules in go.work that the module under test needs; its note: their Go."""
OWN_WORKSPACE = f"{GOPATH}/own.work"
SWITCHES = {
    VENDORED: "external packages are taken from the tree's vendor folder",
    WORKSPACE: "go.work connects several modules of the tree",
    BELOW_GOPATH: "there is no go.mod: the tree is placed below GOPATH, at its import path",
    CHANGED_MODULES: "of the modules in go.work only the change's own and those that it requires are loaded",
    ALL_MODULES: "all modules in go.mod are downloaded, not only those whose packages the tree imports",
}
MANIFESTS = ("go.mod", "go.sum", "go.work", "go.work.sum")
_MOST_MANIFESTS = 400


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan.

    Raises:
        NoPlanError: there are no Go tests, no suitable Go version, or the versions of dependencies are not pinned.
    """
    tests = find_test_files(tree)
    if not tests:
        raise NoPlanError("no Go file in the tree defines tests")
    module, modules = _find_module(tree, context.changed_paths, tests)
    jobs = read_jobs(tree)
    version_evidence = versions.rank_versions(tree, module, jobs, context.list_available(), context.day)
    if not version_evidence:
        raise NoPlanError(
            f"no suitable Go version is available ({module.go_mod_path} requires {module.go_version or 'none'})"
        )
    command = ci.find_test_command(tree, jobs, module)
    minor = parse_version(version_evidence[0].value)[1]
    own = [own_module.name for own_module in modules if own_module.name] or [module.name]
    sources = [path for path in tree.entries if path.endswith(".go") and not is_ignored(path)]
    external = (
        [] if module.vendored else find_external_imports(tree, sources, own, ci.parse_build_tags(command.argv), minor)
    )
    if external and not module.has_file:
        raise NoPlanError(f"no go.mod and no vendored packages: the version of {external[0].text} is not pinned")
    draft = PlanDraft(
        language="go",
        name=module.name,
        versions=tuple(version_evidence),
        day=context.day,
        # The start of the month lets candidates of a month share layers.
        exclude_newer=context.day.replace(day=1),
        dependencies=tuple(Dependency(role=Role.BUILD, source=package) for package in external),
        manifests=_list_manifests(tree) if external else (),
        system_packages=ci.find_system_packages(jobs),
        switches=_detect_switches(tree, module),
        env=(*LOCAL_SETTINGS, *ci.get_environment(command)),
        test=TestCommand(framework="go-test", argv=command.argv, paths=command.paths, folder=module.folder),
        evidence=(
            *_build_evidence(module, command),
            *_list_needed_modules(tree, module, modules),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, [job for job in jobs if ci.runs_go_tests(job)])


def _find_module(
    tree: SourceTree, changed_paths: Sequence[str], tests: Sequence[str]
) -> tuple[GoModule, list[GoModule]]:
    """Return the module under test, and all modules."""
    modules = read_modules(tree)
    if modules:
        return select_module(modules, changed_paths, tests), modules
    vendored = any(path.startswith("vendor/") for path in tree.entries)
    name = infer_module_name(tree, tests) or "testbed"
    return GoModule(name=name, vendored=vendored, has_file=False), []


def _list_manifests(tree: SourceTree) -> tuple[tuple[str, str], ...]:
    """Return the go.mod, go.sum and go.work files of all modules: a `replace` may refer to another module."""
    paths = [p for p in tree.entries if p.rpartition("/")[2] in MANIFESTS and not is_ignored(p)]
    return read_manifests(tree, sorted(paths, key=lambda path: (path.count("/"), path))[:_MOST_MANIFESTS])


def _detect_switches(tree: SourceTree, module: GoModule) -> frozenset[str]:
    """Return the switches that describe how the module's packages are found."""
    switches = ((VENDORED, module.vendored), (WORKSPACE, tree.is_file("go.work")), (BELOW_GOPATH, not module.has_file))
    return frozenset(name for name, is_set in switches if is_set)


def _build_evidence(module: GoModule, command: ci.GoTestCommand) -> list[Evidence]:
    def line(choice: str, value: str, origin: SourcedValue, note: str = "") -> Evidence:
        return Evidence(choice=choice, value=value, path=origin.path, line=origin.line, note=note)

    source = SourcedValue(text="", path=module.go_mod_path if module.has_file else "(default)")
    pins = "vendored" if module.vendored else "go.mod and go.sum"
    return [
        line("test.framework", "go-test", source),
        line("test.argv", " ".join(command.argv), command.source, "without race detector, coverage and vet"),
        line("test.paths", " ".join(command.paths) or "./...", command.source),
        line("dependencies", pins, source, "versions are pinned by the repository"),
    ]


def _list_needed_modules(tree: SourceTree, module: GoModule, modules: Sequence[GoModule]) -> list[Evidence]:
    """Return evidence of the modules of go.work that the module under test requires, itself included."""
    if not tree.is_file("go.work"):
        return []
    needed, queue = [module], [module]
    while queue:
        text = tree.read(queue.pop().go_mod_path)
        for other in modules:
            if other not in needed and other.name and re.search(rf"(^|\s){re.escape(other.name)} v", text):
                needed.append(other)
                queue.append(other)
    # Versions are compared as numbers: as text, 1.9 would be newer than 1.21.
    version = max(
        (needed_module.go_version for needed_module in needed),
        key=lambda text: [int(n) for n in re.findall(r"\d+", text)],
    )
    folders = " ".join(needed_module.folder or "." for needed_module in needed)
    return [Evidence(choice=NEEDED, value=folders, path=module.go_mod_path, line=0, note=version)]


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft."""
    draft = replace(draft, env=(*draft.env, *_build_environment(draft)))
    return build_plan(draft, _render_dependency_steps(draft), _render_source_steps(draft))


def _build_environment(draft: PlanDraft) -> list[tuple[str, str]]:
    """Return variables for folders and flags; an unknown flag would make every go command fail."""
    # An unknown flag would make every go command fail, so each is set only from the version that knows it.
    minor, flags = parse_version(draft.versions[0].value)[1], []
    if VENDORED in draft.switches:
        flags.append("-mod=vendor")
    elif minor >= 14 and WORKSPACE not in draft.switches:
        # The flag is not accepted in a workspace, and it describes the default before 1.14.
        flags.append("-mod=mod")
    if minor >= 18:
        flags.append("-buildvcs=false")
    variables = {"GOPATH": GOPATH, "GOCACHE": f"{GOPATH}/cache", "GOTOOLCHAIN": "local"}
    variables |= {"GO111MODULE": "off"} if BELOW_GOPATH in draft.switches else {"GOFLAGS": " ".join(flags)}
    variables |= {"GOWORK": OWN_WORKSPACE} if CHANGED_MODULES in draft.switches else {}
    # Variables of CI stay as the project sets them.
    existing = {name for name, _ in draft.env}
    return [(name, value) for name, value in variables.items() if name not in existing]


def _render_dependency_steps(draft: PlanDraft) -> tuple[str, ...]:
    """Return steps that download and compile external packages, so that a test run compiles only the project's."""
    packages = sorted(dependency.source.text for dependency in draft.dependencies)
    workspace = _render_own_workspace(draft)
    if not packages:
        return workspace
    list_file = "/tmp/packages"  # noqa: S108 - in the container
    template = "'{{if not .Error}}{{if or .GoFiles .CgoFiles}}{{.ImportPath}}{{end}}{{end}}'"
    steps = [*workspace, *([f"cd {quote_words([draft.test.folder])}"] if draft.test.folder else [])]
    if ALL_MODULES in draft.switches:
        steps.append("go mod download")
    steps += [
        f"printf '%s\\n' {quote_words(packages)} > {list_file}",
        # -e: a package that cannot be loaded must not prevent the others from being compiled; its tests will fail.
        f"xargs go list -e -deps -f {template} < {list_file} > /dev/null",
        f"xargs go list -e -f {template} < {list_file} | xargs -r go build -p 2 || echo 'some packages do not compile'",
        f"rm -f {list_file} && find {GOPATH}/pkg/mod/cache/download -name '*.zip' -delete 2>/dev/null || true",
        f"chown -R --from=0 1000:1000 {GOPATH}",
    ]
    return tuple(steps)


def _render_own_workspace(draft: PlanDraft) -> tuple[str, ...]:
    """Return the step that writes a go.work with the needed modules alone."""
    needed = next((item for item in draft.evidence if item.choice == NEEDED), None)
    if CHANGED_MODULES not in draft.switches or needed is None:
        return ()
    lines = [
        f"go {needed.note or draft.versions[0].value}",
        *(f'use "/testbed/{folder}"' for folder in needed.value.split()),
    ]
    copy_sums = f"{{ [ ! -f go.work.sum ] || cp go.work.sum {OWN_WORKSPACE}.sum; }}"
    return (f"mkdir -p {GOPATH} && printf '%s\\n' {quote_words(lines)} > {OWN_WORKSPACE} && {copy_sums}",)


def _render_source_steps(draft: PlanDraft) -> tuple[str, ...]:
    if BELOW_GOPATH not in draft.switches:
        return (_render_compile(draft),)
    link = f"{GOPATH}/src/{draft.name}"
    return (f': --offline ; mkdir -p {quote_words([link.rpartition("/")[0]])} && ln -sfn "$PWD" {quote_words([link])}',)


def _render_compile(draft: PlanDraft) -> str:
    """Return the step that compiles the tree's packages and tests, so that a run compiles those that differ from it."""
    folder = quote_words([draft.test.folder or "."])
    # `true` stands for the test binaries. Without -count, it would be remembered as their result.
    words = quote_words([*draft.test.argv, "-exec", "true", "-count=1", *(draft.test.paths or ("./...",))])
    compile_all = f"(: --offline ; cd {folder} && GOPROXY=off {words} > /dev/null)"
    return f"{compile_all} || true; chown -R --from=0 1000:1000 {GOPATH}"


# ------------------------------------------------------------------------------------------------ tests


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files with test functions; with a plan those of its module that match build tags and version."""
    paths = [path for path in tree.entries if path.endswith("_test.go") and not is_ignored(path)]
    texts = tree.read_many(paths)
    test_files = sorted(path for path in paths if defines_tests(texts[path]))
    if plan is None:
        return test_files
    tags, minor = ci.parse_build_tags(plan.test.argv), parse_version(plan.language_version)[1]
    folders = [module.folder for module in read_modules(tree)] or [""]
    return [
        path
        for path in test_files
        if find_innermost(folders, path) == plan.test.folder
        and is_compiled(path, texts[path], tags, minor)
        and _is_selected(path, plan)
    ]


def _is_selected(path: str, plan: BuildPlan) -> bool:
    """Return whether a package pattern of the plan matches the file's folder."""
    inside = "./" + path.removeprefix(f"{plan.test.folder}/" if plan.test.folder else "")
    folder = inside.rpartition("/")[0]
    return not plan.test.paths or any(
        f"{folder}/".startswith(f"{pattern.removesuffix('/...')}/") if pattern.endswith("/...") else folder == pattern
        for pattern in plan.test.paths
    )


# ------------------------------------------------------------------------------------------------ fallbacks


def select_changed_packages(draft: PlanDraft) -> PlanDraft:
    """Load only the change's module of go.work, with those that it requires: another module may not be available."""
    needed = next((item.value.split() for item in draft.evidence if item.choice == NEEDED), [])
    if not needed or CHANGED_MODULES in draft.switches:
        return draft
    modules = {path.rpartition("/")[0] or "." for path, _ in draft.manifests if path.endswith("go.mod")}
    if draft.manifests and modules <= set(needed):
        return draft
    return replace(draft, switches=draft.switches | {CHANGED_MODULES})


def drop_system_packages(draft: PlanDraft) -> PlanDraft:
    """Install no system packages: Debian may not have the packages of CI's operating system."""
    return replace(draft, system_packages=())


def download_all_modules(draft: PlanDraft) -> PlanDraft:
    """Download all modules of go.mod, including those that the imports do not show."""
    return replace(draft, switches=draft.switches | {ALL_MODULES}) if draft.dependencies else draft


def select_next_version(draft: PlanDraft) -> PlanDraft:
    """Select the next Go version of the evidence."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


FALLBACKS: tuple[Fallback, ...] = (
    select_changed_packages,
    download_all_modules,
    drop_system_packages,
    select_next_version,
)
