"""Plans of Python projects."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.git import Repository
from backends.tree import Tree
from builders.bases import settled_first
from builders.layers import offline_first
from languages.draft import NoPlanError
from languages.python.plan import normal_version, render
from languages.python.switches import INSTALL_DEPENDENCIES
from tests.helpers import TinyRepo
from tests.languages.python_trees import DAY, HERE, TEST, draft_of, plan_at, plan_of, requirements, rungs
from tests.languages.trees import tree_of

MODERN = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling", "hatch-vcs"]
build-backend = "hatchling.build"

[project]
name = "greet"
requires-python = ">=3.8"
dependencies = ["attrs>=22"]
dynamic = ["version"]

[project.optional-dependencies]
tests = ["pytest", "simplejson"]
docs = ["sphinx"]
dev = ["greet[tests]", "tox"]

[tool.pytest.ini_options]
addopts = "-ra --cov=greet --strict-markers -n auto"
testpaths = ["tests"]
asyncio_mode = "auto"
filterwarnings = ["error"]
""",
    ".github/workflows/ci.yml": """\
on: push
jobs:
  tests:
    strategy:
      matrix:
        python: ["3.8", "3.10", "3.12", "3.13-dev"]
    steps:
      - run: |
          sudo apt-get install -y graphviz shellcheck
          pip install -e '.[tests]' tox
      - run: pytest tests
  docs:
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "3.11"}
      - run: pip install sphinx
""",
    "greet/__init__.py": "",
    "tests/test_greet.py": "import freezegun\nfrom greet import x\n\ndef test_one(mocker):\n    pass\n",
}


def test_a_modern_project_is_planned_from_its_ci_and_metadata(tmp_path: Path) -> None:
    made = plan_of(tmp_path, MODERN, version="v1.4.2")
    assert made.language_version == "3.12"
    assert made.exclude_newer == "2024-03-01"
    assert made.system_packages == ("graphviz",)
    assert requirements(made) == {
        "attrs>=22", "hatchling", "hatch-vcs", "editables", "pytest", "simplejson", "freezegun", "pytest-mock",
        "pytest-asyncio",
    }  # fmt: skip
    assert made.test.argv == ("pytest", "-o", "addopts=--strict-markers")
    assert "tee" not in requirements(made)
    assert made.test.paths == ("tests",)
    assert dict(made.env) == {
        "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", "SETUPTOOLS_SCM_PRETEND_VERSION": "1.4.2",
    }  # fmt: skip


def test_every_choice_names_its_file_and_line(tmp_path: Path) -> None:
    made = plan_of(tmp_path, MODERN)
    places = {(e.choice, e.value): (e.path, e.line) for e in made.evidence}
    assert places["language_version", "3.12"] == (".github/workflows/ci.yml", 6)
    assert places["dependency_steps", "attrs>=22"] == ("pyproject.toml", 8)
    assert places["dependency_steps", "freezegun"] == ("tests/test_greet.py", 1)
    assert places["system_packages", "graphviz"] == (".github/workflows/ci.yml", 9)
    assert places["test.paths", "tests"] == ("pyproject.toml", 18)


def test_the_same_tree_and_date_give_the_same_plan(tmp_path: Path) -> None:
    one, other = plan_of(tmp_path / "a", MODERN), plan_of(tmp_path / "b", MODERN)
    assert one.id == other.id


def test_commits_of_a_month_that_ask_for_the_same_share_their_dependency_layer(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, MODERN)
    early, late, next_month = (
        plan_at(tree, HERE, day) for day in (date(2024, 3, 2), date(2024, 3, 30), date(2024, 4, 1))
    )
    assert early.dependency_key == late.dependency_key != next_month.dependency_key


LEGACY = {
    "setup.py": """\
import sys
from setuptools import setup, find_packages

REQUIRES = ["six>=1.5"]
if sys.version_info[0] < 3:
    raise SystemExit("this file must never run on the host")
extras = {"fast": ["ujson"]}
extras["tests"] = open("requirements-test.txt").read().splitlines()
setup(name="old", install_requires=REQUIRES, extras_require=extras, tests_require=["mock"],
      classifiers=["Programming Language :: Python :: 3.5"])
""",
    "requirements-test.txt": "# tests\npytest==3.2.1\n-r more.txt\n",
    "more.txt": "pytz  # zones\n",
    "tox.ini": """\
[tox]
envlist = py27,py3{5,6},docs
[testenv]
deps = -rrequirements-test.txt
    flake8
commands = pytest {posargs}
""",
    ".travis.yml": 'language: python\npython:\n  - "2.7"\n  - "3.6"\ninstall: pip install tox\nscript: tox\n',
    "old.py": "",
    "test_old.py": TEST,
}


