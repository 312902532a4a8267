"""Create a plan draft from a repository of a JVM language and render it as a build plan. Both are pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.jvm import gradle, maven, tests, versions
from languages.jvm.gradle import GradleBuild, read_gradle
from languages.jvm.poms import Reactor, read_reactor
from languages.jvm.translation import GradleTranslation, TranslatedBuild, render_build, translate
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, read_manifests
from languages.scripting.debian import DEBIAN_PACKAGES, DEBIAN_SUBSTITUTE
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

WHOLE_REACTOR = "whole"
MAVEN_TRANSLATION = "maven-translation"
SWITCHES = {
    WHOLE_REACTOR: "all modules are built and tested, not only those of the change",
    DEBIAN_PACKAGES: f"the build uses Debian's Gradle {gradle.DEBIAN_GRADLE} instead of its wrapper's distribution",
    MAVEN_TRANSLATION: "Maven builds what the Gradle build declares, as poms outside of the tree",
}

MANY_MODULES = 8
"""Maximum number of modules that are all built and tested."""

DEBIAN_JDK = 17
"""The newest JDK on which Debian's Gradle is known to run."""
OTHER_BUILD_FILES = {
    "build.sbt": "sbt",
    "build.xml": "Ant",
    "WORKSPACE": "Bazel",
    "MODULE.bazel": "Bazel",
    "BUILD": "Bazel",
}


@dataclass(frozen=True, kw_only=True)
class MavenDraft(PlanDraft):
    """Draft of a Maven build."""

    whole: maven.MavenSteps
    """Steps for all modules."""
    changed: maven.MavenSteps
    """Steps for the modules of the change and the modules that they depend on."""


@dataclass(frozen=True, kw_only=True)
class GradleDraft(PlanDraft):
    """Draft of a Gradle build; its steps are rendered late because they depend on the source of Gradle."""

    recipe: gradle.GradleRecipe
    whole: TranslatedBuild | None
    """The translation to poms, for all modules; None if there is none."""
    changed: TranslatedBuild | None
    """The command for the modules of the change and the modules that they depend on."""
    translation_evidence: tuple[Evidence, ...]


