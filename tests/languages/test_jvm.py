"""Maven poms, selection of the JDK, files that Surefire includes, Gradle builds, and the trust store of builds."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from builders.host_settings import build_java_trust_store, merge_env
from languages.draft import NoPlanError, PlanningContext
from languages.java import JAVA
from languages.jvm import versions
from languages.jvm.gradle import select_newest_jdk
from languages.jvm.poms import read_reactor
from languages.paths import is_test_path
from languages.scripting.debian import DEBIAN_PACKAGES
from taskdb.records import Evidence
from tests.languages.trees import build_tree

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
{parent}<groupId>a</groupId><artifactId>{name}</artifactId><version>1-SNAPSHOT</version>{rest}</project>
"""
TEST = "package a;\n\nclass {name} {{\n    @org.junit.Test public void works() {{ }}\n}}\n"


def build_pom(name: str, rest: str = "", parent: str = "") -> str:
    return POM.format(name=name, rest=rest, parent=parent)


def build_context(*changed_paths: str) -> PlanningContext:
    return PlanningContext(
        list_available=lambda: ("8", "11", "17", "21"), day=date(2024, 6, 1), changed_paths=changed_paths
    )


def find_evidence(version: str, path: str = "ci.yml") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=1)


def test_a_pom_with_entities_is_not_read(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE p [<!ENTITY a "a">]>' + build_pom("top")
    assert read_reactor(build_tree(tmp_path, {"pom.xml": bomb})) is None


def test_poms_of_test_data_are_not_modules(tmp_path: Path) -> None:
    files = {
        "pom.xml": build_pom("top", "<packaging>pom</packaging><modules><module>one</module></modules>"),
        "one/pom.xml": build_pom("one"),
        "one/src/test/resources/broken/pom.xml": build_pom("data"),
    }
    reactor = read_reactor(build_tree(tmp_path, files))
    assert reactor is not None
    assert reactor.list_code_modules() == ["one"]
    assert reactor.find_module("one/src/main/java/A.java") == "one"


def test_snapshots_outside_the_tree_are_replaced_by_their_releases(tmp_path: Path) -> None:
    parent = "<parent><groupId>up</groupId><artifactId>base</artifactId><version>2.1-SNAPSHOT</version></parent>"
    files = {"pom.xml": build_pom("top", parent=parent), "src/test/java/a/ATest.java": TEST.format(name="ATest")}
    draft = JAVA.create_draft(build_tree(tmp_path, files), build_context())
    assert any("-Dartifact=up:base:2.1:pom" in step for step in JAVA.render_plan(draft).dependency_steps)
    assert [evidence.value for evidence in draft.evidence if evidence.note.startswith("replaced by its release")] == [
        "up:base:2.1"
    ]


@pytest.mark.parametrize(
    ("tested", "levels", "day", "first"),
    [
        (["8", "11", "17", "21"], ["8"], date(2024, 6, 1), "17"),  # 21 was released too recently
        (["8"], ["6"], date(2015, 6, 1), "8"),
        ([], ["17"], date(2024, 6, 1), "17"),
        ([], ["8"], date(2024, 6, 1), "8"),
        ([], [], date(2025, 6, 1), "21"),
        (["23"], ["21"], date(2024, 6, 1), "21"),
    ],
)
def test_the_newest_mature_jdk_in_ci_is_selected_else_the_one_of_the_language_level(
    tested: list[str], levels: list[str], day: date, first: str
) -> None:
    ranked = versions.rank_versions(
        [find_evidence(v) for v in tested], [find_evidence(v, "pom.xml") for v in levels], java_versions(), day
    )
    assert ranked[0].value == first


@pytest.mark.parametrize(
    ("rest", "first"),
    [
        ("<properties><maven.compiler.release>8</maven.compiler.release></properties>", "11"),
        ("<properties><maven.compiler.source>8</maven.compiler.source></properties>", "8"),
        (
            "<properties><level>11</level></properties><build><plugins><plugin><release>${level}</release></plugin></plugins></build>",
            "11",
        ),
        (
            (
                "<properties><maven.compiler.source>8</maven.compiler.source></properties><profiles><profile>"
                "<activation><jdk>[9,)</jdk></activation><properties><maven.compiler.release>8</maven.compiler.release>"
                "</properties></profile></profiles>"
            ),
            "8",
        ),
    ],
)
def test_the_option_release_needs_a_jdk_that_knows_it(rest: str, first: str, tmp_path: Path) -> None:
    files = {"pom.xml": build_pom("top", rest), "src/test/java/a/ATest.java": TEST.format(name="ATest")}
    draft = JAVA.create_draft(build_tree(tmp_path, files), build_context())
    assert draft.versions[0].value == first


def java_versions() -> list[str]:
    return [release.version for release in JAVA.releases]


def test_an_unsupported_build_tool_is_rejected_with_its_name(tmp_path: Path) -> None:
    files = {"build.sbt": 'name := "a"\n', "src/test/java/a/ATest.java": TEST.format(name="ATest")}
    with pytest.raises(NoPlanError, match=r"sbt \(build\.sbt\) is not supported"):
        JAVA.create_draft(build_tree(tmp_path, files), build_context())


def test_only_files_that_surefire_includes_are_expected(tmp_path: Path) -> None:
    excluded = (
        "<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><configuration><excludes>"
        "<exclude>**/slow/*.java</exclude></excludes></configuration></plugin></plugins></build>"
    )
    files = {
        "pom.xml": build_pom("top", excluded),
        "src/test/java/a/ATest.java": TEST.format(name="ATest"),
        "src/test/java/a/AIT.java": TEST.format(name="AIT"),
        "src/test/java/a/slow/BTest.java": TEST.format(name="BTest"),
        "src/test/java/a/BaseTest.java": "package a;\n\n@Test\npublic abstract class BaseTest {\n}\n",
        "src/test/java/a/AllTests.java": "@RunWith(Suite.class)\n@SuiteClasses({ATest.class})\nclass AllTests { }\n",
        "src/main/java/a/Test.java": "package a;\n\npublic @interface Test { }\n",
    }
    tree = build_tree(tmp_path, files)
    plan = JAVA.render_plan(JAVA.create_draft(tree, build_context()))
    assert JAVA.find_test_files(tree, plan) == ["src/test/java/a/ATest.java"]
    assert "src/test/java/a/AIT.java" in JAVA.find_test_files(tree)


def test_of_a_suite_that_is_included_alone_the_listed_classes_are_expected(tmp_path: Path) -> None:
    plugin = (
        "<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><configuration><includes>"
        "<include>a/AllTests.java</include></includes></configuration></plugin></plugins></build>"
    )
    folder = "src/test/java/a"
    test = "import org.junit.Test;\nclass {} {{\n  @Test\n  void a() {{ Sample.class; }}\n}}\n"
    files = {f"{folder}/{name}.java": test.format(name) for name in ("FirstTest", "Second", "Sample", "Unlisted")}
    files |= {
        f"{folder}/AllTests.java": "@SuiteClasses({FirstTest.class, OldTests.class})\nclass AllTests { }\n",
        f"{folder}/OldTests.java": "class OldTests { public static Test suite() { s.addTestSuite(Second.class); } }\n",
    }
    tree = build_tree(tmp_path, {"pom.xml": build_pom("a", plugin)} | files)
    plan = JAVA.render_plan(JAVA.create_draft(tree, build_context()))
    assert JAVA.find_test_files(tree, plan) == [f"{folder}/FirstTest.java", f"{folder}/Second.java"]


@pytest.mark.parametrize("pattern", ["a.b.**", "a/b/*.java", "**/Checks*", "a.b.ChecksOfA"])
def test_surefires_patterns_may_be_class_names(pattern: str, tmp_path: Path) -> None:
    included = (
        "<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><configuration><includes>"
        f"<include>{pattern}</include></includes></configuration></plugin></plugins></build>"
    )
    files = {
        "pom.xml": build_pom("top", included),
        "src/test/java/a/b/ChecksOfA.java": TEST.format(name="ChecksOfA"),
        "src/test/java/a/BTest.java": TEST.format(name="BTest"),
    }
    tree = build_tree(tmp_path, files)
    plan = JAVA.render_plan(JAVA.create_draft(tree, build_context()))
    assert JAVA.find_test_files(tree, plan) == ["src/test/java/a/b/ChecksOfA.java"]


def test_of_many_modules_only_the_changed_ones_are_built(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(12)]
    modules = "".join(f"<module>{name}</module>" for name in names)
    files = {"pom.xml": build_pom("top", f"<packaging>pom</packaging><modules>{modules}</modules>")}
    for name in names:
        files[f"{name}/pom.xml"] = build_pom(name)
        files[f"{name}/src/test/java/a/ATest.java"] = TEST.format(name="ATest")
    plan = JAVA.render_plan(JAVA.create_draft(build_tree(tmp_path, files), build_context("m3/src/main/java/a/A.java")))
    assert plan.test.paths == ("m3",)
    assert all("-pl m3 -am" in step for step in plan.source_steps)


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("src/test/java/a/ATest.java", True),
        ("core/src/test/resources/a.json", True),
        ("core/src/integration-test/java/A.java", True),
        ("src/main/java/org/test/Thing.java", False),
        ("src/pytest_mock/plugin.py", False),
        ("src/main/java/junit/framework/TestCase.java", False),
    ],
)
def test_source_sets_distinguish_tests_from_sources(path: str, is_test: bool) -> None:
    assert is_test_path(path) is is_test


