"""Swift: manifests, versions and test files; reports of what does not compile in Swift and in .NET."""

from __future__ import annotations

import re
import shlex
import subprocess
from datetime import date
from pathlib import Path

import pytest

from core.templates import make_environment
from evaluation.reports import junit
from guest.harness.reports.core import ReportTree
from guest.harness.reports.declarations import DeclaredTypes
from guest.harness.reports.main import convert_report
from languages.base import Language
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.paths import is_config, is_protected, is_source
from languages.swift import SWIFT
from languages.swift.plan import find_project_folder
from tests.languages.trees import build_tree

MANIFEST = """// swift-tools-version:5.9
import PackageDescription
/* .package(url: "https://example.org/gone", from: "1.0.0"),
*/
let package = Package(
    name: "Kettle",
    dependencies: [
        // .package(url: "https://example.org/commented", from: "1.0.0"),
        .package(url: "https://example.org/mug.git", from: "1.0.0"),
        .package(name: "Pot", path: "Inner/Pot"),
    ],
    targets: [
        .systemLibrary(name: "CZ", providers: [.apt(["libz-dev"]), .brew(["zlib"])]),
        .testTarget(name: "KettleTests"),
    ]
)
"""
TEST = "import XCTest\nfinal class ATests: XCTestCase {\n    func testA() {}\n}\n"
SWIFT_FILES = {
    "Package.swift": MANIFEST,
    "Package@swift-5.7.swift": "// swift-tools-version:5.7\n",
    "Sources/Kettle/Kettle.swift": "func testing() {}\n",
    "Inner/Pot/Package.swift": '// swift-tools-version: 5.8\nlet p = [.package(id: "a.lid", from: "1.0.0")]\n',
    "Tests/KettleTests/ATests.swift": TEST,
    "Tests/KettleTests/Helper.swift": "func testable(_ a: Int) {}\n",
    "Tests/KettleTests/Suite.swift": 'import Testing\n@Test("a") func a() {}\n',
    "Tests/KettleTests/ViewTests.swift": f"// for Macs\n\n#if canImport(SwiftUI)\n{TEST}#endif\n",
    "Tests/KettleTests/Fixtures/P/Tests/XTests.swift": TEST,
    "Tests/Nested/Package.swift": "// swift-tools-version:5.5\n",
    "Tests/Nested/Tests/YTests.swift": TEST,
}
VERSIONS = ("5.7", "5.9", "5.10", "6.0")


def build_context(*changed_paths: str, versions: tuple[str, ...] = VERSIONS) -> PlanningContext:
    return PlanningContext(list_available=lambda: versions, day=date(2024, 6, 1), changed_paths=changed_paths)


def list_versions(draft: PlanDraft) -> list[str]:
    return [version.value for version in draft.versions]


def test_dependencies_of_swift_are_read_from_manifests_of_the_tree(tmp_path: Path) -> None:
    draft = SWIFT.create_draft(build_tree(tmp_path, SWIFT_FILES), build_context())
    assert [(d.source.text, d.source.path, d.source.line) for d in draft.dependencies] == [
        ("https://example.org/mug.git", "Package.swift", 9),
        ("a.lid", "Inner/Pot/Package.swift", 2),
    ]
    assert [(system_package.text, system_package.line) for system_package in draft.system_packages] == [
        ("libz-dev", 13)
    ]
    assert [path for path, _ in draft.manifests] == [
        "Inner/Pot/Package.swift",
        "Package.swift",
        "Package@swift-5.7.swift",
    ]
    assert list_versions(draft) == ["5.9", "5.10", "6.0"]  # the last two were too recent or not there yet
    plan = SWIFT.render_plan(draft)
    assert "swift package resolve" in plan.dependency_steps[1]
    assert "is out of reach from here, and Debian has no packages of Swift" in plan.dependency_steps[1]
    assert "git ls-remote https://example.org/mug.git HEAD" in plan.dependency_steps[1]
    assert "a.lid" not in plan.dependency_steps[1]
    assert [(evidence.value, evidence.line) for evidence in draft.evidence if evidence.choice == "pin"] == [
        ("ranges", 9)
    ]
    for step in (*plan.dependency_steps, *plan.source_steps):
        subprocess.run(["bash", "-n", "-c", step], check=True)


def test_a_swift_package_without_dependencies_is_built_without_network(tmp_path: Path) -> None:
    files = {**SWIFT_FILES, "Package.swift": re.sub(r"\.package\(.*", "", MANIFEST)}
    plan = SWIFT.render_plan(SWIFT.create_draft(build_tree(tmp_path, files), build_context()))
    assert (len(plan.dependency_steps), plan.manifests) == (1, ())  # of Debian packages
    assert "--enable-swift-testing" not in plan.test.argv
    plan = SWIFT.render_plan(SWIFT.create_draft(build_tree(tmp_path / "6", files), build_context(versions=("6.0",))))
    assert "--enable-swift-testing" in plan.test.argv


