"""Gradle builds as poms: what scripts of both dialects declare, and what has no equivalent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from languages.draft import PlanDraft
from languages.java import JAVA
from languages.jvm.gradle import read_gradle
from languages.jvm.plan import MAVEN_TRANSLATION, select_translation
from languages.jvm.translation import GradleTranslation, translate
from languages.kotlin import KOTLIN
from languages.scripting.debian import DEBIAN_PACKAGES
from tests.languages.test_jvm import TEST, build_context
from tests.languages.test_jvm_modules import select, write
from tests.languages.trees import build_tree

WRAPPER = {"gradle/wrapper/gradle-wrapper.properties": "distributionUrl=https\\://builds.example/gradle-8.5-bin.zip\n"}

GROOVY = WRAPPER | {
    "settings.gradle": "include ':core',\n  ':tool'\nproject(':tool').projectDir = file('tools/tool')\n",
    "gradle.properties": "jacksonVersion=2.15.0\n",
    "gradle/libs.versions.toml": (
        '[versions]\njunit = "5.9.1"\n[libraries]\n'
        'junit-api = { module = "org.junit.jupiter:junit-jupiter", version.ref = "junit" }\n'
        'assertj = "org.assertj:assertj-core:3.24.2"\n[bundles]\ntesting = ["junit-api", "assertj"]\n'
    ),
    "build.gradle": (
        "plugins { id 'com.example.publish' version '1.0' apply false }\n"
        "ext { slf4j = '2.0.7' }\n"
        "subprojects {\n    apply plugin: 'java-library'\n    apply plugin: 'checkstyle'\n"
        "    sourceCompatibility = JavaVersion.VERSION_1_8\n"
        "    dependencies {\n        testImplementation libs.bundles.testing  // of the catalog\n"
        "        testRuntimeOnly 'org.junit.platform:junit-platform-launcher'\n    }\n"
        "    test {\n        useJUnitPlatform { excludeTags 'slow' }\n        jvmArgs '-Xmx1g', '-Dx=y'\n"
        "        systemProperty 'kind', 'unit'\n    }\n}\n"
    ),
    "core/build.gradle": (
        "dependencies {\n"
        '    api "com.fasterxml.jackson.core:jackson-core:$jacksonVersion"\n'
        "    implementation(\"org.slf4j:slf4j-api:${slf4j}\") {\n        exclude group: 'a.b', module: 'c'\n    }\n"
        "    compileOnly group: 'com.google.code.findbugs', name: 'jsr305', version: '3.0.2'\n"
        "    // implementation 'never:read:1'\n"
        "    constraints {\n        implementation 'org.slf4j:slf4j-simple:2.0.7'\n    }\n}\n"
        "compileJava { options.compilerArgs += ['-parameters', '-Xlint:all'] }\n"
        "task other(type: JavaCompile) { options.compilerArgs = ['--release', '9'] }\n"
    ),
    "core/src/main/java/a/A.java": "package a;\n\npublic class A { }\n",
    "core/src/test/java/a/ATest.java": TEST.format(name="ATest"),
    "tools/tool/build.gradle": (
        "dependencies {\n    implementation project(':core')\n"
        "    testImplementation project(':core').sourceSets.test.output\n"
        "    annotationProcessor 'org.immutables:value:2.9.3'\n    jmh 'a:b:1'\n}\n"
    ),
    "tools/tool/src/test/java/b/BTest.java": TEST.format(name="BTest"),
}

KOTLIN_SCRIPTS = WRAPPER | {
    "settings.gradle.kts": 'rootProject.name = "one"\n',
    "buildSrc/src/main/kotlin/shared.gradle.kts": "plugins { `java-library` }\ntasks.test { useJUnitPlatform() }\n",
    "build.gradle.kts": (
        'val ktor by extra("2.3.0")\n'
        'plugins {\n    kotlin("jvm") version "1.9.10"\n    kotlin("plugin.serialization") version "1.9.10"\n'
        '    id("shared")\n    `maven-publish`\n}\n'
        "kotlin { jvmToolchain(17) }\n"
        "dependencies {\n"
        '    implementation(platform("io.ktor:ktor-bom:$ktor"))\n    implementation("io.ktor:ktor-utils")\n'
        '    testImplementation(kotlin("test"))\n}\n'
    ),
    "src/main/kotlin/a/A.kt": "package a\n\nclass A\n",
    "src/test/kotlin/a/ATest.kt": "package a\n\nclass ATest {\n    @kotlin.test.Test\n    fun works() { }\n}\n",
}


def run_translation(tmp_path: Path, files: Mapping[str, str]) -> GradleTranslation:
    build = read_gradle(build_tree(tmp_path, files), ())
    assert build is not None
    return translate(build, "/testbed")


def parse(translation: GradleTranslation, path: str) -> ET.Element:
    root = ET.fromstring(dict(translation.poms)[path])  # noqa: S314 - our own
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
    return root


def list_dependencies(root: ET.Element, at: str = "dependencies/dependency") -> set[str]:
    names = ("artifactId", "version", "type", "scope")
    return {" ".join(text for name in names if (text := node.findtext(name))) for node in root.findall(at)}


def test_groovy_scripts_of_several_projects_become_poms(tmp_path: Path) -> None:
    translation = run_translation(tmp_path, GROOVY)
    assert [path for path, _ in translation.poms] == ["pom.xml", "core/pom.xml", "tools/tool/pom.xml"]
    assert [node.text for node in parse(translation, "pom.xml").iter("module")] == ["core", "tools/tool"]
    core, tool = parse(translation, "core/pom.xml"), parse(translation, "tools/tool/pom.xml")
    shared = {"junit-jupiter 5.9.1 test", "assertj-core 3.24.2 test"}
    assert list_dependencies(core) == shared | {
        "jackson-core 2.15.0 compile", "slf4j-api 2.0.7 compile", "jsr305 3.0.2 provided"
    }  # fmt: skip
    assert list_dependencies(core, "dependencyManagement/dependencies/dependency") == {"slf4j-simple 2.0.7 compile"}
    assert [node.findtext("artifactId") for node in core.iter("exclusion")] == ["c"]
    assert list_dependencies(tool) == shared | {"core 1 compile", "core 1 test-jar test", "value 2.9.3 provided"}
    assert [node.text for node in core.iter("arg")] == ["-parameters", "-proc:none"]
    assert [node.text for node in tool.iter("arg")] == []  # its processor runs
    assert core.findtext(".//source") == "1.8"
    surefire = core.findall(".//configuration")[-1]
    assert (surefire.findtext("argLine"), surefire.findtext("excludedGroups")) == ("-Xmx1g -Dx=y", "slow")
    assert surefire.findtext("systemPropertyVariables/kind") == "unit"
    assert [(evidence.value, evidence.path, evidence.line) for evidence in translation.evidence] == [
        ("checkstyle", "build.gradle", 5)
    ]


def test_kotlin_scripts_become_poms(tmp_path: Path) -> None:
    translation = run_translation(tmp_path, KOTLIN_SCRIPTS)
    root = parse(translation, "_root/pom.xml")
    assert list_dependencies(root) == {
        "ktor-utils compile", "kotlin-test-junit5 1.9.10 test", "kotlin-stdlib 1.9.10 compile"
    }  # fmt: skip
    assert list_dependencies(root, "dependencyManagement/dependencies/dependency") == {"ktor-bom 2.3.0 pom import"}
    plugin = next(node for node in root.iter("plugin") if node.findtext("artifactId") == "kotlin-maven-plugin")
    assert (plugin.findtext("version"), plugin.findtext("configuration/jvmTarget")) == ("1.9.10", "17")
    assert [node.text for node in plugin.iter("plugin") if node.text] == ["kotlinx-serialization"]
    assert [evidence.value for evidence in translation.evidence] == ["maven-publish"]


@pytest.mark.parametrize(
    ("script", "obstacle"),
    [
        (
            "plugins {\n    id 'com.google.protobuf' version '0.9'\n}",
            "core/build.gradle:2: plug-in com.google",
        ),
        ("dependencies {\n\n    api findLibrary('a')\n}", "core/build.gradle:3: the dependency `findLibrary('a')`"),
        ("dependencies { api 'a:b:1.+' }", "core/build.gradle:1: the dependency `'a:b:1.+'`"),
        ("dependencies { api files('a.jar') }", "core/build.gradle:1: the dependency `files('a.jar')`"),
        ("dependencies { api 'a:b' }", "core/build.gradle:1: a:b has no version"),
        ("dependencies { api project(':far') }", "core/build.gradle:1: project(':far') is not in the settings"),
    ],
)
def test_what_has_no_equivalent_is_named(script: str, obstacle: str, tmp_path: Path) -> None:
    translation = run_translation(tmp_path, GROOVY | {"core/build.gradle": script + "\n"})
    assert translation.obstacle.startswith(obstacle)
    assert translation.poms == ()  # the other module needs this one


def test_modules_without_an_equivalent_are_left_out_if_the_change_does_not_need_them(tmp_path: Path) -> None:
    files = GROOVY | {"tools/tool/build.gradle": "dependencies { api 'a:b' }\n"}
    tree = build_tree(tmp_path, files)
    draft = JAVA.create_draft(tree, build_context("core/src/main/java/a/A.java"))
    plan = JAVA.render_plan(replace(draft, switches=draft.switches | {MAVEN_TRANSLATION}))
    left_out = next(evidence for evidence in plan.evidence if evidence.choice == "module")
    assert (left_out.value, left_out.note) == (":tool", "left out: tools/tool/build.gradle:1: a:b has no version")
    assert JAVA.find_test_files(tree, plan) == ["core/src/test/java/a/ATest.java"]
    draft = JAVA.create_draft(tree, build_context("tools/tool/src/main/java/b/B.java"))
    assert select_translation(replace(draft, switches=draft.switches | {DEBIAN_PACKAGES})).switches == {
        DEBIAN_PACKAGES, "whole"
    }  # fmt: skip


def test_the_test_suite_of_gradles_own_plugin_is_read(tmp_path: Path) -> None:
    script = (
        "def junit_version = '5.10.0'\ndependencies {\n    api 'a:b:1'\n}\n"
        "testing {\n    suites {\n        test {\n"
        "            useJUnitJupiter(junit_version)\n            dependencies {\n"
        "                implementation project()\n"
        "                implementation 'org.awaitility:awaitility:4.2.0'\n            }\n        }\n"
        "        integrationTest { dependencies { implementation 'c:d:1' } }\n    }\n}\n"
    )
    files = {"build.gradle": script, "src/main/java/a/A.java": ""}
    root = parse(run_translation(tmp_path / "one", files), "_root/pom.xml")
    assert list_dependencies(root) == {"b 1 compile", "junit-jupiter 5.10.0 test", "awaitility 4.2.0 test"}
    files["build.gradle"] = script.replace("(junit_version)", "()")
    obstacle = run_translation(tmp_path / "two", files).obstacle
    assert obstacle == "build.gradle:8: org.junit.jupiter:junit-jupiter has no version"  # Gradle's own default


def test_a_catalog_may_be_declared_in_the_settings(tmp_path: Path) -> None:
    settings = (
        'dependencyResolutionManagement {\n    versionCatalogs {\n        create("deps") {\n'
        '            version("log", "2.0")\n            val ktor = "2.3"\n'
        '            library("ktor-utils", "io.ktor:ktor-utils:$ktor")\n'
        '            library("log", "a.b", "log").versionRef("log")\n        }\n    }\n}\n'
    )
    script = (
        "plugins { `java-library` }\ndependencies {\n    api(deps.ktor.utils)\n    testImplementation(deps.log)\n}\n"
    )
    files = {"settings.gradle.kts": settings, "build.gradle.kts": script, "src/main/java/a/A.java": ""}
    root = parse(run_translation(tmp_path, files), "_root/pom.xml")
    assert list_dependencies(root) == {"ktor-utils 2.3 compile", "log 2.0 test"}


def create_draft(tmp_path: Path, files: Mapping[str, str], *changed_paths: str) -> PlanDraft:
    return JAVA.create_draft(build_tree(tmp_path, files), build_context(*changed_paths))


def test_the_step_of_the_distribution_names_its_substitute(tmp_path: Path) -> None:
    old = {path: text.replace("8.5", "4.9") for path, text in WRAPPER.items()}
    cases = {
        "Gradle 8.5 is out of reach from here, Maven Central is not: switch maven-translation": GROOVY,
        "Gradle 4.9 is out of reach from here, Debian is not: switch debian-packages": GROOVY | old,
        "Gradle 8.5 is out of reach from here, and no poms can take its place: core/build.gradle:1: a:b": GROOVY
        | {"core/build.gradle": "dependencies { api 'a:b' }\n"},
    }
    for number, (message, files) in enumerate(cases.items()):
        plan = JAVA.render_plan(create_draft(tmp_path / str(number), files))
        assert message in plan.dependency_steps[0]
        assert plan.test.framework == "gradle"


def test_the_plan_of_a_translation_runs_maven(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, GROOVY)
    draft = JAVA.create_draft(tree, build_context("tools/tool/src/main/java/b/B.java"))
    plan = JAVA.render_plan(replace(draft, switches=draft.switches | {MAVEN_TRANSLATION}))
    assert plan.test.framework == "maven"
    assert plan.test.argv == ("mvn", "-B", "-ntp", "-f", "/opt/translated/pom.xml", "test")
    assert "cat > /opt/translated/tools/tool/pom.xml" in "".join(plan.dependency_steps)
    assert "MAVEN_OPTS" in dict(plan.env)
    assert "GRADLE_OPTS" not in dict(plan.env)
    assert plan.evidence[2].note == "poms of what the scripts declare, without Gradle 8.5"
    tests = ["core/src/test/java/a/ATest.java", "tools/tool/src/test/java/b/BTest.java"]
    assert JAVA.find_test_files(tree, plan) == tests
    changed = JAVA.render_plan(replace(draft, switches=frozenset({MAVEN_TRANSLATION})))
    assert "-pl tools/tool -am" in changed.source_steps[0]
    assert JAVA.find_test_files(tree, changed) == tests[1:]
    draft = JAVA.create_draft(tree, build_context("settings.gradle", "buildSrc/src/main/groovy/a.gradle"))
    changed = JAVA.render_plan(replace(draft, switches=frozenset({MAVEN_TRANSLATION})))
    assert "-pl" not in changed.source_steps[0]  # nothing of the change is in a module that has a pom
    assert JAVA.find_test_files(tree, changed) == tests


def test_a_translation_replaces_a_gradle_that_is_too_old(tmp_path: Path) -> None:
    draft = create_draft(tmp_path, GROOVY)
    assert select_translation(draft) == draft
    debian = replace(draft, switches=draft.switches | {DEBIAN_PACKAGES})
    assert MAVEN_TRANSLATION in select_translation(debian).switches


def test_kotlin_stubs_are_compiled_for_a_translation(tmp_path: Path) -> None:
    draft = KOTLIN.create_draft(build_tree(tmp_path, KOTLIN_SCRIPTS), build_context())
    plan = KOTLIN.render_plan(replace(draft, switches=draft.switches | {MAVEN_TRANSLATION}))
    assert "src/test/kotlin" in "".join(plan.dependency_steps)


def test_selected_test_files_of_a_translation_run_in_their_own_modules(tmp_path: Path) -> None:
    poms = dict(run_translation(tmp_path, GROOVY).poms)
    tree = write(tmp_path / "tree", {"tools/tool/src/test/java/b/BTest.java": "", "src/test/java/a/ATest.java": ""})
    write(tmp_path / "poms", poms)
    options = select(tree, "tools/tool/src/test/java/b/BTest.java", poms=tmp_path / "poms")
    assert options == ["-Dtest=BTest", "-pl", "tools/tool", "-am"]
    write(tmp_path / "poms", {"_root/pom.xml": ""})
    assert select(tree, "src/test/java/a/ATest.java", poms=tmp_path / "poms")[1:] == ["-pl", "_root", "-am"]