def test_java_reads_the_trust_store(tmp_path: Path) -> None:
    bundle, keytool = Path("/etc/ssl/certs/ca-certificates.crt"), shutil.which("keytool")
    if keytool is None or not bundle.is_file():
        pytest.skip("needs a JDK and a CA bundle")
    content = bundle.read_bytes()
    store = tmp_path / "ca.jks"
    store.write_bytes(build_java_trust_store(content))
    listing = subprocess.run(
        [keytool, "-list", "-keystore", str(store), "-storepass", "changeit"],
        capture_output=True,
        text=True,
        check=True,
        env={"JAVA_TOOL_OPTIONS": "", "LANG": "C"},
    )
    assert f"contains {content.count(b'BEGIN CERTIFICATE')} entr" in listing.stdout


def test_java_options_of_a_plan_do_not_replace_the_trust_store() -> None:
    host_env = {"JAVA_TOOL_OPTIONS": "-Dlent=1", "UV_CACHE_DIR": "/a"}
    own = {"JAVA_TOOL_OPTIONS": "-Down=1", "UV_CACHE_DIR": "/b"}
    assert merge_env(host_env, own) == {"JAVA_TOOL_OPTIONS": "-Dlent=1 -Down=1", "UV_CACHE_DIR": "/b"}
    assert merge_env(host_env, {}) == host_env
    assert merge_env({}, {"TZ": "UTC"}) == {"TZ": "UTC"}


