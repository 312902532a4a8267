"""Development tools and plugins of Python projects, and the scripts and markers that require them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.tree import CommitTree
from languages.python import PYTHON
from languages.python.plan import render_plan
from tests.languages.python_trees import DAY, HERE, TEST, build_draft, build_plan, build_plan_at, list_requirements
from tests.languages.trees import build_tree

COVERED = {
    "pyproject.toml": '[project]\nname="covered"\n[project.optional-dependencies]\ntests=["pytest", "pytest-cov"]\n',
    "covered.py": "",
    "tests/test_covered.py": TEST,
}
NEEDS_COVERAGE: dict[str, tuple[dict[str, str], date, str]] = {
    "a-test-imports-it": ({"tests/test_covered.py": "import coverage\n" + TEST}, DAY, "coverage"),
    "a-conftest-imports-its-plugin-later": (
        {"tests/conftest.py": "def pytest_configure():\n    import pytest_cov\n"},
        DAY,
        "pytest-cov",
    ),
    "a-filter-names-its-warning": (
        {"pytest.ini": "[pytest]\nfilterwarnings =\n    ignore:it's slow, now:coverage.exceptions.CoverageWarning\n"},
        DAY,
        "coverage",
    ),
    "the-settings-require-it": ({"tox.ini": "[pytest]\nrequired_plugins = pytest-cov>=2.0\n"}, DAY, "pytest-cov>=2.0"),
    "options-that-the-pytest-of-the-time-cannot-drop": (
        {"setup.cfg": "[pytest]\naddopts = --cov covered\n"},
        date(2016, 3, 1),
        "pytest-cov",
    ),
}


@pytest.mark.parametrize("name", NEEDS_COVERAGE)
def test_a_tool_is_required_if_tests_or_runner_import_it(name: str, tmp_path: Path) -> None:
    files, day, requirement = NEEDS_COVERAGE[name]
    assert requirement in list_requirements(build_plan(tmp_path, COVERED | files, day))


def test_a_tool_that_nothing_imports_is_excluded(tmp_path: Path) -> None:
    options = {
        "setup.cfg": "[tool:pytest]\naddopts = --cov covered\nfilterwarnings =\n    error\n    ignore::UserWarning\n"
    }
    plan = build_plan(tmp_path, COVERED | options)
    assert list_requirements(plan) == {"pytest", "setuptools", "wheel"}
    assert plan.test.argv == ("pytest", "-o", "addopts=")


PLUGINS = """\
[tool.pytest.ini_options]
addopts = "-p pytest_cov --cov -p no:junitxml -p instafail --instafail -p subtests -p no:doctest --strict-markers"
"""


def test_reporting_plugins_are_not_loaded_and_the_others_are_installed(tmp_path: Path) -> None:
    plan = build_plan(tmp_path, {"pyproject.toml": PLUGINS, "test_one.py": TEST})
    assert plan.test.argv == ("pytest", "-o", "addopts=-p subtests -p no:doctest --strict-markers")
    assert "pytest-subtests" in list_requirements(plan)
    assert "pytest-instafail" not in list_requirements(plan)


@pytest.mark.parametrize(
    ("day", "argv"),
    [
        (DAY, ("pytest", "-o", "addopts=", "-p", "no:black", "-p", "no:mypy")),
        (date(2016, 3, 1), ("pytest",)),  # whose option --black cannot be dropped
    ],
)
def test_plugins_that_test_the_style_of_sources_are_not_loaded(
    day: date, argv: tuple[str, ...], tmp_path: Path
) -> None:
    extras = "[options.extras_require]\ntesting =\n    pytest-mypy\n    pytest-black >= 0.3; python_version > '3'\n"
    settings = {"setup.py": "import setuptools; setuptools.setup()\n", "setup.cfg": extras}
    files = {**settings, "pytest.ini": "[pytest]\naddopts = --black\n", "test_one.py": TEST}
    assert build_plan(tmp_path / "all", files, day).test.argv == argv
    files["pytest.ini"] += "required_plugins = pytest-black>=0.3 pytest-mypy\n"
    assert "-p" not in build_plan(tmp_path / "none", files, day).test.argv


def test_unittest_discovery_uses_the_pattern_of_most_test_files(tmp_path: Path) -> None:
    case = "import unittest\n\nclass {name}Test(unittest.TestCase):\n    def test_it(self): pass\n"
    files = {f"pkg/test/{name}_test.py": case.format(name=name) for name in ("gen", "web", "testing")}
    draft = build_draft(tmp_path, {"setup.py": "", "pkg/__init__.py": "", "pkg/test/__init__.py": "", **files})
    assert "*_test.py" in draft.test.argv
    tree = CommitTree(GitRepository(tmp_path / "repo"), "HEAD")
    assert PYTHON.find_test_files(tree, render_plan(draft)) == sorted(files)


SCRIPTED = {
    ".github/workflows/test.yml": "jobs: {tests: {steps: [{run: scripts/install}, {run: ./ci/test.sh}]}}\n",
    "scripts/install": '#!/bin/sh -e\nREQS="requirements.txt"\nPIP=pip\n${PIP} install -r "$REQS" | tee log\n',
    "ci/test.sh": "pytest tests\n",
    "requirements.txt": "-e .[fast]\ntrustme==1.2.1\n",
    "pyproject.toml": '[project]\nname = "it"\n[project.optional-dependencies]\nfast = ["httptools>=0.6"]\n',
    "tests/test_one.py": "try:\n    import trustme\nexcept ImportError:\n    trustme = None\n" + TEST,
}


def test_scripts_called_by_ci_and_extras_in_requirement_files_are_read(tmp_path: Path) -> None:
    plan = build_plan(tmp_path, SCRIPTED, date(2024, 9, 1))
    assert {"trustme==1.2.1", "httptools>=0.6"} <= list_requirements(plan)
    assert "tee" not in list_requirements(plan)
    assert plan.test.paths == ("tests",)


def test_a_tool_quoted_in_tests_is_required(tmp_path: Path) -> None:
    project = '[project]\nname = "it"\n[project.optional-dependencies]\ntest = ["build", "tox", "pytest"]\n'
    conftest = "from importlib.metadata import version\n\ndef pytest_report_header():\n    return version('build')\n"
    plan = build_plan(tmp_path, {"pyproject.toml": project, "tests/conftest.py": conftest, "tests/test_one.py": TEST})
    assert {"build", "pytest"} <= list_requirements(plan)
    assert "tox" not in list_requirements(plan)


def test_a_marker_of_a_plugin_requires_the_plugin(tmp_path: Path) -> None:
    marked = "import pytest\n\n@pytest.mark.xdist_group(name='serial')\n" + TEST
    assert "pytest-xdist" in list_requirements(build_plan(tmp_path, {"test_one.py": marked}))


def test_with_relaxed_file_names_all_files_without_a_leading_underscore_are_tests(tmp_path: Path) -> None:
    spec = "class helpline:\n    def is_none(self):\n        assert True\n"
    names = ("config.py", "parser/context.py", "_util.py", "_support/tasks.py", "conftest.py", "plain.txt")
    files = {f"tests/{name}": spec for name in names}
    tree = build_tree(
        tmp_path, files | {"it.py": spec, "pytest.ini": "[pytest]\ntestpaths = tests\npython_files = *\n"}
    )
    assert PYTHON.find_test_files(tree) == ["tests/config.py", "tests/parser/context.py"]
    assert PYTHON.find_test_files(tree, build_plan_at(tree, HERE, DAY)) == [
        "tests/config.py",
        "tests/parser/context.py",
    ]


def test_git_lfs_pointers_are_reported_in_the_evidence(tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 123456\n"
    files = {
        "a.py": "",
        "test_a.py": TEST,
        ".gitattributes": "*.txt text\n*.bin filter=lfs diff=lfs\n",
        "data.bin": pointer,
    }
    plan = build_plan(tmp_path, files)
    pointers = [(e.value, e.path, e.line) for e in plan.evidence if e.choice == "lfs"]
    assert pointers == [("data.bin", ".gitattributes", 2)]