def test_swift_test_files_are_those_with_tests_that_run_on_linux(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, SWIFT_FILES)
    plan = SWIFT.render_plan(SWIFT.create_draft(tree, build_context()))
    assert SWIFT.find_test_files(tree, plan) == ["Tests/KettleTests/ATests.swift", "Tests/KettleTests/Suite.swift"]
    assert plan.test.paths == ("Tests/KettleTests",)


def test_a_lock_file_of_swift_is_a_manifest_and_evidence(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, {**SWIFT_FILES, "Package.resolved": "{}"})
    draft = SWIFT.create_draft(tree, build_context())
    assert "Package.resolved" in {path for path, _ in draft.manifests}
    assert [evidence.path for evidence in draft.evidence if evidence.choice == "pin"] == ["Package.resolved"]


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        ('container: "swift:5.10-jammy"', ("5.10", 4)),
        ("container:\n      image: swift:5.10", ("5.10", 5)),
        ("strategy:\n      matrix:\n        image: ['swift:5.7', 'swift:5.10.1']", ("5.10", 6)),
        ("strategy:\n      matrix:\n        swift: [5.7, '6']", ("6.0", 6)),
    ],
)
def test_versions_of_swift_are_read_from_ci(settings: str, version: tuple[str, int], tmp_path: Path) -> None:
    workflow = f"on: push\njobs:\n  test:\n    {settings}\n    steps:\n      - run: swift test\n"
    tree = build_tree(tmp_path, {**SWIFT_FILES, ".github/workflows/ci.yml": workflow})
    first = SWIFT.create_draft(tree, build_context()).versions[0]
    assert (first.value, first.line) == version


def test_a_change_is_planned_in_the_deepest_swift_package_with_tests(tmp_path: Path) -> None:
    target = '.testTarget(name: "A")'
    files = {"Package.swift": target, "Kit/Package.swift": target, "Kit/Macros/Package.swift": ""}
    tree = build_tree(tmp_path, files)
    assert find_project_folder(tree, ("Kit/Macros/A.swift", "README.md")) == "Kit"
    assert find_project_folder(tree, ("Kit/A.swift", "Sources/B.swift")) == ""
    del files["Package.swift"]
    assert find_project_folder(build_tree(tmp_path / "kit", files), ("Sources/B.swift",)) == "Kit"


