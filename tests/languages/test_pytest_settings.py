"""Settings of pytest are read from the file that pytest itself takes, in any of its forms."""

from __future__ import annotations

import subprocess
from itertools import combinations
from pathlib import Path

import pytest
from _pytest.config.findpaths import locate_config

from languages.python.testing import PytestConfig
from languages.registry import frameworks_by_name
from taskdb.records import BuildPlan
from tests.languages.python_trees import TEST, build_plan, list_requirements
from tests.languages.trees import build_tree

PROJECT = """[project]
name = "calc"
version = "1.0"
[project.optional-dependencies]
test = ["pytest>=9", "pytest-cov", "pytest-xdist"]
"""
TREE = {
    "pyproject.toml": PROJECT,
    "calc.py": "",
    "checks/check_it.py": TEST,
    "checks/test_it.py": TEST,
    "other/test_it.py": TEST,
}
INI = """addopts = -n auto --cov=calc --strict-markers
testpaths = checks
python_files = check_*.py
required_plugins = pytest-mock
timeout = 5
"""
TOML = """addopts = ["-n", "auto", "--cov=calc", "--strict-markers"]
testpaths = ["checks"]
python_files = ["check_*.py"]
required_plugins = ["pytest-mock"]
timeout = 5
"""
FORMS = {
    "pytest.toml": {"pytest.toml": f"[pytest]\n{TOML}"},
    ".pytest.toml": {".pytest.toml": f"[pytest]\n{TOML}"},
    "pytest.toml with dots": {"pytest.toml": "".join(f"pytest.{line}\n" for line in TOML.splitlines())},
    ".pytest.ini": {".pytest.ini": f"[pytest]\n{INI}"},
    "tool.pytest": {"pyproject.toml": f"{PROJECT}[tool.pytest]\n{TOML}"},
    "pytest.toml before all others": {
        "pytest.toml": f"[pytest]\n{TOML}",
        ".pytest.toml": "[pytest]\naddopts = ['--doctest-modules']\n",
        "pytest.ini": "[pytest]\naddopts = --strict-config\n",
        "pyproject.toml": f"{PROJECT}[tool.pytest.ini_options]\ntestpaths = 'other'\n",
    },
    ".pytest.toml before pytest.ini": {
        ".pytest.toml": f"[pytest]\n{TOML}",
        "pytest.ini": "[pytest]\naddopts = --strict-config\n",
    },
}
SETTINGS = {
    "pytest.toml": "[pytest]\nx = 'pytest.toml'\n",
    ".pytest.toml": "[pytest]\nx = '.pytest.toml'\n",
    "pytest.ini": "[pytest]\nx = pytest.ini\n",
    ".pytest.ini": "[pytest]\nx = .pytest.ini\n",
    "pyproject.toml": "[tool.pytest.ini_options]\nx = 'pyproject.toml'\n",
    "tox.ini": "[pytest]\nx = tox.ini\n",
    "setup.cfg": "[tool:pytest]\nx = setup.cfg\n",
}
EMPTY = {"pytest.toml": "", ".pytest.toml": "", "pytest.ini": "", "pyproject.toml": "", "tox.ini": ""}


def describe(plan: BuildPlan) -> tuple[tuple[str, ...], tuple[str, ...], set[str]]:
    return plan.test.argv, plan.test.paths, list_requirements(plan)


@pytest.mark.parametrize("form", FORMS)
def test_settings_decide_the_same_in_each_file_of_pytest(form: str, tmp_path: Path) -> None:
    expected = describe(build_plan(tmp_path / "ini", TREE | {"pytest.ini": f"[pytest]\n{INI}"}))
    assert expected[:2] == (("pytest", "-o", "addopts=--strict-markers"), ("checks",))
    assert {"pytest-mock", "pytest-timeout"} <= expected[2]
    assert describe(build_plan(tmp_path / "other", TREE | FORMS[form])) == expected


def test_the_file_with_the_settings_is_the_one_that_pytest_takes(tmp_path: Path) -> None:
    pairs = [dict(pair) for pair in combinations(SETTINGS.items(), 2)]
    hidden = [
        {name: text, other: SETTINGS[other]} for name, text in EMPTY.items() for other in SETTINGS if other != name
    ]
    for number, files in enumerate(pairs + hidden):
        config = PytestConfig(build_tree(tmp_path / str(number), files))
        _, path, values, *_ = locate_config(tmp_path / str(number) / "repo", [tmp_path / str(number) / "repo"])
        assert path is not None
        assert (config.path, list(config.values)) == (path.name, list(values)), files


@pytest.mark.parametrize("name", ["pytest.toml", ".pytest.toml", "pytest.ini", "tox.ini"])
def test_plugins_that_any_of_the_files_mentions_are_left_as_they_are(name: str, tmp_path: Path) -> None:
    framework = frameworks_by_name()["pytest"]
    (function,) = (line for line in framework.shell.splitlines() if line.startswith("mentions()"))
    (tmp_path / name).write_text("[pytest]\naddopts = ['-p', 'no:xdist']\n")
    for word, is_mentioned in (("no:xdist", True), ("--randomly", False)):
        command = ["bash", "-c", f'{function}\nmentions "$1"', "bash", word]
        assert (subprocess.run(command, cwd=tmp_path, check=False).returncode == 0) is is_mentioned
