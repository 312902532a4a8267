from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.git import Repository
from backends.tree import Tree
from builders.bases import settled_first
from builders.layers import offline_first
from languages import python
from languages.draft import Context, Draft, NoPlanError
from languages.python.plan import normal_version, render
from languages.python.switches import INSTALL_DEPENDENCIES
from taskdb.records import BuildPlan
from tests.helpers import TinyRepo

HERE = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
DAY = date(2024, 3, 17)
TEST = "def test_one():\n    assert True\n"


def tree_of(tmp_path: Path, files: dict[str, str]) -> Tree:
    repo = TinyRepo(tmp_path / "repo")
    return Tree(Repository(repo.path), repo.commit("first", files))


def plan_of(tmp_path: Path, files: dict[str, str], day: date = DAY, version: str = "") -> BuildPlan:
    return render(draft_of(tmp_path, files, day, version))


def plan_at(tree: Tree, available: tuple[str, ...], day: date) -> BuildPlan:
    return render(python.draft(tree, Context(available=lambda: available, day=day)))


def draft_of(tmp_path: Path, files: dict[str, str], day: date = DAY, version: str = "") -> Draft:
    return python.draft(tree_of(tmp_path, files), Context(available=lambda: HERE, day=day, version=version))


def requirements(made: BuildPlan) -> set[str]:
    return {e.value for e in made.evidence if e.choice == "dependency_steps"}


def rungs(first: Draft) -> list[Draft]:
    """The draft and what the fallbacks make of it one after the other, each different from the one before."""
    found = [first]
    for fallback in python.FALLBACKS:
        if (changed := fallback(found[-1])) != found[-1]:
            found.append(changed)
    return found


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


def test_poetry_constraints_become_pep_508(tmp_path: Path) -> None:
    made = plan_of(
        tmp_path,
        {
            "pyproject.toml": """\
[tool.poetry]
name = "p"
[tool.poetry.dependencies]
python = "^3.8"
requests = "^2.25"
tomli = {version = "~1.2", python = "<3.11"}
[tool.poetry.group.test.dependencies]
pytest = "^7.1"
[build-system]
requires = ["poetry-core"]
build-backend = "poetry.core.masonry.api"
""",
            "p.py": "",
            "test_p.py": TEST,
        },
    )
    assert requirements(made) == {
        "requests>=2.25,<3", "tomli>=1.2,<1.3; python_version < '3.11'", "pytest>=7.1,<8", "poetry-core",
    }  # fmt: skip


def test_dependency_groups_include_each_other(tmp_path: Path) -> None:
    text = '[project]\nname="g"\n[dependency-groups]\nbase=["pytest>=8"]\ntests=[{include-group="base"},"pretend"]\n'
    made = plan_of(tmp_path, {"pyproject.toml": text, "g.py": "", "tests/test_g.py": TEST})
    assert requirements(made) == {"pytest>=8", "pretend", "setuptools", "wheel"}


LOCK = """\
pytest==7.2.2 ; python_full_version < '3.9'
pytest==8.1.1 ; python_full_version >= '3.9'
iniconfig==2.0.0
"""


def test_a_lock_that_has_a_version_for_each_python_keeps_them_all(tmp_path: Path) -> None:
    ci = "jobs:\n  build:\n    steps:\n      - run: pip install -r requirements-dev.lock\n      - run: pytest\n"
    files = {".github/workflows/tests.yml": ci, "requirements-dev.lock": LOCK, "setup.py": "", "test_one.py": TEST}
    assert requirements(plan_of(tmp_path, files)) >= set(LOCK.splitlines())


def test_a_version_for_old_pythons_does_not_stand_for_all(tmp_path: Path) -> None:
    ci = "jobs:\n  build:\n    steps:\n      - run: pip install -r a.txt -r b.txt\n      - run: pytest\n"
    lists = {"a.txt": "pytest==4.6 ; python_version < '3'\n", "b.txt": "pytest\n"}
    made = plan_of(tmp_path, {".github/workflows/tests.yml": ci, "setup.py": "", "test_one.py": TEST} | lists)
    assert "pytest" in requirements(made)


def test_nox_sessions_are_read_by_their_syntax_tree(tmp_path: Path) -> None:
    nox = """\
import nox
@nox.session(python=["3.9", "3.11"])
def tests(session):
    session.install("-e", ".[extra]", "hypothesis")
    session.run("python", "-m", "pytest", "tests/")
@nox.session
def lint(session):
    session.install("pytest-pylint")
    session.run("pytest", "--pylint")
"""
    made = plan_of(tmp_path, {"noxfile.py": nox, "n.py": "", "tests/test_n.py": TEST})
    assert made.language_version == "3.11"
    assert requirements(made) == {"hypothesis", "pytest", "setuptools", "wheel"}


def test_of_a_conda_environment_only_what_is_imported_is_taken(tmp_path: Path) -> None:
    files = {
        "ci/requirements-py37.yml": "dependencies:\n- python=3.7\n- numpy=1.17\n- cartopy\n- pip:\n  - pretend\n",
        "m.py": "import numpy\n",
        "test_m.py": "import pretend\n" + TEST,
    }
    made = plan_of(tmp_path, files, date(2020, 1, 1))
    assert made.language_version == "3.7"
    assert requirements(made) >= {"numpy==1.17.*", "pretend"}
    assert "cartopy" not in requirements(made)


def test_a_thin_environment_for_a_new_python_gives_way_to_a_rich_one(tmp_path: Path) -> None:
    rich = "dependencies:\n- python=3.7\n- numpy\n- scipy\n- pandas\n- dask\n"
    files = {
        "ci/py37.yml": rich,
        "ci/py38.yml": "dependencies:\n- python=3.8\n- numpy\n",
        "m.py": "",
        "test_m.py": TEST,
    }
    assert plan_of(tmp_path, files, date(2020, 1, 1)).language_version == "3.7"


def test_a_folded_script_holds_commands_of_their_own(tmp_path: Path) -> None:
    workflow = (
        "jobs:\n  test:\n    steps:\n    - run:\n        python -m pip install --upgrade pip\n"
        "        pip install simplejson pytest\n    - run: pytest\n"
    )
    made = plan_of(tmp_path, {".github/workflows/a.yml": workflow, "a.py": "", "test_a.py": TEST})
    assert "simplejson" in requirements(made)
    assert not {"install", "pip"} & set(requirements(made))


def test_optional_imports_of_tests_are_not_installed(tmp_path: Path) -> None:
    body = "try:\n    import simplejson\nexcept ImportError:\n    simplejson = None\n" + TEST
    made = plan_of(tmp_path, {"a.py": "", "test_a.py": body})
    assert "simplejson" not in requirements(made)


def test_broken_files_are_no_reason_to_fail(tmp_path: Path) -> None:
    broken = {
        "pyproject.toml": "[",
        "setup.cfg": "x",
        "tox.ini": "[",
        "setup.py": "(",
        ".travis.yml": "a: [",
        "noxfile.py": "(",
    }
    made = plan_of(tmp_path, {**broken, ".github/workflows/a.yml": "- 1", "a.py": "", "test_a.py": TEST})
    assert made.test.framework == "pytest"


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