@pytest.mark.parametrize(
    ("language", "files", "reason"),
    [
        (SWIFT, {"a.swift": ""}, "there is no Package.swift"),
        (SWIFT, {"Package.swift": "", "Tests/ATests.swift": TEST}, "no target of tests"),
        (SWIFT, {"Package.swift": MANIFEST, "Tests/A/V.swift": f"#if os(iOS)\n{TEST}#endif\n"}, "no target of tests"),
    ],
)
def test_a_tree_that_cannot_be_tested_is_rejected(
    language: Language, files: dict[str, str], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(NoPlanError, match=reason):
        language.create_draft(build_tree(tmp_path, files), build_context(versions=("6.0", "9.0")))


@pytest.mark.parametrize(
    "path",
    [
        "Tests/LinuxMain.swift",
        "Tests/KettleTests/Data/a.bin",
        "KettleTests/A.swift",
    ],
)
def test_tests_of_swift_are_protected(path: str) -> None:
    assert is_protected(path)
    assert not is_source(path)


@pytest.mark.parametrize("path", ["Sources/Kettle/Test.swift", "Sources/Testing/A.swift"])
def test_sources_of_swift_are_no_tests(path: str) -> None:
    assert is_source(path)


def test_manifests_that_name_the_files_of_tests_are_configuration() -> None:
    assert all(map(is_config, ("Package.swift", "Kit/Package@swift-5.9.swift")))
    assert not is_config("Sources/Package/MyPackage.swift")


def select(language: Language, tree: Path, files: dict[str, str]) -> list[str]:
    """Return the filter by which the language's runner selects test files."""
    for name, text in files.items():
        (tree / name).write_text(text, encoding="utf-8")
    template = make_environment(lambda _name: None, comment_marks=("<#", "#>")).from_string(
        language.frameworks[0].shell
    )
    shell = template.render(argv=(), paths=(), folder="")
    script = f"out=/tmp workdir=.\narguments=({shlex.join(files)})\n{shell}\nprintf '%s\\n' \"${{filter[@]}}\""
    process = subprocess.run(["bash", "-c", script], cwd=tree, capture_output=True, text=True, check=True)
    return process.stdout.splitlines()


def test_selected_files_of_swift_run_by_a_filter_of_their_types_and_functions(tmp_path: Path) -> None:
    files = {
        "A.swift": "import XCTest\n// struct of\nfinal class ATests: XCTestCase {\n    func testA() {}\n}\n",
        "B.swift": '@Test("b") func b() {}\n@Test\nfunc c(_ n: Int) {}\nextension D {\n    @Test func f() {}\n}\n',
    }
    assert select(SWIFT, tmp_path, files) == ["--filter", "[.](ATests/|of/|D/|b[(]|c[(])"]
    assert select(SWIFT, tmp_path, {"C.swift": "let a = 1\n"}) == ["--filter", "[.](NoSuchTest)"]
    assert select(SWIFT, tmp_path, {}) == [""]


@pytest.mark.parametrize(
    ("language", "neighbours", "expected"),
    [
        (SWIFT, {"A.swift": "import XCTest\n"}, "XCTAssertEqual(3 * 4, 13)"),
        (SWIFT, {"A.swift": "import Testing\n", "B.swift": "import Testing\n"}, "#expect(3 * 4 == 13)"),
    ],
)
def test_canaries_are_in_the_framework_of_their_neighbours(
    language: Language, neighbours: dict[str, str], expected: str, tmp_path: Path
) -> None:
    for name, text in neighbours.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    canary = language.frameworks[0].canary
    assert canary is not None
    script = f"word=w0rd sum=13 folder=. file={canary.name([])}\nwrite() {{\n{canary.body}\n}}\nwrite"
    process = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert expected in process.stdout
    assert process.stdout.count("{") == process.stdout.count("}")


def test_compiler_errors_of_swift_and_dotnet_give_uncollected_files(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    outputs = {
        "swift": f"{root}/Tests/ATests/A.swift:3:9: error: cannot find 'gone' in scope\n"
        f"{root}/Tests/ATests/B.swift:3:9: warning: unused\n{root}/Sources/A/A.swift:1:1: error: broken\n",
        "trx": f"{root}/test/A.Tests/A.cs(3,9): error CS0103: The name 'Gone' does not exist [{root}/test/A.csproj]\n"
        f"{root}/test/A.Tests/B.cs(3,9): warning CS0168: unused\n{root}/src/A.cs(1,1): error CS1002: broken [x]\n",
    }
    expected = {
        "swift": {"Tests/ATests/A.swift": "collection failure: cannot find 'gone' in scope"},
        "trx": {"test/A.Tests/A.cs": "collection failure: The name 'Gone' does not exist"},
    }
    root.mkdir()
    for name, text in outputs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "build.txt").write_text(text, encoding="utf-8")
        content = convert_report(name, str(tmp_path / name), str(root))
        assert junit.parse_junit(content, []).uncollected == expected[name]


def test_a_program_of_swift_that_leaves_before_its_test_has_ended_has_not_passed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "out").mkdir()
    rows = "".join(f'<testcase classname="M.A" name="test{letter}"/>' for letter in "ABC")
    text = "xTest Case 'A.testA' passed (0.1 seconds)\nTest Case 'A.testB' started at 1\n"
    (tmp_path / "out/tests.xml").write_text(f'<testsuites>{rows}<testcase classname="M" name="d()"/></testsuites>')
    (tmp_path / "out/tests.txt").write_text(text)
    report = junit.parse_junit(convert_report("swift", str(tmp_path / "out"), str(tmp_path / "tree")), [])
    assert {test: outcome.status.value for test, outcome in report.outcomes.items()} == {
        "M::A/testA": "passed",
        "M::A/testB": "error",
        "M::A/testC": "error",
        "M::d()": "passed",
    }


@pytest.mark.parametrize(
    ("wanted", "folder", "expected"),
    [
        ("N.Two", "", "b/two/Cup.cs"),
        ("N", "two", "b/two/Cup.cs"),
        ("N", "one", "a/one/Cups.cs"),
        ("N", "", "tests/further/Cup.cs"),
    ],
)
def test_types_of_one_name_are_found_by_namespace_and_project(
    wanted: str, folder: str, expected: str, tmp_path: Path
) -> None:
    files = {
        "a/one/Cups.cs": "namespace N.One; class Cup { void A() {} }\n",
        "b/two/Cup.cs": "namespace N.Two; class Cup { void A() {} }\n",
        "tests/further/Cup.cs": "namespace N.Three; class Cup { void A() {} }\n",
        "d/Cup.cs": "namespace N.Two; class Cup { }\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    types = DeclaredTypes(ReportTree(tmp_path), ".cs", re.compile(r"\bclass (\w+)"))
    assert types.find("Cup", "A", folder, wanted) == expected
    assert types.find("Mug", "A", folder, wanted) == ""
