"""From what a repository of a JVM language says to a draft, and from a draft to the plan; both pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from languages.draft import Context, Draft, NoPlanError
from languages.jvm import gradle, maven, tests, versions
from languages.jvm.gradle import Gradle, read_gradle
from languages.jvm.poms import Reactor, read_reactor
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, read_manifests
from languages.scripting.debian import DEBIAN_PACKAGES
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

WHOLE = "whole"
SWITCHES = {
    WHOLE: "all modules are built and tested, not only those of the change",
    DEBIAN_PACKAGES: f"a Gradle build runs on Debian's Gradle {gradle.DEBIANS}, not on the one that it names",
}

MANY = 8
"""Modules up to which all are built and tested."""

DEBIAN_JDK = 17
"""The newest JDK that Debian's Gradle is known to run on."""
OTHERS = {"build.sbt": "sbt", "build.xml": "Ant", "WORKSPACE": "Bazel", "MODULE.bazel": "Bazel", "BUILD": "Bazel"}


@dataclass(frozen=True, kw_only=True)
class GradleDraft(Draft):
    """Of a Gradle build, whose steps depend on where Gradle comes from."""

    recipe: gradle.Recipe


def draft(language: str, suffix: str, tree: Tree, context: Context) -> Draft:
    """All choices for the tree.

    Raises:
        NoPlanError: there is no Maven or Gradle project with tests, or no JDK for it.
    """
    if not any(path.endswith(f".{suffix}") for path in tree.entries):
        raise NoPlanError(f"no {language} file in the tree")
    if not tests.defining_files(tree, suffix):
        raise NoPlanError("no file in the tree defines tests")
    reactor = read_reactor(tree, context.touched)
    if reactor is not None:
        return _of_maven(language, suffix, tree, reactor, context)
    build = read_gradle(tree, context.touched)
    if build is not None:
        return _of_gradle(language, tree, build, context)
    raise NoPlanError(f"there is no pom.xml, {_built_by(tree)}")


def _of_maven(language: str, suffix: str, tree: Tree, reactor: Reactor, context: Context) -> Draft:
    jdks = _jdks(tree, versions.levels(reactor), context.available(), context)
    touched = _touched(reactor, context.touched)
    whole = len(reactor.modules()) <= MANY or not touched
    made = Draft(
        language=language,
        name=reactor.poms[reactor.top].value("artifactId"),
        versions=jdks,
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


def _of_gradle(language: str, tree: Tree, build: Gradle, context: Context) -> Draft:
    newest = gradle.newest_jdk(build.version) if build.url else DEBIAN_JDK
    fitting = [version for version in context.available() if int(version) <= newest]
    modules = sorted({module for path in context.touched if (module := build.module_of(path)) is not None})
    touched = tuple(module for module in modules if module not in ("", build.folder))
    said = Evidence(
        choice="test", value=f"gradle {build.version}", path=build.properties if build.url else build.scripts()[0],
        line=0, note="" if build.url else "Debian's, for none is named",
    )  # fmt: skip
    made = GradleDraft(
        language=language,
        name="",
        versions=_jdks(tree, gradle.levels(build), fitting, context),
        day=context.day,
        exclude_newer=date(context.day.year + 1, 1, 1),  # nothing depends on it; commits of a year share layers
        test=TestCommand(framework="gradle", argv=(gradle.program(debian=False),), paths=touched, folder=build.folder),
        manifests=read_manifests(tree, gradle.manifests(build)),
        env=(*LOCAL_SETTINGS, ("GRADLE_USER_HOME", gradle.HOME), ("GRADLE_OPTS", gradle.OPTIONS)),
        switches=frozenset(
            ({WHOLE} if len(build.modules) <= MANY or not touched else set())
            | (set() if build.url else {DEBIAN_PACKAGES})
        ),
        evidence=(said, *elsewhere_evidence(tree)),
        recipe=build.recipe(),
    )
    return with_services(made, jobs(tree))


def _jdks(tree: Tree, levels: list[Evidence], available: Sequence[str], context: Context) -> tuple[Evidence, ...]:
    found = versions.candidates(list(versions.ci_versions(tree)), levels, available, context.day) if available else []
    if not found:
        raise NoPlanError("this machine has no JDK that fits")
    return tuple(found)


def render(made: Draft) -> BuildPlan:
    """The plan of a draft. Maven's registries have no dates: builds name versions, and nothing newer comes in."""
    test = replace_paths(made.test) if WHOLE in made.switches else made.test
    if not isinstance(made, GradleDraft):
        return plan_of(replace(made, test=test), (), ())
    debian = DEBIAN_PACKAGES in made.switches
    test = test.model_copy(update={"argv": (gradle.program(debian=debian),)})
    steps = tuple(gradle.dependency_steps(made.recipe, debian=debian))
    return plan_of(replace(made, test=test), steps, gradle.source_steps(made.recipe, debian=debian))


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