def test_a_setup_py_is_read_and_never_run(tmp_path: Path) -> None:
    made = plan_of(tmp_path, LEGACY, date(2017, 9, 9))
    assert made.language_version == "3.6"
    assert requirements(made) == {"six>=1.5", "setuptools", "wheel", "pytest==3.2.1", "pytz", "mock"}
    assert made.test.paths == ("test_old.py",)


def test_a_python_that_was_not_released_yet_is_not_taken(tmp_path: Path) -> None:
    made = plan_of(tmp_path, MODERN, date(2023, 9, 1))
    assert made.language_version == "3.10"


def test_without_evidence_the_newest_settled_python_of_the_date_is_taken(tmp_path: Path) -> None:
    files = {"a.py": "", "test_a.py": TEST}
    assert plan_of(tmp_path, files, date(2023, 1, 1)).language_version == "3.10"


def test_projects_older_than_every_python_here_get_the_nearest(tmp_path: Path) -> None:
    files = {"a.py": "", "test_a.py": TEST, "tox.ini": "[tox]\nenvlist=py33,py34\n"}
    made = plan_at(tree_of(tmp_path, files), ("3.9", "3.11"), date(2014, 6, 1))
    assert made.language_version == "3.9"


def test_a_project_that_knows_no_pytest_is_run_by_unittest(tmp_path: Path) -> None:
    body = "import unittest\nclass TestA(unittest.TestCase):\n    def test_one(self):\n        pass\n"
    made = plan_of(tmp_path, {"a.py": "", "tests/test_a.py": body})
    assert made.test.framework == "unittest"
    assert requirements(made) == {"setuptools", "wheel"}
    assert ("PYTHONPATH", "/testbed") in made.env
    assert made.source_steps == ()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"a.c": ""}, "no Python file"),
        ({"a.py": "", "tests/test_a.py": "# later\n"}, "no file in the tree defines tests"),
    ],
)
def test_a_tree_without_tests_has_no_plan(tmp_path: Path, files: dict[str, str], why: str) -> None:
    with pytest.raises(NoPlanError, match=why):
        plan_of(tmp_path, files)


def test_submodules_are_left_empty_and_noted(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    repo.commit("first", {"a.py": "", "test_a.py": TEST})
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/x")
    repo.git("commit", "-q", "-m", "submodule")
    made = plan_at(Tree(Repository(repo.path), repo.git("rev-parse", "HEAD")), HERE, DAY)
    assert [e.value for e in made.evidence if e.choice == "submodule"] == ["vendor/x"]


def test_each_rung_of_the_ladder_is_another_plan(tmp_path: Path) -> None:
    plans = [render(d) for d in rungs(draft_of(tmp_path, MODERN))]
    assert len({plan.id for plan in plans}) == len(plans) == 4
    assert [plan.exclude_newer for plan in plans] == ["2024-03-01"] + ["2024-03-18"] * 3
    assert [plan.language_version for plan in plans] == ["3.12"] * 3 + ["3.10"]
    assert "freezegun" not in requirements(plans[2])


def test_only_an_install_that_fetches_no_dependencies_is_tried_without_network(tmp_path: Path) -> None:
    drafts = rungs(draft_of(tmp_path, MODERN))
    assert [offline_first(render(one)) for one in drafts] == [
        INSTALL_DEPENDENCIES not in one.switches for one in drafts
    ]
    assert {INSTALL_DEPENDENCIES in one.switches for one in drafts} == {True, False}


@pytest.mark.parametrize(
    ("tag", "version"), [("v1.2", "1.2"), ("release-2.0.0rc1", "2.0.0rc1"), ("latest", "0.0.0"), ("", "0.0.0")]
)
def test_tags_give_versions(tag: str, version: str) -> None:
    assert normal_version(tag) == version


def test_a_base_that_changes_from_day_to_day_is_used_only_when_no_other_version_is_listed(tmp_path: Path) -> None:
    made = draft_of(tmp_path, MODERN)
    versions = [one.value for one in made.versions]
    assert len(versions) > 1
    moved = settled_first(made, {versions[0]})
    assert moved.versions[0].value == versions[1]
    assert sorted(one.value for one in moved.versions) == sorted(versions)
    assert settled_first(moved, set(versions)).versions == moved.versions


def test_optional_packages_are_installed_without_a_compiler(tmp_path: Path) -> None:
    steps = plan_at(tree_of(tmp_path, MODERN), HERE, DAY).dependency_steps
    optional = [step for step in steps if "left out" in step]
    assert len(optional) == 1
    assert "freezegun" in optional[0]
    assert optional[0].startswith("(export CC=false CXX=false;")
    assert not [step for step in steps if "CC=" in step and step not in optional]
