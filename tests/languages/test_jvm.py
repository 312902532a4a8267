"""What Maven's poms say, the choice of the JDK, the files that Surefire takes in, and the trust store of builds."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from builders.borrowed import java_trust_store, over
from languages import java
from languages.draft import Context, NoPlanError
from languages.jvm import versions
from languages.jvm.gradle import newest_jdk
from languages.jvm.poms import read_reactor
from languages.paths import is_test_path
from languages.scripting.debian import DEBIAN_PACKAGES
from taskdb.records import Evidence
from tests.languages.trees import tree_of

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
{parent}<groupId>a</groupId><artifactId>{name}</artifactId><version>1-SNAPSHOT</version>{rest}</project>
"""
TEST = "package a;\n\nclass {name} {{\n    @org.junit.Test public void works() {{ }}\n}}\n"


def pom(name: str, rest: str = "", parent: str = "") -> str:
    return POM.format(name=name, rest=rest, parent=parent)


def context(*touched: str) -> Context:
    return Context(available=lambda: ("8", "11", "17", "21"), day=date(2024, 6, 1), touched=touched)


def said(version: str, path: str = "ci.yml") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=1)


def test_a_pom_with_entities_is_not_read(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE p [<!ENTITY a "a">]>' + pom("top")
    assert read_reactor(tree_of(tmp_path, {"pom.xml": bomb})) is None


def test_modules_are_found_and_poms_of_test_data_are_not(tmp_path: Path) -> None:
    files = {
        "pom.xml": pom("top", "<packaging>pom</packaging><modules><module>one</module></modules>"),
        "one/pom.xml": pom("one"),
        "one/src/test/resources/broken/pom.xml": pom("data"),
    }
    reactor = read_reactor(tree_of(tmp_path, files))
    assert reactor is not None
    assert reactor.modules() == ["one"]
    assert reactor.module_of("one/src/main/java/A.java") == "one"


def test_snapshots_outside_the_tree_are_taken_as_released(tmp_path: Path) -> None:
    parent = "<parent><groupId>up</groupId><artifactId>base</artifactId><version>2.1-SNAPSHOT</version></parent>"
    files = {"pom.xml": pom("top", parent=parent), "src/test/java/a/ATest.java": TEST.format(name="ATest")}
    made = java.draft(tree_of(tmp_path, files), context())
    assert any("-Dartifact=up:base:2.1:pom" in step for step in made.dependency_steps)
    assert [one.value for one in made.evidence if one.note.startswith("taken as it was released")] == ["up:base:2.1"]


@pytest.mark.parametrize(
    ("tested", "levels", "day", "first"),
    [
        (["8", "11", "17", "21"], ["8"], date(2024, 6, 1), "17"),  # 21 is too young
        (["8"], ["6"], date(2015, 6, 1), "8"),
        ([], ["17"], date(2024, 6, 1), "17"),
        ([], ["8"], date(2024, 6, 1), "8"),
        ([], [], date(2025, 6, 1), "21"),
        (["23"], ["21"], date(2024, 6, 1), "21"),
    ],
)
def test_the_jdk_is_the_newest_settled_one_that_ci_tests_else_that_of_the_level(
    tested: list[str], levels: list[str], day: date, first: str
) -> None:
    found = versions.candidates([said(v) for v in tested], [said(v, "pom.xml") for v in levels], java_versions(), day)
    assert found[0].value == first


def java_versions() -> list[str]:
    return [release.version for release in java.RELEASES]


def test_a_build_that_is_not_known_is_refused_with_the_reason(tmp_path: Path) -> None:
    files = {"build.sbt": 'name := "a"\n', "src/test/java/a/ATest.java": TEST.format(name="ATest")}
    with pytest.raises(NoPlanError, match=r"sbt \(build\.sbt\) is not supported"):
        java.draft(tree_of(tmp_path, files), context())


def test_only_what_surefire_takes_in_must_be_collected(tmp_path: Path) -> None:
    excluded = (
        "<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><configuration><excludes>"
        "<exclude>**/slow/*.java</exclude></excludes></configuration></plugin></plugins></build>"
    )
    files = {
        "pom.xml": pom("top", excluded),
        "src/test/java/a/ATest.java": TEST.format(name="ATest"),
        "src/test/java/a/AIT.java": TEST.format(name="AIT"),
        "src/test/java/a/slow/BTest.java": TEST.format(name="BTest"),
        "src/test/java/a/BaseTest.java": "package a;\n\n@Test\npublic abstract class BaseTest {\n}\n",
        "src/test/java/a/AllTests.java": "@RunWith(Suite.class)\n@SuiteClasses({ATest.class})\nclass AllTests { }\n",
        "src/main/java/a/Test.java": "package a;\n\npublic @interface Test { }\n",
    }
    tree = tree_of(tmp_path, files)
    plan = java.render(java.draft(tree, context()))
    assert java.defining_files(tree, plan) == ["src/test/java/a/ATest.java"]
    assert "src/test/java/a/AIT.java" in java.defining_files(tree)


def test_many_modules_are_cut_down_to_those_of_the_change(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(12)]
    listed = "".join(f"<module>{name}</module>" for name in names)
    files = {"pom.xml": pom("top", f"<packaging>pom</packaging><modules>{listed}</modules>")}
    for name in names:
        files[f"{name}/pom.xml"] = pom(name)
        files[f"{name}/src/test/java/a/ATest.java"] = TEST.format(name="ATest")
    plan = java.render(java.draft(tree_of(tmp_path, files), context("m3/src/main/java/a/A.java")))
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
def test_source_sets_tell_tests_from_sources(path: str, is_test: bool) -> None:
    assert is_test_path(path) is is_test


def test_java_reads_the_trust_store(tmp_path: Path) -> None:
    bundle, keytool = Path("/etc/ssl/certs/ca-certificates.crt"), shutil.which("keytool")
    if keytool is None or not bundle.is_file():
        pytest.skip("needs a JDK and a CA bundle")
    content = bundle.read_bytes()
    store = tmp_path / "ca.jks"
    store.write_bytes(java_trust_store(content))
    said = subprocess.run(
        [keytool, "-list", "-keystore", str(store), "-storepass", "changeit"],
        capture_output=True, text=True, check=True, env={"JAVA_TOOL_OPTIONS": "", "LANG": "C"},
    )  # fmt: skip
    assert f"contains {content.count(b'BEGIN CERTIFICATE')} entr" in said.stdout


def test_a_plan_s_options_of_java_do_not_take_the_trust_store_away() -> None:
    lent = {"JAVA_TOOL_OPTIONS": "-Dlent=1", "UV_CACHE_DIR": "/a"}
    own = {"JAVA_TOOL_OPTIONS": "-Down=1", "UV_CACHE_DIR": "/b"}
    assert over(lent, own) == {"JAVA_TOOL_OPTIONS": "-Dlent=1 -Down=1", "UV_CACHE_DIR": "/b"}
    assert over(lent, {}) == lent
    assert over({}, {"TZ": "UTC"}) == {"TZ": "UTC"}


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


def test_a_gradle_build_takes_the_distribution_that_its_wrapper_names(tmp_path: Path) -> None:
    files = GRADLE | {"gradle/wrapper/gradle-wrapper.properties": WRAPPER}
    tree = tree_of(tmp_path, files)
    made = java.draft(tree, context())
    plan = java.render(made)
    assert (plan.test.framework, plan.test.argv) == ("gradle", ("/opt/gradle-distribution/bin/gradle",))
    assert "'https://builds.example/gradle-7.2-bin.zip'" in plan.dependency_steps[0]
    assert f'wanted = "{"ab" * 32}"' in plan.dependency_steps[0]
    assert plan.language_version == "11"  # as the toolchain says; 7.2 runs on nothing after 16
    assert {path for path, _ in plan.manifests} == {
        "build.gradle.kts", "core/build.gradle.kts", "gradle/wrapper/gradle-wrapper.properties", "settings.gradle.kts",
    }  # fmt: skip
    assert java.defining_files(tree, plan) == ["core/src/test/java/a/ATest.java"]
    instead = java.render(replace(made, switches=made.switches | {DEBIAN_PACKAGES}))
    assert instead.test.argv == ("gradle",)
    assert "install" in instead.dependency_steps[0]


def test_without_a_wrapper_debian_s_gradle_is_taken(tmp_path: Path) -> None:
    assert java.render(java.draft(tree_of(tmp_path, GRADLE), context())).test.argv == ("gradle",)


@pytest.mark.parametrize(
    ("gradle", "jdk"), [("4.10.2", 10), ("6.9", 15), ("7.2", 16), ("8.14", 23), ("9.1.0", 25), ("1.9", 8)]
)
def test_a_gradle_runs_on_no_jdk_that_came_later(gradle: str, jdk: int) -> None:
    assert newest_jdk(gradle) == jdk