GRADLE = {
    "settings.gradle.kts": 'include("core")\n',
    "build.gradle.kts": "java {\n    toolchain { languageVersion.set(JavaLanguageVersion.of(11)) }\n}\n",
    "core/build.gradle.kts": "",
    "core/src/main/java/a/A.java": "package a;\nclass A {}\n",
    "core/src/test/java/a/ATest.java": "package a;\nclass ATest {\n    @Test\n    void a() {}\n}\n",
    "core/src/jmh/java/a/BTest.java": "package a;\nclass BTest {\n    @Test\n    void b() {}\n}\n",
    "core/src/test/resources/sample/build.gradle": "apply plugin: 'java'\n",
}
WRAPPER = "distributionUrl=https\\://builds.example/gradle-7.2-bin.zip\ndistributionSha256Sum=" + "ab" * 32 + "\n"


def test_a_gradle_build_uses_the_distribution_of_its_wrapper(tmp_path: Path) -> None:
    files = GRADLE | {"gradle/wrapper/gradle-wrapper.properties": WRAPPER}
    tree = build_tree(tmp_path, files)
    draft = JAVA.create_draft(tree, build_context())
    plan = JAVA.render_plan(draft)
    assert (plan.test.framework, plan.test.argv) == ("gradle", ("/opt/gradle-distribution/bin/gradle",))
    assert "'https://builds.example/gradle-7.2-bin.zip'" in plan.dependency_steps[0]
    assert f'wanted = "{"ab" * 32}"' in plan.dependency_steps[0]
    assert plan.language_version == "11"  # from the toolchain block; 7.2 does not run on JDKs after 16
    assert {path for path, _ in plan.manifests} == {
        "build.gradle.kts",
        "core/build.gradle.kts",
        "gradle/wrapper/gradle-wrapper.properties",
        "settings.gradle.kts",
    }
    assert JAVA.find_test_files(tree, plan) == ["core/src/test/java/a/ATest.java"]
    debian_plan = JAVA.render_plan(replace(draft, switches=draft.switches | {DEBIAN_PACKAGES}))
    assert debian_plan.test.argv == ("gradle",)
    assert "install" in debian_plan.dependency_steps[0]


def test_without_a_wrapper_debians_gradle_is_used(tmp_path: Path) -> None:
    assert JAVA.render_plan(JAVA.create_draft(build_tree(tmp_path, GRADLE), build_context())).test.argv == ("gradle",)


@pytest.mark.parametrize(
    ("gradle", "jdk"), [("4.10.2", 10), ("6.9", 15), ("7.2", 16), ("8.14", 23), ("9.1.0", 25), ("1.9", 8)]
)
def test_an_old_gradle_does_not_run_on_newer_jdks(gradle: str, jdk: int) -> None:
    assert select_newest_jdk(gradle) == jdk
