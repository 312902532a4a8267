"""CMake projects: options that enable tests, libraries and fetched content; other build systems."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.tree import CommitTree
from languages.c import C
from languages.cpp import CPP
from languages.draft import NoPlanError, PlanningContext
from languages.native.plan import report_programs
from languages.paths import is_test_path
from taskdb.records import BuildPlan
from tests.helpers import TinyRepo

MAIN = "#include <assert.h>\nint main(void)\n{\n    return 0;\n}\n"
GOOGLE = "#include <gtest/gtest.h>\n\nTEST(A, B) {\n}\n"


def build_plan(tmp_path: Path, files: dict[str, str], day: date = date(2024, 6, 1)) -> tuple[CommitTree, BuildPlan]:
    repo = TinyRepo(tmp_path / "repo")
    tree = CommitTree(GitRepository(repo.path), repo.commit("Start", files))
    return tree, CPP.render_plan(
        CPP.create_draft(tree, PlanningContext(list_available=lambda: ("10", "12", "14"), day=day))
    )


def test_options_for_tests_are_enabled_and_those_for_style_checks_disabled(tmp_path: Path) -> None:
    text = (
        'project(a)\noption(A_BUILD_TESTS "" OFF)\noption(A_FUZZ_TESTS "" OFF)\noption(A_WERROR "" ON)\n'
        'option(DISABLE_WERROR "" OFF)\noption(LATEST "" OFF)\noption(DISABLE_TESTS "" OFF)\nenable_testing()\n'
        "add_test(NAME a COMMAND test_a)\n"
    )
    _, plan = build_plan(tmp_path, {"CMakeLists.txt": text, "tests/test_a.c": MAIN})
    switches = [word for word in plan.test.argv if "TEST" in word or "WERROR" in word]
    assert switches == [
        "-DA_BUILD_TESTS=ON",
        "-DA_WERROR=OFF",
        "-DBUILD_TESTING=ON",
        "-DDISABLE_TESTS=OFF",
        "-DDISABLE_WERROR=ON",
    ]
    assert any(evidence.value == "A_BUILD_TESTS=ON" and evidence.line == 2 for evidence in plan.evidence)


def test_a_root_that_only_adds_folders_is_the_project(tmp_path: Path) -> None:
    inner = "project(a_tests)\nmessage(${a_FOLDERS})\nadd_executable(test_a test_a.c)\nadd_test(test_a test_a)\n"
    files = {"tests/CMakeLists.txt": inner, "tests/test_a.c": MAIN}
    top = "enable_language(C)\nenable_testing()\nadd_subdirectory(tests)\n"
    _, plan = build_plan(tmp_path / "top", files | {"CMakeLists.txt": top})
    assert plan.test.folder == ""
    _, plan = build_plan(tmp_path / "inner", files | {"CMakeLists.txt": "include(macros.cmake)\n"})
    assert plan.test.folder == "tests"


def test_libraries_come_from_debian_except_the_project_itself(tmp_path: Path) -> None:
    files = {
        "CMakeLists.txt": "project(json-c)\nfind_package(ZLIB REQUIRED)\nfind_package(json-c)\nenable_testing()\n",
        "tests/test_a.c": MAIN,
    }
    _, plan = build_plan(tmp_path, files)
    assert plan.system_packages == ("zlib1g-dev",)


def test_fetched_googletest_is_replaced_by_debians(tmp_path: Path) -> None:
    text = (
        "project(a)\ninclude(FetchContent)\nFetchContent_Declare(googletest URL none)\nenable_testing()\n"
        "add_test(NAME all COMMAND all_tests)\n"
    )
    tree, plan = build_plan(
        tmp_path, {"CMakeLists.txt": text, "tests/one_test.cc": GOOGLE, "tests/two_test.cc": GOOGLE}
    )
    assert plan.test.framework == "googletest"
    assert "-DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest" in plan.test.argv
    assert "googletest" in plan.system_packages
    assert CPP.find_test_files(tree, plan) == ["tests/one_test.cc", "tests/two_test.cc"]


def test_fetched_content_of_another_name_than_its_package_is_replaced_by_its_address(tmp_path: Path) -> None:
    text = (
        "project(a)\ninclude(FetchContent)\nenable_testing()\n"
        "FetchContent_Declare(json URL https://github.com/nlohmann/json/archive/refs/tags/v3.11.2.tar.gz)\n"
        "FetchContent_Declare(gt GIT_REPOSITORY https://github.com/google/googletest.git GIT_TAG main)\n"
        "FetchContent_Declare(fmt URL https://github.com/fmtlib/fmt/archive/9.0.zip)\n"
        "FetchContent_Declare(own URL https://github.com/a/own/archive/9.0.zip)\n"
    )
    _, plan = build_plan(tmp_path, {"CMakeLists.txt": text, "tests/test_a.c": MAIN})
    assert [word for word in plan.test.argv if "SOURCE_DIR" in word] == [
        "-DFETCHCONTENT_SOURCE_DIR_JSON=/opt/packaged/json",
        "-DFETCHCONTENT_SOURCE_DIR_GT=/usr/src/googletest",
    ]
    assert plan.system_packages == ("nlohmann-json3-dev", "googletest", "libfmt-dev")
    assert "cp -r /usr/include/nlohmann /opt/packaged/json/include/" in plan.source_steps[0]
    assert not any("/opt/packaged/gt" in step or "/opt/packaged/fmt" in step for step in plan.source_steps)


def test_only_programs_registered_with_ctest_are_expected(tmp_path: Path) -> None:
    text = "project(a)\nenable_testing()\nforeach(t test_a test_b)\n  add_test(NAME ${t} COMMAND ${t})\nendforeach()\n"
    files = {"CMakeLists.txt": text, "tests/test_a.c": MAIN, "tests/test_b.c": MAIN, "tests/test_data.c": MAIN}
    tree, plan = build_plan(tmp_path, files)
    assert plan.test.framework == "ctest"
    assert C.find_test_files(tree, plan) == ["tests/test_a.c", "tests/test_b.c"]


def test_programs_of_example_projects_are_not_expected(tmp_path: Path) -> None:
    text = "project(a)\nenable_testing()\nadd_test(NAME test_a COMMAND test_a)\n"
    other = text.replace("test_a", "test_money")
    files = {"CMakeLists.txt": text, "tests/test_a.c": MAIN, "doc/example/CMakeLists.txt": other}
    tree, plan = build_plan(tmp_path, {**files, "doc/example/tests/test_money.c": MAIN})
    assert C.find_test_files(tree, plan) == ["tests/test_a.c"]


@pytest.mark.parametrize(
    ("day", "version"), [(date(2022, 1, 1), "10"), (date(2024, 6, 1), "12"), (date(2026, 1, 1), "14")]
)
def test_the_compiler_belongs_to_the_debian_release_of_the_date(tmp_path: Path, day: date, version: str) -> None:
    files = {"CMakeLists.txt": "project(a)\nenable_testing()\n", "tests/test_a.c": MAIN}
    assert build_plan(tmp_path, files, day)[1].language_version == version


def test_autotools_are_checked_by_make(tmp_path: Path) -> None:
    files = {
        "configure.ac": "AC_INIT([a], [1])\nAC_CHECK_LIB([z], [inflate])\n",
        "Makefile.am": "TESTS = tests/a\n",
        "a.c": "",
    }
    _, plan = build_plan(tmp_path, files)
    assert (plan.test.framework, plan.test.argv[:2]) == ("automake", ("make", "check"))


CATCH = '#include <catch2/catch.hpp>\n\nTEST_CASE("a year", "[leap]") {\n}\n'


def test_programs_of_catch2_that_ctest_does_not_list_case_by_case_report_their_cases(tmp_path: Path) -> None:
    text = "project(a)\nenable_testing()\nadd_test(NAME all COMMAND all_tests)\n"
    tests = {"tests/one_test.cc": CATCH, "tests/two_test.cc": CATCH.replace("TEST_CASE", "DOCTEST_TEST_CASE")}
    tree, plan = build_plan(tmp_path, {"CMakeLists.txt": text, "tests/main.cc": MAIN, **tests})
    assert plan.test.framework == "catch2"
    assert CPP.find_test_files(tree, plan) == ["tests/one_test.cc", "tests/two_test.cc"]


@pytest.mark.parametrize(
    "function", ["catch_discover_tests(a)", "doctest_discover_tests(a)", "ParseAndAddCatchTests(a)"]
)
def test_cases_of_catch2_that_ctest_lists_are_run_by_ctest(function: str, tmp_path: Path) -> None:
    text = f"project(a)\nenable_testing()\ninclude(CTest)\n{function}\n"
    _, plan = build_plan(tmp_path, {"CMakeLists.txt": text, "tests/one_test.cc": CATCH})
    assert plan.test.framework == "ctest"


def test_results_of_programs_replace_those_of_cases_when_files_are_missing(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    files = {"CMakeLists.txt": "project(a)\nenable_testing()\n", "tests/one_test.cc": CATCH}
    tree = CommitTree(GitRepository(repo.path), repo.commit("Start", files))
    draft = CPP.create_draft(tree, PlanningContext(list_available=lambda: ("12",), day=date(2024, 6, 1)))
    assert report_programs in CPP.fallbacks
    assert report_programs(draft).test.framework == "ctest"
    assert report_programs(report_programs(draft)) == report_programs(draft)


def test_submodules_of_libraries_that_debian_packages_are_filled(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    modules = {"lib/t": "github.com/google/googletest.git", "lib/json": "github.com/nlohmann/json", "lib/own": "x/own"}
    text = "".join(f'[submodule "{path}"]\n\tpath = {path}\n\turl = https://{url}\n' for path, url in modules.items())
    files = {"CMakeLists.txt": "project(a)\nenable_testing()\n", "tests/test_a.c": MAIN, ".gitmodules": text}
    commit = repo.commit("Start", files)
    for path in modules:
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    repo.git("commit", "-q", "-m", "submodules")
    tree = CommitTree(GitRepository(repo.path), repo.git("rev-parse", "HEAD").strip())
    context = PlanningContext(list_available=lambda: ("12",), day=date(2024, 6, 1))
    plan = CPP.render_plan(CPP.create_draft(tree, context))
    assert plan.system_packages == ("nlohmann-json3-dev", "googletest")
    steps = [step.partition(" && printf")[0] for step in plan.source_steps[:2]]
    copy = "mkdir -p lib/json/{0}/ && cp -r /usr/include/nlohmann lib/json/{0}/"
    assert steps == [
        f"{copy.format('include')} && {copy.format('single_include')}",
        "mkdir -p lib/t/ && cp -r /usr/src/googletest/. lib/t/",
    ]
    notes = {evidence.value: evidence.note for evidence in plan.evidence if evidence.choice == "submodule"}
    assert notes["lib/json"] == "replaced by Debian's nlohmann-json3-dev"
    assert notes["lib/own"].startswith("left empty")


def test_warnings_are_ignored_by_compilers_in_front_of_gcc(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    files = {"CMakeLists.txt": "project(a)\nenable_testing()\n", "tests/test_a.c": MAIN}
    tree = CommitTree(GitRepository(repo.path), repo.commit("Start", files))
    draft = CPP.create_draft(tree, PlanningContext(list_available=lambda: ("12",), day=date(2024, 6, 1)))
    plan = CPP.render_plan(replace(draft, switches=draft.switches | {"ignore-warnings"}))
    assert dict(plan.env)["CXX"] == "/opt/lenient/g++"
    (step,) = (step for step in plan.dependency_steps if "/opt/lenient" in step)
    folder = tmp_path / "lenient"
    subprocess.run(["bash", "-ec", step.replace("/opt/lenient", str(folder))], check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gcc").write_text('#!/bin/sh\nprintf "%s," "$@"\n')
    (tmp_path / "bin/gcc").chmod(0o755)
    words = ["-Wall", "-Werror", "-Werror=format", "a b.c"]
    run = subprocess.run(
        [folder / "gcc", *words], env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, capture_output=True, check=True
    )
    assert run.stdout == b"-Wall,a b.c,"


def test_options_of_meson_that_enable_tests_are_set(tmp_path: Path) -> None:
    options = (
        "option('build_tests', type: 'boolean', value: false,\n  description: 'x')\n"
        "option('tests', type : 'feature', value : 'auto')\noption('docs', type: 'boolean', value: true)\n"
        "option('test_data', type: 'string', value: '')\noption('latest', type: 'boolean')\n"
    )
    files = {"meson.build": "project('a', 'c')\ntest('a', a)\n", "meson_options.txt": options, "a.c": MAIN}
    _, plan = build_plan(tmp_path, files)
    (setup,) = (step for step in plan.source_steps if "meson setup" in step)
    assert setup.endswith("-Dwerror=false -Dbuild_tests=true -Dtests=enabled -Ddocs=false")
    assert any(
        (evidence.value, evidence.path, evidence.line) == ("tests=enabled", "meson_options.txt", 3)
        for evidence in plan.evidence
    )


MAKEFILE = "all: a\n\ncheck: lint\n\ntest unit: a\n\t./a\n\n.PHONY: check test\nx := 1\n"


def test_a_plain_makefile_is_tested_by_its_target(tmp_path: Path) -> None:
    _, plan = build_plan(tmp_path, {"Makefile": MAKEFILE, "tests/test_a.c": MAIN})
    assert (plan.test.framework, plan.test.argv, plan.test.folder) == ("make", ("make", "test"), "")
    assert any((evidence.value, evidence.path, evidence.line) == ("test", "Makefile", 5) for evidence in plan.evidence)


def test_the_target_that_ci_makes_is_preferred(tmp_path: Path) -> None:
    workflow = "jobs:\n  ci:\n    steps:\n      - run: make all && make cppcheck && make CC=gcc unit-check\n"
    files = {
        ".github/workflows/ci.yml": workflow,
        "Makefile": MAKEFILE + "unit-check: a\n\t./a\n\ncppcheck:\n\tcppcheck .\n",
        "tests/test_a.c": MAIN,
    }
    _, plan = build_plan(tmp_path, files)
    assert plan.test.argv == ("make", "unit-check")
    places = [(evidence.path, evidence.line) for evidence in plan.evidence if evidence.value == "unit-check"]
    assert places == [(".github/workflows/ci.yml", 4)]


def test_a_makefile_of_the_test_folder_runs_there(tmp_path: Path) -> None:
    _, plan = build_plan(tmp_path, {"tests/Makefile": "run_tests: a\n\t./a\n", "tests/test_a.c": MAIN})
    assert (plan.test.argv, plan.test.folder) == (("make", "run_tests"), "tests")


def test_a_handwritten_configure_script_is_followed_by_make(tmp_path: Path) -> None:
    files = {"configure": "#!/bin/sh\n", "Makefile.in": "all:\n\ntest: a\n\t./a\n", "tests/test_a.c": MAIN}
    _, plan = build_plan(tmp_path, files)
    assert (plan.test.framework, plan.test.argv) == ("make", ("make", "test"))
    assert any("./configure" in step for step in plan.source_steps)


@pytest.mark.parametrize(
    "name",
    [
        "tests",
        "unit_tests",
        "test_a",
        "a-test",
        "AllTests",
        "test_${PROJECT_NAME}",
        "${PROJECT_NAME}-tests",
        "${A}Tests",
    ],
)
def test_programs_named_for_tests_run_where_ctest_has_no_list(name: str, tmp_path: Path) -> None:
    text = f"project(a)\nadd_executable(latest a.c)\nadd_executable({name} tests/a.c)\n"
    _, plan = build_plan(tmp_path, {"CMakeLists.txt": text, "a.c": MAIN, "tests/a.c": MAIN})
    assert plan.test.framework == "programs"
    assert any(
        (evidence.value, evidence.path, evidence.line) == (name, "CMakeLists.txt", 3) for evidence in plan.evidence
    )


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("", "tests"),
        ("add_subdirectory(tests)", ""),
        ("add_subdirectory(${PROJECT_SOURCE_DIR}/tests/)", ""),
        ('add_subdirectory("${folder}")', ""),
    ],
)
def test_tests_that_the_project_does_not_add_are_a_project_of_their_own(line: str, folder: str, tmp_path: Path) -> None:
    tests = "project(a-tests)\nadd_executable(all_tests a.c)\n"
    files = {"CMakeLists.txt": f"project(a)\n{line}\n", "tests/CMakeLists.txt": tests, "tests/a.c": MAIN}
    _, plan = build_plan(tmp_path, files)
    assert (plan.test.framework, plan.test.folder) == ("programs", folder)


@pytest.mark.parametrize("folder", ["deps/zip", "third_party/zip", "vendor/zip"])
def test_tests_of_copied_projects_are_no_tests_of_the_project(folder: str, tmp_path: Path) -> None:
    other = "project(zip)\nenable_testing()\nadd_executable(test_zip a.c)\nadd_test(NAME a COMMAND test_zip)\n"
    files = {"CMakeLists.txt": "project(a)\n", f"{folder}/CMakeLists.txt": other, f"{folder}/a.c": MAIN}
    with pytest.raises(NoPlanError, match="neither CMake"):
        build_plan(tmp_path, files)


def test_a_tree_without_a_supported_build_system_has_no_plan(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError, match="neither CMake, Meson nor Autotools"):
        build_plan(tmp_path, {"tests/test_a.c": MAIN})


@pytest.mark.parametrize(
    ("path", "is_test"),
    [("test/a.inc", True), ("lib/test/a.c", True), ("numpy/test/helper.py", False), ("src/latest.c", False)],
)
def test_nested_test_folders_contain_only_c_tests(path: str, is_test: bool) -> None:
    assert is_test_path(path) is is_test
