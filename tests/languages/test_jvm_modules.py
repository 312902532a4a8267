"""Maven trees of several modules: reactors without a pom at the root, parents, profiles, and what a run selects."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from core.templates import make_environment
from languages.draft import PlanDraft
from languages.java import JAVA
from languages.jvm.frameworks import FRAMEWORKS
from languages.jvm.plan import select_changed_modules
from tests.languages.test_jvm import TEST, build_context, build_pom
from tests.languages.trees import build_tree

PARENT = "<parent><groupId>a</groupId><artifactId>{name}</artifactId><version>1-SNAPSHOT</version>{path}</parent>"
AGGREGATOR = "<packaging>pom</packaging><modules>{modules}</modules>"


def name_modules(*names: str) -> str:
    return AGGREGATOR.format(modules="".join(f"<module>{name}</module>" for name in names))


def create_draft(tmp_path: Path, files: dict[str, str], *changed_paths: str) -> PlanDraft:
    return JAVA.create_draft(build_tree(tmp_path, files), build_context(*changed_paths))


SIBLINGS = {
    "build/pom.xml": build_pom("build", name_modules("../core", "../extra")),
    "core/pom.xml": build_pom("core", parent=PARENT.format(name="build", path="<relativePath>../build</relativePath>")),
    "core/src/test/java/a/ATest.java": TEST.format(name="ATest"),
    "extra/pom.xml": build_pom("extra"),
    "extra/src/test/java/a/BTest.java": TEST.format(name="BTest"),
}


def test_a_reactor_may_list_folders_next_to_its_own(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, SIBLINGS)
    draft = JAVA.create_draft(tree, build_context("core/src/main/java/a/A.java"))
    plan = JAVA.render_plan(draft)
    assert (plan.test.folder, draft.test.paths) == ("build", ("core",))
    assert {path for path, _ in plan.manifests} == {"build/pom.xml", "core/pom.xml", "extra/pom.xml"}
    assert JAVA.find_test_files(tree, plan) == ["core/src/test/java/a/ATest.java", "extra/src/test/java/a/BTest.java"]
    assert "-pl ../core -am" in JAVA.render_plan(select_changed_modules(draft)).source_steps[0]


def test_the_root_is_not_built_for_a_change_that_it_does_not_contain(tmp_path: Path) -> None:
    files = {
        "pom.xml": build_pom("top"),
        "src/test/java/a/CTest.java": TEST.format(name="CTest"),
        "tool/pom.xml": build_pom("tool"),
        "tool/src/test/java/a/ATest.java": TEST.format(name="ATest"),
    }
    tree = build_tree(tmp_path, files)
    for changed, folder in (("tool/src/main/java/a/A.java", "tool"), ("src/main/java/a/C.java", ""), ("README", "")):
        plan = JAVA.render_plan(JAVA.create_draft(tree, build_context(changed)))
        assert plan.test.folder == folder
        assert len(JAVA.find_test_files(tree, plan)) == 1


def test_the_dependency_layer_has_parents_that_are_no_modules(tmp_path: Path) -> None:
    files = {
        "pom.xml": build_pom("top", name_modules("core")),
        "core/pom.xml": build_pom(
            "core", parent=PARENT.format(name="base", path="<relativePath>../build/base.xml</relativePath>")
        ),
        "core/src/test/java/a/ATest.java": TEST.format(name="ATest"),
        "build/base.xml": build_pom("base", parent=PARENT.format(name="settings", path="")),
        "pom-other.xml": build_pom("other"),
    }
    manifests = {path for path, _ in create_draft(tmp_path, files).manifests}
    assert manifests == {"pom.xml", "core/pom.xml", "build/base.xml"}


PROFILES = (
    "<packaging>pom</packaging><modules><module>core</module></modules><profiles>"
    "<profile><id>slow</id><modules><module>slow</module></modules></profile>"
    "<profile><id>usual</id><activation><activeByDefault>true</activeByDefault></activation>"
    "<modules><module>usual</module></modules></profile></profiles>"
)


def test_a_profile_is_activated_only_for_changes_of_its_modules(tmp_path: Path) -> None:
    files = {"pom.xml": build_pom("top", PROFILES)}
    for name in ("core", "slow", "usual"):
        files[f"{name}/pom.xml"] = build_pom(name)
        files[f"{name}/src/test/java/a/ATest.java"] = TEST.format(name="ATest")
    tree = build_tree(tmp_path, files)
    plan = JAVA.render_plan(JAVA.create_draft(tree, build_context("core/src/main/java/a/A.java")))
    assert plan.test.argv == ("mvn", "-B", "-ntp", "test")
    assert JAVA.find_test_files(tree, plan) == ["core/src/test/java/a/ATest.java", "usual/src/test/java/a/ATest.java"]
    plan = JAVA.render_plan(JAVA.create_draft(tree, build_context("slow/src/main/java/a/A.java")))
    assert plan.test.argv == ("mvn", "-B", "-ntp", "-P", "slow,usual", "test")
    assert len(JAVA.find_test_files(tree, plan)) == 3
    assert "mvn -B -ntp -P slow,usual" in plan.source_steps[0]
    assert [evidence.value for evidence in plan.evidence if evidence.value.startswith("-P")] == ["-P slow", "-P usual"]


@pytest.mark.parametrize(
    ("activation", "is_built"),
    [
        ("<name>!release</name>", True),
        ("<name>release</name><value>!true</value>", True),
        ("<name>release</name><value>true</value>", False),
    ],
)
def test_a_profile_is_active_while_nobody_sets_its_property(activation: str, is_built: bool, tmp_path: Path) -> None:
    profile = (
        f"<profile><id>usual</id><activation><property>{activation}</property></activation>"
        "<modules><module>more</module></modules></profile>"
    )
    files = {"pom.xml": build_pom("top", f"{name_modules('core')}<profiles>{profile}</profiles>")}
    files |= {f"{name}/pom.xml": build_pom(name) for name in ("core", "more")}
    files["core/src/test/java/a/ATest.java"] = TEST.format(name="ATest")
    manifests = {path for path, _ in create_draft(tmp_path, files).manifests}
    assert manifests == {"pom.xml", "core/pom.xml"} | ({"more/pom.xml"} if is_built else set())


def test_tests_that_a_build_skips_by_a_property_run(tmp_path: Path) -> None:
    files = {
        "pom.xml": build_pom("top", "\n<properties><skipTests>true</skipTests></properties>"),
        "src/test/java/a/ATest.java": TEST.format(name="ATest"),
    }
    plan = JAVA.render_plan(create_draft(tmp_path, files))
    assert plan.test.argv == ("mvn", "-B", "-ntp", "-DskipTests=false", "test")
    evidence = next(evidence for evidence in plan.evidence if evidence.value == "-DskipTests=false")
    assert (evidence.path, evidence.line) == ("pom.xml", 3)


def test_modules_that_the_change_does_not_need_can_be_given_up(tmp_path: Path) -> None:
    files = {"pom.xml": build_pom("top", name_modules("core", "native"))}
    for name in ("core", "native"):
        files[f"{name}/pom.xml"] = build_pom(name)
        files[f"{name}/src/test/java/a/ATest.java"] = TEST.format(name="ATest")
    draft = create_draft(tmp_path, files, "core/src/main/java/a/A.java")
    assert "-pl" not in JAVA.render_plan(draft).source_steps[0]
    plan = JAVA.render_plan(select_changed_modules(draft))
    assert plan.test.paths == ("core",)
    assert all("-pl core -am" in step for step in (plan.source_steps[0], plan.dependency_steps[1]))
    rootless = create_draft(tmp_path / "other", files)
    assert select_changed_modules(rootless) == rootless


def select(
    tree: Path, *files: str, folder: str = "", paths: tuple[str, ...] = (), poms: Path | None = None
) -> list[str]:
    """Return the options by which Maven's shell selects modules and classes for these test files."""
    framework = next(framework for framework in FRAMEWORKS if framework.name == "maven")
    template = make_environment(lambda _name: None, comment_marks=("<#", "#>")).from_string(framework.shell)
    argv = ("mvn", "-f", "pom.xml") if poms else ("mvn",)
    shell = template.render(argv=argv, paths=paths, folder=folder).replace("/opt/translated", str(poms))
    script = f"out=/tmp\narguments=({shlex.join(files)})\n{shell}\nprintf '%s\\n' \"${{selection[@]}}\""
    process = subprocess.run(["bash", "-eu", "-c", script], cwd=tree, capture_output=True, text=True, check=True)
    return [word for word in process.stdout.splitlines() if not word.startswith(("-DfailIf", "-Dsurefire"))]


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_selected_test_files_run_in_their_own_modules(tmp_path: Path) -> None:
    nested = {
        "pom.xml": build_pom("top", name_modules("modules/one", "./two")),
        "modules/one/pom.xml": build_pom("one"),
        "two/pom.xml": build_pom("two"),
        "loose/pom.xml": build_pom("loose"),
    }
    tree = write(tmp_path / "nested", nested)
    first, two, loose = (f"{name}/src/test/java/a/ATest.java" for name in ("modules/one", "two", "loose"))
    assert select(tree, first) == ["-Dtest=ATest", "-pl", "modules/one", "-am"]
    assert select(tree, first, two) == ["-Dtest=ATest,ATest", "-pl", "modules/one,two", "-am"]
    assert select(tree, first, loose) == ["-Dtest=ATest,ATest"]  # of a module that no pom lists: everything is searched
    siblings = write(tmp_path / "siblings", SIBLINGS)
    file = "core/src/test/java/a/ATest.java"
    assert select(siblings, file, folder="build") == ["-Dtest=ATest", "-pl", "../core", "-am"]
    assert select(siblings, folder="build", paths=("core", "extra")) == ["-pl", "../core,../extra", "-am"]
    assert select(siblings, "other/src/test/java/a/BTest.java", file, folder="build")[0] == "-Dtest=ATest"
