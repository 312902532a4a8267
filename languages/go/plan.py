"""From what a Go repository says to a draft, and from a draft to the plan; both pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from languages.base import Fallback
from languages.draft import Context, Dependency, Draft, NoPlanError, Role
from languages.facts import Wanted
from languages.go import ci, versions
from languages.go.modules import Module, innermost, of_change, old_name, read_modules
from languages.go.releases import parts
from languages.go.sources import applies, defines_tests, foreign, is_ignored
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, quoted, read_manifests
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

GOPATH = "/opt/go"
"""Modules and compiled packages; the tests' user may write there."""

ALL_MODULES, VENDORED, WORKSPACE, BELOW_GOPATH = "all-modules", "vendored", "workspace", "below-gopath"
SWITCHES = {
    VENDORED: "packages of others are taken from the tree's vendor folder",
    WORKSPACE: "go.work says which modules of the tree belong together",
    BELOW_GOPATH: "there is no go.mod: the tree stands where its import path says, below GOPATH",
    ALL_MODULES: "every module that go.mod names is downloaded, not only those whose packages the tree imports",
}
MANIFESTS = ("go.mod", "go.sum", "go.work", "go.work.sum")
_MOST_MANIFESTS = 400


def draft(tree: Tree, context: Context) -> Draft:
    """All choices for the tree.

    Raises:
        NoPlanError: there are no Go tests, no version for them, or nothing says which modules they need.
    """
    tests = defining_files(tree)
    if not tests:
        raise NoPlanError("no Go file in the tree defines tests")
    module, modules = _module(tree, context.touched, tests)
    found = jobs(tree)
    chosen = versions.candidates(tree, module, found, context.available(), context.day)
    if not chosen:
        raise NoPlanError(f"this machine has no Go that fits ({module.file} asks for {module.go or 'none'})")
    run = ci.test_run(tree, found, module)
    minor = parts(chosen[0].value)[1]
    own = [one.name for one in modules if one.name] or [module.name]
    sources = [path for path in tree.entries if path.endswith(".go") and not is_ignored(path)]
    needed = [] if module.vendored else foreign(tree, sources, own, ci.tags(run.argv), minor)
    if needed and not module.has_file:
        raise NoPlanError(f"no go.mod and no vendored packages: nothing says which {needed[0].text} is meant")
    made = Draft(
        language="go",
        name=module.name,
        versions=tuple(chosen),
        day=context.day,
        exclude_newer=context.day.replace(day=1),
        dependencies=tuple(Dependency(role=Role.BUILD, wanted=wanted) for wanted in needed),
        manifests=_manifests(tree) if needed else (),
        system_packages=ci.system_packages(found),
        switches=_switches(tree, module),
        env=(*LOCAL_SETTINGS, *ci.environment(run)),
        test=TestCommand(framework="go-test", argv=run.argv, paths=run.paths, folder=module.folder),
        evidence=(*_evidence(module, run), *elsewhere_evidence(tree)),
    )
    return with_services(made, [job for job in found if ci.tests_here(job)])


def _module(tree: Tree, touched: Sequence[str], tests: Sequence[str]) -> tuple[Module, list[Module]]:
    """The module that is tested, and all."""
    modules = read_modules(tree)
    if modules:
        return of_change(modules, touched, tests), modules
    vendored = any(path.startswith("vendor/") for path in tree.entries)
    name = old_name(tree, tests) or "testbed"
    return Module(name=name, vendored=vendored, has_file=False), []


def _manifests(tree: Tree) -> tuple[tuple[str, str], ...]:
    """What the go command reads of all modules: one may stand in for another (`replace`)."""
    paths = [p for p in tree.entries if p.rpartition("/")[2] in MANIFESTS and not is_ignored(p)]
    return read_manifests(tree, sorted(paths, key=lambda path: (path.count("/"), path))[:_MOST_MANIFESTS])


def _switches(tree: Tree, module: Module) -> frozenset[str]:
    """How the module's packages are found."""
    known = ((VENDORED, module.vendored), (WORKSPACE, tree.is_file("go.work")), (BELOW_GOPATH, not module.has_file))
    return frozenset(name for name, is_so in known if is_so)


def _evidence(module: Module, run: ci.TestRun) -> list[Evidence]:
    def line(choice: str, value: str, place: Wanted, note: str = "") -> Evidence:
        return Evidence(choice=choice, value=value, path=place.path, line=place.line, note=note)

    source = Wanted(text="", path=module.file if module.has_file else "(default)")
    pins = "vendored" if module.vendored else "go.mod and go.sum"
    return [
        line("test.framework", "go-test", source),
        line("test.argv", " ".join(run.argv), run.place, "without race detector, coverage and vet"),
        line("test.paths", " ".join(run.paths) or "./...", run.place),
        line("dependencies", pins, source, "versions are pinned by the repository"),
    ]


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """The plan of a draft."""
    made = replace(made, env=(*made.env, *_environment(made)))
    return plan_of(made, _dependency_steps(made), _source_steps(made))


