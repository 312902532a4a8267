"""Tools and plugins beside the tests, and what scripts and markers tell of them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.git import Repository
from backends.tree import Tree
from languages import python
from languages.python.plan import render
from tests.languages.python_trees import DAY, HERE, TEST, draft_of, plan_at, plan_of, requirements
from tests.languages.trees import tree_of

COVERED = {
    "pyproject.toml": '[project]\nname="covered"\n[project.optional-dependencies]\ntests=["pytest", "pytest-cov"]\n',
    "covered.py": "",
    "tests/test_covered.py": TEST,
}
NEEDS_COVERAGE: dict[str, tuple[dict[str, str], date, str]] = {
    "a-test-imports-it": ({"tests/test_covered.py": "import coverage\n" + TEST}, DAY, "coverage"),
    "a-conftest-imports-its-plugin-later": (
        {"tests/conftest.py": "def pytest_configure():\n    import pytest_cov\n"}, DAY, "pytest-cov",
    ),
    "a-filter-names-its-warning": (
        {"pytest.ini": "[pytest]\nfilterwarnings =\n    ignore:it's slow, now:coverage.exceptions.CoverageWarning\n"},
        DAY, "coverage",
    ),
    "the-settings-require-it": ({"tox.ini": "[pytest]\nrequired_plugins = pytest-cov>=2.0\n"}, DAY, "pytest-cov>=2.0"),
    "options-that-the-pytest-of-the-time-cannot-drop": (
        {"setup.cfg": "[pytest]\naddopts = --cov covered\n"}, date(2016, 3, 1), "pytest-cov",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDS_COVERAGE)
def test_a_tool_beside_the_tests_stays_where_tests_or_runner_import_it(name: str, tmp_path: Path) -> None:
    files, day, wanted = NEEDS_COVERAGE[name]
    assert wanted in requirements(plan_of(tmp_path, COVERED | files, day))


def test_a_tool_beside_the_tests_that_nothing_imports_is_left_out(tmp_path: Path) -> None:
    options = {
        "setup.cfg": "[tool:pytest]\naddopts = --cov covered\nfilterwarnings =\n    error\n    ignore::UserWarning\n"
    }
    made = plan_of(tmp_path, COVERED | options)
    assert requirements(made) == {"pytest", "setuptools", "wheel"}
    assert made.test.argv == ("pytest", "-o", "addopts=")


PLUGINS = """\
[tool.pytest.ini_options]
addopts = "-p pytest_cov --cov -p no:junitxml -p instafail --instafail -p subtests -p no:doctest --strict-markers"
"""


def test_plugins_that_only_report_are_not_loaded_and_those_that_stay_are_installed(tmp_path: Path) -> None:
    made = plan_of(tmp_path, {"pyproject.toml": PLUGINS, "test_one.py": TEST})
    assert made.test.argv == ("pytest", "-o", "addopts=-p subtests -p no:doctest --strict-markers")
    assert "pytest-subtests" in requirements(made)
    assert "pytest-instafail" not in requirements(made)


def test_unittest_looks_for_the_names_that_most_test_files_have(tmp_path: Path) -> None:
    case = "import unittest\n\nclass {name}Test(unittest.TestCase):\n    def test_it(self): pass\n"
    files = {f"pkg/test/{name}_test.py": case.format(name=name) for name in ("gen", "web", "testing")}
    made = draft_of(tmp_path, {"setup.py": "", "pkg/__init__.py": "", "pkg/test/__init__.py": "", **files})
    assert "*_test.py" in made.test.argv
    tree = Tree(Repository(tmp_path / "repo"), "HEAD")
    assert python.defining_files(tree, render(made)) == sorted(files)


SCRIPTED = {
    ".github/workflows/test.yml": "jobs: {tests: {steps: [{run: scripts/install}, {run: ./ci/test.sh}]}}\n",
    "scripts/install": '#!/bin/sh -e\nREQS="requirements.txt"\nPIP=pip\n${PIP} install -r "$REQS" | tee log\n',
    "ci/test.sh": "pytest tests\n",
    "requirements.txt": "-e .[fast]\ntrustme==1.2.1\n",
    "pyproject.toml": '[project]\nname = "it"\n[project.optional-dependencies]\nfast = ["httptools>=0.6"]\n',
    "tests/test_one.py": "try:\n    import trustme\nexcept ImportError:\n    trustme = None\n" + TEST,
}


def test_scripts_that_ci_calls_are_read_and_so_are_extras_that_requirement_files_ask_for(tmp_path: Path) -> None:
    made = plan_of(tmp_path, SCRIPTED, date(2024, 9, 1))
    assert {"trustme==1.2.1", "httptools>=0.6"} <= requirements(made)
    assert "tee" not in requirements(made)
    assert made.test.paths == ("tests",)


def test_a_tool_that_tests_name_in_quotes_stays(tmp_path: Path) -> None:
    project = '[project]\nname = "it"\n[project.optional-dependencies]\ntest = ["build", "tox", "pytest"]\n'
    conftest = "from importlib.metadata import version\n\ndef pytest_report_header():\n    return version('build')\n"
    made = plan_of(tmp_path, {"pyproject.toml": project, "tests/conftest.py": conftest, "tests/test_one.py": TEST})
    assert {"build", "pytest"} <= requirements(made)
    assert "tox" not in requirements(made)


def test_a_marker_of_a_plugin_brings_the_plugin(tmp_path: Path) -> None:
    marked = "import pytest\n\n@pytest.mark.xdist_group(name='serial')\n" + TEST
    assert "pytest-xdist" in requirements(plan_of(tmp_path, {"test_one.py": marked}))


def test_where_every_file_of_a_folder_is_a_test_all_but_underscored_ones_are(tmp_path: Path) -> None:
    spec = "class helpline:\n    def is_none(self):\n        assert True\n"
    names = ("config.py", "parser/context.py", "_util.py", "_support/tasks.py", "conftest.py", "plain.txt")
    files = {f"tests/{name}": spec for name in names}
    tree = tree_of(tmp_path, files | {"it.py": spec, "pytest.ini": "[pytest]\ntestpaths = tests\npython_files = *\n"})
    assert python.defining_files(tree) == ["tests/config.py", "tests/parser/context.py"]
    assert python.defining_files(tree, plan_at(tree, HERE, DAY)) == ["tests/config.py", "tests/parser/context.py"]


def test_files_that_git_lfs_keeps_elsewhere_are_told(tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 123456\n"
    files = {
        "a.py": "",
        "test_a.py": TEST,
        ".gitattributes": "*.txt text\n*.bin filter=lfs diff=lfs\n",
        "data.bin": pointer,
    }
    made = plan_of(tmp_path, files)
    told = [(e.value, e.path, e.line) for e in made.evidence if e.choice == "lfs"]
    assert told == [("data.bin", ".gitattributes", 2)]