def create_draft(language: str, suffix: str, tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan.

    Raises:
        NoPlanError: there is no Maven or Gradle project with tests, or no suitable JDK.
    """
    if not any(path.endswith(f".{suffix}") for path in tree.entries):
        raise NoPlanError(f"no {language} file in the tree")
    if not tests.find_test_files(suffix, tree):
        raise NoPlanError("no file in the tree defines tests")
    reactor = read_reactor(tree, context.changed_paths)
    if reactor is not None:
        return _create_maven_draft(language, suffix, tree, reactor, context)
    build = read_gradle(tree, context.changed_paths)
    if build is not None:
        return _create_gradle_draft(language, suffix, tree, build, context)
    raise NoPlanError(f"there is no pom.xml, {_detect_other_build(tree)}")


def _create_maven_draft(
    language: str, suffix: str, tree: SourceTree, reactor: Reactor, context: PlanningContext
) -> PlanDraft:
    jdks = _rank_jdks(tree, versions.read_language_levels(reactor), context.list_available(), context)
    changed_modules = _find_changed_modules(reactor, context.changed_paths)
    builds_all = len(reactor.list_code_modules()) <= MANY_MODULES or not changed_modules
    test = TestCommand(
        framework="maven",
        argv=(*maven.maven_command(reactor), "test"),
        paths=changed_modules,
        folder=reactor.top,
    )
    draft = MavenDraft(
        language=language,
        name=reactor.poms[reactor.top].find_text("artifactId"),
        versions=jdks,
        day=context.day,
        # The date has no effect here; with the start of a year, commits of the year before it share layers.
        exclude_newer=date(context.day.year + 1, 1, 1),
        test=test,
        manifests=read_manifests(tree, maven.list_manifests(tree, reactor)),
        env=(*LOCAL_SETTINGS, ("MAVEN_OPTS", maven.OPTIONS)),
        switches=frozenset({WHOLE_REACTOR} if builds_all else ()),
        whole=maven.render_steps(reactor, (), suffix),
        changed=maven.render_steps(reactor, changed_modules, suffix),
        evidence=(*_build_evidence(reactor), *list_external_content(tree)),
    )
    return add_ci_services(draft, read_jobs(tree))


def _create_gradle_draft(
    language: str, suffix: str, tree: SourceTree, build: GradleBuild, context: PlanningContext
) -> PlanDraft:
    # An old Gradle does not run on JDKs that are newer than itself.
    newest = gradle.select_newest_jdk(build.version) if build.url else DEBIAN_JDK
    suitable = [version for version in context.list_available() if int(version) <= newest]
    modules = sorted({module for path in context.changed_paths if (module := build.find_module(path)) is not None})
    changed_modules = tuple(module for module in modules if module not in ("", build.folder))
    distribution = Evidence(
        choice="test",
        value=f"gradle {build.version}",
        path=build.properties_path if build.url else build.list_build_scripts()[0],
        line=0,
        note="" if build.url else "Debian's Gradle, because there is no wrapper",
    )
    translated = translate(build, BuildPlan.model_fields["workdir"].default, changed_modules)
    draft = GradleDraft(
        language=language,
        name="",
        versions=_rank_jdks(tree, gradle.read_language_levels(build), suitable, context),
        day=context.day,
        # The date has no effect here; with the start of a year, commits of the year before it share layers.
        exclude_newer=date(context.day.year + 1, 1, 1),
        test=TestCommand(
            framework="gradle", argv=(gradle.gradle_command(debian=False),), paths=changed_modules, folder=build.folder
        ),
        manifests=read_manifests(tree, gradle.list_manifests(build)),
        env=(*LOCAL_SETTINGS, ("GRADLE_USER_HOME", gradle.HOME), ("GRADLE_OPTS", gradle.OPTIONS)),
        switches=frozenset(
            ({WHOLE_REACTOR} if len(build.modules) <= MANY_MODULES or not changed_modules else set())
            | (set() if build.url else {DEBIAN_PACKAGES})
        ),
        evidence=(distribution, *list_external_content(tree)),
        recipe=build.read_recipe(_name_substitute(build, translated)),
        whole=render_build(translated, build.folder, (), suffix),
        changed=render_build(translated, build.folder, changed_modules, suffix),
        translation_evidence=(
            distribution.model_copy(
                update={"value": "maven", "note": f"poms of what the scripts declare, without Gradle {build.version}"}
            ),
            *translated.evidence,
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def _name_substitute(build: GradleBuild, translated: GradleTranslation) -> str:
    """Return the steps that a machine that cannot reach the distribution can do instead."""
    if translated.poms and gradle.is_newer(build, "5.0"):
        return f"Maven Central is not: switch {MAVEN_TRANSLATION}"
    # Debian's Gradle is older than these versions, but sometimes enough for 5 and 6.
    if not gradle.is_newer(build, "7.0"):
        return DEBIAN_SUBSTITUTE
    return f"and no poms can take its place: {translated.obstacle}"


def _rank_jdks(
    tree: SourceTree, levels: list[Evidence], available: Sequence[str], context: PlanningContext
) -> tuple[Evidence, ...]:
    jdks = (
        versions.rank_versions(list(versions.read_ci_versions(tree)), levels, available, context.day)
        if available
        else []
    )
    if not jdks:
        raise NoPlanError("no suitable JDK is available")
    return tuple(jdks)


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft. Maven repositories have no upload dates; builds pin their versions."""
    test = select_all_modules(draft.test) if WHOLE_REACTOR in draft.switches else draft.test
    if isinstance(draft, MavenDraft):
        steps = draft.whole if WHOLE_REACTOR in draft.switches else draft.changed
        return build_plan(replace(draft, test=test), steps.dependencies, steps.source)
    if not isinstance(draft, GradleDraft):
        return build_plan(replace(draft, test=test), (), ())
    if MAVEN_TRANSLATION in draft.switches and (translated_build := _select_build(draft)):
        translated = replace(
            draft,
            test=test.model_copy(
                update={
                    "framework": "maven",
                    "argv": (*maven.make_translated_command(draft.recipe.folder), "test"),
                    "paths": translated_build.paths,
                }
            ),
            env=(*(pair for pair in draft.env if not pair[0].startswith("GRADLE_")), ("MAVEN_OPTS", maven.OPTIONS)),
            evidence=(*draft.translation_evidence, *draft.evidence[1:]),
        )
        return build_plan(translated, translated_build.steps.dependencies, translated_build.steps.source)
    uses_debian = DEBIAN_PACKAGES in draft.switches
    test = test.model_copy(update={"argv": (gradle.gradle_command(debian=uses_debian),)})
    dependencies = tuple(gradle.render_dependency_steps(draft.recipe, debian=uses_debian))
    return build_plan(
        replace(draft, test=test), dependencies, gradle.render_source_steps(draft.recipe, debian=uses_debian)
    )


def _select_build(draft: GradleDraft) -> TranslatedBuild | None:
    return draft.whole if WHOLE_REACTOR in draft.switches else draft.changed


def select_all_modules(test: TestCommand) -> TestCommand:
    """Return the test command for all modules."""
    return test.model_copy(update={"paths": ()})


def select_changed_modules(draft: PlanDraft) -> PlanDraft:
    """Build only the modules of the change and the modules that they depend on.

    Others may need artifacts that cannot be had here.
    """
    return replace(draft, switches=draft.switches - {WHOLE_REACTOR}) if draft.test.paths else draft


def select_translation(draft: PlanDraft) -> PlanDraft:
    """Build with Maven the parts that the Gradle build declares: the Gradle that can be had may be too old for it."""
    if not isinstance(draft, GradleDraft) or draft.whole is None or DEBIAN_PACKAGES not in draft.switches:
        return draft
    return replace(draft, switches=draft.switches | {MAVEN_TRANSLATION})


def select_next_jdk(draft: PlanDraft) -> PlanDraft:
    """Select the next JDK of the evidence: the code may use an API that later JDKs removed."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


def _find_changed_modules(reactor: Reactor, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modules that contain changed files."""
    modules = {module for path in paths if (module := reactor.find_module(path)) is not None}
    return tuple(sorted(module for module in modules if module and module in reactor.list_code_modules()))


def _detect_other_build(tree: SourceTree) -> str:
    path = next((path for path in OTHER_BUILD_FILES if tree.is_file(path)), "")
    return f"and {OTHER_BUILD_FILES[path]} ({path}) is not supported" if path else "and no other known build file"


def _build_evidence(reactor: Reactor) -> list[Evidence]:
    top = reactor.poms[reactor.top]
    evidence = [Evidence(choice="test", value="maven", path=top.path, line=1, note=f"{len(reactor.poms)} poms")]
    for profile in reactor.list_activated_profiles():
        pom = next((pom for pom in reactor.poms.values() if pom.find_line(f"<id>{profile}</id>")), top)
        line, note = pom.find_line(f"<id>{profile}</id>"), "profile without which no module contains the change"
        evidence.append(Evidence(choice="test", value=f"-P {profile}", path=pom.path, line=line, note=note))
    for name, pom in reactor.list_skips():
        # The option overrides a property of the pom, so that the tree itself stays unchanged.
        note = "the build skips its tests otherwise"
        evidence.append(
            Evidence(choice="test", value=f"-D{name}=false", path=pom.path, line=pom.find_line(f"<{name}>"), note=note)
        )
    for group, artifact, version, pom in reactor.list_snapshots():
        # A snapshot that CI could download on the day of the change no longer exists.
        note = "replaced by its release: servers delete snapshots"
        value = f"{group}:{artifact}:{version.removesuffix('-SNAPSHOT')}"
        evidence.append(
            Evidence(choice="dependency_steps", value=value, path=pom.path, line=pom.find_line(version), note=note)
        )
    return evidence