def _environment(made: Draft) -> list[tuple[str, str]]:
    """Where things lie, and flags that the version knows: a wrong one ends every go command."""
    minor, flags = parts(made.versions[0].value)[1], []
    if VENDORED in made.switches:
        flags.append("-mod=vendor")
    elif minor >= 14 and WORKSPACE not in made.switches:  # a workspace takes none, and before 1.14 it is so anyway
        flags.append("-mod=mod")
    if minor >= 18:
        flags.append("-buildvcs=false")
    found = {"GOPATH": GOPATH, "GOCACHE": f"{GOPATH}/cache", "GOTOOLCHAIN": "local"}
    found |= {"GO111MODULE": "off"} if BELOW_GOPATH in made.switches else {"GOFLAGS": " ".join(flags)}
    have = {name for name, _ in made.env}
    return [(name, value) for name, value in found.items() if name not in have]


def _dependency_steps(made: Draft) -> tuple[str, ...]:
    """Modules are downloaded and their packages compiled, so that a test run compiles the project's own alone."""
    wanted = sorted(dependency.wanted.text for dependency in made.dependencies)
    if not wanted:
        return ()
    listed = "/tmp/packages"  # noqa: S108 - in the box
    usable = "'{{if not .Error}}{{if or .GoFiles .CgoFiles}}{{.ImportPath}}{{end}}{{end}}'"
    steps = [f"cd {quoted([made.test.folder])}"] if made.test.folder else []
    if ALL_MODULES in made.switches:
        steps.append("go mod download")
    steps += [
        f"printf '%s\\n' {quoted(wanted)} > {listed}",
        # -e: what cannot be had is told by the tests; it must not keep the others away.
        f"xargs go list -e -deps -f {usable} < {listed} > /dev/null",
        f"xargs go list -e -f {usable} < {listed} | xargs -r go build -p 2 || echo 'some packages do not compile'",
        f"rm -f {listed} && find {GOPATH}/pkg/mod/cache/download -name '*.zip' -delete 2>/dev/null || true",
        f"chown -R --from=0 1000:1000 {GOPATH}",
    ]
    return tuple(steps)


def _source_steps(made: Draft) -> tuple[str, ...]:
    if BELOW_GOPATH not in made.switches:
        return ()
    place = f"{GOPATH}/src/{made.name}"
    return (f': --offline ; mkdir -p {quoted([place.rpartition("/")[0]])} && ln -sfn "$PWD" {quoted([place])}',)


# ------------------------------------------------------------------------------------------------ tests


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files with functions that `go test` runs; with a plan those of its module that its tags and version take in."""
    paths = [path for path in tree.entries if path.endswith("_test.go") and not is_ignored(path)]
    texts = tree.read_many(paths)
    found = sorted(path for path in paths if defines_tests(texts[path]))
    if plan is None:
        return found
    tags, minor = ci.tags(plan.test.argv), parts(plan.language_version)[1]
    folders = [module.folder for module in read_modules(tree)] or [""]
    return [
        path for path in found
        if innermost(folders, path) == plan.test.folder and applies(path, texts[path], tags, minor)
        and _below(path, plan)
    ]  # fmt: skip


def _below(path: str, plan: BuildPlan) -> bool:
    """Whether one of the plan's package patterns takes the file's folder in."""
    inside = "./" + path.removeprefix(f"{plan.test.folder}/" if plan.test.folder else "")
    folder = inside.rpartition("/")[0]
    return not plan.test.paths or any(
        f"{folder}/".startswith(f"{pattern.removesuffix('/...')}/") if pattern.endswith("/...") else folder == pattern
        for pattern in plan.test.paths
    )


# ------------------------------------------------------------------------------------------------ fallbacks


def without_system_packages(made: Draft) -> Draft:
    """Debian may not have what CI's own system calls so."""
    return replace(made, system_packages=())


def all_modules(made: Draft) -> Draft:
    """Everything go.mod names: what the imports did not tell is there, too."""
    return replace(made, switches=made.switches | {ALL_MODULES}) if made.dependencies else made


def next_version(made: Draft) -> Draft:
    """The next Go of the evidence."""
    return replace(made, versions=made.versions[1:] or made.versions)


FALLBACKS: tuple[Fallback, ...] = (all_modules, without_system_packages, next_version)
