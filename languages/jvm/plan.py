"""From what a repository of a JVM language says to a draft, and from a draft to the plan; both pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from languages.draft import Context, Draft, NoPlanError
from languages.jvm import maven, tests, versions
from languages.jvm.poms import Reactor, read_reactor
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, read_manifests
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

WHOLE = "whole"
SWITCHES = {WHOLE: "all modules are built and tested, not only those of the change"}

MANY = 8
"""Modules up to which all are built and tested."""

GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
OTHERS = {"build.sbt": "sbt", "build.xml": "Ant", "WORKSPACE": "Bazel", "MODULE.bazel": "Bazel", "BUILD": "Bazel"}


def draft(language: str, suffix: str, tree: Tree, context: Context) -> Draft:
    """All choices for the tree.

    Raises:
        NoPlanError: there is no Maven project with tests, or no JDK for it.
    """
    if not any(path.endswith(f".{suffix}") for path in tree.entries):
        raise NoPlanError(f"no {language} file in the tree")
    if not tests.defining_files(tree, suffix):
        raise NoPlanError("no file in the tree defines tests")
    reactor = read_reactor(tree, context.touched)
    if reactor is None:
        raise NoPlanError(f"there is no pom.xml, {_built_by(tree)}")
    levels = versions.levels(reactor)
    jdks = versions.candidates(list(versions.ci_versions(tree)), levels, context.available(), context.day)
    if not jdks:
        raise NoPlanError("this machine has no JDK that fits")
    touched = _touched(reactor, context.touched)
    whole = len(reactor.modules()) <= MANY or not touched
    made = Draft(
        language=language,
        name=reactor.poms[reactor.top].value("artifactId"),
        versions=tuple(jdks),
        day=context.day,
        exclude_newer=date(context.day.year + 1, 1, 1),  # nothing depends on it; commits of a year share layers
        test=TestCommand(framework="maven", argv=(*maven.MVN, "test"), paths=touched, folder=reactor.top),
        manifests=read_manifests(tree, maven.manifests(tree, reactor)),
        env=(*LOCAL_SETTINGS, ("MAVEN_OPTS", maven.OPTIONS)),
        switches=frozenset({WHOLE} if whole else ()),
        dependency_steps=tuple(maven.dependency_steps(reactor, () if whole else touched, suffix)),
        source_steps=tuple(maven.source_steps(reactor, () if whole else touched)),
        evidence=(*_evidence(reactor), *elsewhere_evidence(tree)),
    )
    return with_services(made, jobs(tree))


def render(made: Draft) -> BuildPlan:
    """The plan of a draft. Maven has no dates: the poms name versions, and nothing newer comes in."""
    test = replace_paths(made.test) if WHOLE in made.switches else made.test
    return plan_of(replace(made, test=test), (), ())


def replace_paths(test: TestCommand) -> TestCommand:
    """The command over all modules."""
    return test.model_copy(update={"paths": ()})


def next_jdk(made: Draft) -> Draft:
    """The next JDK of the evidence: code may use what a later one took away."""
    return replace(made, versions=made.versions[1:] or made.versions)


def _touched(reactor: Reactor, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Modules of the change's files."""
    found = {module for path in paths if (module := reactor.module_of(path)) is not None}
    return tuple(sorted(module for module in found if module and module in reactor.modules()))


def _built_by(tree: Tree) -> str:
    if path := next((path for path in GRADLE if tree.is_file(path)), ""):
        return f"and Gradle ({path}) needs its own distribution, which no package registry has"
    path = next((path for path in OTHERS if tree.is_file(path)), "")
    return f"and {OTHERS[path]} ({path}) is not supported" if path else "and no other known build file"


def _evidence(reactor: Reactor) -> list[Evidence]:
    top = reactor.poms[reactor.top]
    found = [Evidence(choice="test", value="maven", path=top.path, line=1, note=f"{len(reactor.poms)} poms")]
    for group, artifact, version, pom in reactor.snapshots():
        note = "taken as it was released: servers forget snapshots"
        value = f"{group}:{artifact}:{version.removesuffix('-SNAPSHOT')}"
        found.append(Evidence(choice="dependency_steps", value=value, path=pom.path, line=pom.line(version), note=note))
    return found
