"""Plans of Python projects."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.tree import CommitTree
from builders.bases import prefer_stable_versions
from builders.layers import can_install_offline
from languages.draft import NoPlanError
from languages.python.plan import normalize_version, render_plan
from languages.python.switches import INSTALL_DEPENDENCIES
from tests.helpers import TinyRepo
from tests.languages.python_trees import (
    DAY,
    HERE,
    TEST,
    build_draft,
    build_plan,
    build_plan_at,
    list_fallbacks,
    list_requirements,
)
from tests.languages.trees import build_tree

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
    plan = build_plan(tmp_path, MODERN, version="v1.4.2")
    assert plan.language_version == "3.12"
    assert plan.exclude_newer == "2024-03-01"
    assert plan.system_packages == ("graphviz",)
    assert list_requirements(plan) == {
        "attrs>=22",
        "hatchling",
        "hatch-vcs",
        "editables",
        "pytest",
        "simplejson",
        "freezegun",
        "pytest-mock",
        "pytest-asyncio",
    }
    assert plan.test.argv == ("pytest", "-o", "addopts=--strict-markers")
    assert "tee" not in list_requirements(plan)
    assert plan.test.paths == ("tests",)
    assert dict(plan.env) == {
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SETUPTOOLS_SCM_PRETEND_VERSION": "1.4.2",
    }


def test_every_choice_has_evidence_with_file_and_line(tmp_path: Path) -> None:
    plan = build_plan(tmp_path, MODERN)
    places = {(e.choice, e.value): (e.path, e.line) for e in plan.evidence}
    assert places["language_version", "3.12"] == (".github/workflows/ci.yml", 6)
    assert places["dependency_steps", "attrs>=22"] == ("pyproject.toml", 8)
    assert places["dependency_steps", "freezegun"] == ("tests/test_greet.py", 1)
    assert places["system_packages", "graphviz"] == (".github/workflows/ci.yml", 9)
    assert places["test.paths", "tests"] == ("pyproject.toml", 18)


def test_the_same_tree_and_date_give_the_same_plan(tmp_path: Path) -> None:
    plan, other = build_plan(tmp_path / "a", MODERN), build_plan(tmp_path / "b", MODERN)
    assert plan.id == other.id


def test_commits_of_one_month_with_equal_requirements_share_a_dependency_layer(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, MODERN)
    early, late, next_month = (
        build_plan_at(tree, HERE, day) for day in (date(2024, 3, 2), date(2024, 3, 30), date(2024, 4, 1))
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


def test_a_setup_py_is_parsed_and_never_executed(tmp_path: Path) -> None:
    plan = build_plan(tmp_path, LEGACY, date(2017, 9, 9))
    assert plan.language_version == "3.6"
    assert list_requirements(plan) == {"six>=1.5", "setuptools", "wheel", "pytest==3.2.1", "pytz", "mock"}
    assert plan.test.paths == ("test_old.py",)


def test_a_python_that_was_not_yet_released_is_not_selected(tmp_path: Path) -> None:
    plan = build_plan(tmp_path, MODERN, date(2023, 9, 1))
    assert plan.language_version == "3.10"


def test_without_evidence_the_newest_mature_python_at_the_date_is_selected(tmp_path: Path) -> None:
    files = {"a.py": "", "test_a.py": TEST}
    assert build_plan(tmp_path, files, date(2023, 1, 1)).language_version == "3.10"


def test_projects_older_than_every_available_python_get_the_nearest(tmp_path: Path) -> None:
    files = {"a.py": "", "test_a.py": TEST, "tox.ini": "[tox]\nenvlist=py33,py34\n"}
    plan = build_plan_at(build_tree(tmp_path, files), ("3.9", "3.11"), date(2014, 6, 1))
    assert plan.language_version == "3.9"


def test_a_project_without_pytest_uses_unittest(tmp_path: Path) -> None:
    body = "import unittest\nclass TestA(unittest.TestCase):\n    def test_one(self):\n        pass\n"
    plan = build_plan(tmp_path, {"a.py": "", "tests/test_a.py": body})
    assert plan.test.framework == "unittest"
    assert list_requirements(plan) == {"setuptools", "wheel"}
    assert ("PYTHONPATH", "/testbed") in plan.env
    assert plan.source_steps == ()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"a.c": ""}, "no Python file"),
        ({"a.py": "", "tests/test_a.py": "# later\n"}, "no file in the tree defines tests"),
    ],
)
def test_a_tree_without_tests_has_no_plan(tmp_path: Path, files: dict[str, str], why: str) -> None:
    with pytest.raises(NoPlanError, match=why):
        build_plan(tmp_path, files)


def test_submodules_are_reported_in_the_evidence(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    repo.commit("first", {"a.py": "", "test_a.py": TEST})
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/x")
    repo.git("commit", "-q", "-m", "submodule")
    plan = build_plan_at(CommitTree(GitRepository(repo.path), repo.git("rev-parse", "HEAD")), HERE, DAY)
    assert [e.value for e in plan.evidence if e.choice == "submodule"] == ["vendor/x"]


def test_each_fallback_gives_a_different_plan(tmp_path: Path) -> None:
    plans = [render_plan(d) for d in list_fallbacks(build_draft(tmp_path, MODERN))]
    assert len({plan.id for plan in plans}) == len(plans) == 4
    assert [plan.exclude_newer for plan in plans] == ["2024-03-01"] + ["2024-03-18"] * 3
    assert [plan.language_version for plan in plans] == ["3.12"] * 3 + ["3.10"]
    assert "freezegun" not in list_requirements(plans[2])


def test_only_an_install_without_dependencies_is_tried_offline(tmp_path: Path) -> None:
    drafts = list_fallbacks(build_draft(tmp_path, MODERN))
    assert [can_install_offline(render_plan(draft)) for draft in drafts] == [
        INSTALL_DEPENDENCIES not in draft.switches for draft in drafts
    ]
    assert {INSTALL_DEPENDENCIES in draft.switches for draft in drafts} == {True, False}


@pytest.mark.parametrize(
    ("tag", "version"), [("v1.2", "1.2"), ("release-2.0.0rc1", "2.0.0rc1"), ("latest", "0.0.0"), ("", "0.0.0")]
)
def test_versions_are_extracted_from_tags(tag: str, version: str) -> None:
    assert normalize_version(tag) == version


def test_a_rolling_base_is_used_only_if_no_other_version_is_listed(tmp_path: Path) -> None:
    draft = build_draft(tmp_path, MODERN)
    versions = [version.value for version in draft.versions]
    assert len(versions) > 1
    stable = prefer_stable_versions(draft, {versions[0]})
    assert stable.versions[0].value == versions[1]
    assert sorted(version.value for version in stable.versions) == sorted(versions)
    assert prefer_stable_versions(stable, set(versions)).versions == stable.versions


def test_the_environment_has_a_pip_of_the_date_that_starts_on_its_python(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, {"tests/test_a.py": TEST})
    make = 'uv venv --quiet --seed --exclude-newer 2024-03-01T00:00:00Z --python "$MERGEMILL_PYTHON" /opt/venv'
    assert build_plan_at(tree, ("3.11",), DAY).dependency_steps[0] == make
    # A pip of 2018 does not start on a Python of 2023, and uv builds nothing with a setuptools of 2018.
    old = build_plan_at(tree, ("3.12",), date(2018, 2, 17)).dependency_steps
    assert "--exclude-newer-package pip=2023-10-02T00:00:00Z" in old[0]
    assert "--exclude-newer-package setuptools=2019-03-07T00:00:00Z" in old[0]
    assert not [step for step in old[1:] if "package pip=" in step]


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("pyproject.toml", '[tool.uv]\nexclude-newer = "7 days"\n', [5]),
        ("pyproject.toml", "[tool.uv]\nexclude-newer-package = { attrs = false }\n", [5]),
        ("pyproject.toml", '[tool.uv.pip]\nexclude-newer = "2030-01-01"\n', [5]),
        ("uv.toml", 'exclude-newer = "7 days"\n', [1]),
        ("pyproject.toml", "[tool.uv]\npackage = true\n", []),
        ("uv.toml", '[pip]\nexclude-newer = "7 days"\n', [2]),
    ],
)
def test_uv_reads_no_settings_of_a_project_that_hides_packages_by_their_age(
    path: str, text: str, lines: list[int], tmp_path: Path
) -> None:
    files = {"pyproject.toml": '[project]\nname = "greet"\nversion = "1"\n', "tests/test_a.py": TEST}
    plan = build_plan(tmp_path, {**files, path: files.get(path, "") + text})
    assert [entry.line for entry in plan.evidence if entry.choice == "age_gate"] == lines
    [step] = plan.source_steps
    assert step.count("uv pip install --no-progress --no-config ") == (2 if lines else 0)


def test_optional_packages_are_installed_without_a_compiler(tmp_path: Path) -> None:
    steps = build_plan_at(build_tree(tmp_path, MODERN), HERE, DAY).dependency_steps
    optional = [step for step in steps if "left out" in step]
    assert len(optional) == 1
    assert "freezegun" in optional[0]
    assert optional[0].startswith("(export CC=false CXX=false;")
    assert not [step for step in steps if "CC=" in step and step not in optional]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("pytest==2.3.4", "pytest"),
        ("pytest>=2.8,<3.0", "pytest"),
        ("pytest~=2.9", "pytest"),
        ("pytest<=2.9.2", "pytest"),
        ("pytest<3.3", "pytest<3.3"),
        ("pytest==3.2.1", "pytest==3.2.1"),
        ("pytest<30", "pytest<30"),
    ],
)
def test_versions_of_pytest_that_no_python_here_supports_are_lifted(
    requirement: str, expected: str, tmp_path: Path
) -> None:
    files = {"setup.py": "", "test_a.py": TEST, "tox.ini": f"[testenv]\ndeps = {requirement}\ncommands = pytest\n"}
    plan = build_plan(tmp_path, files, date(2013, 11, 29))
    assert {listed for listed in list_requirements(plan) if listed.startswith("pytest")} == {expected}
    assert "--exclude-newer-package pytest=2016-12-07T00:00:00Z" in "\n".join(plan.dependency_steps)


def test_the_runner_is_no_optional_package(tmp_path: Path) -> None:
    files = {"setup.py": "", "test_a.py": f"import pytest\n{TEST}", "requirements.txt": "pytest==3.2.1\n"}
    steps = "\n".join(build_plan(tmp_path, files).dependency_steps)
    assert "printf '%s\\n' pytest setuptools wheel > /tmp/requirements.txt" in steps
    assert 'left out: $one"' in steps


@pytest.mark.parametrize(("name", "is_copied"), [("py", True), ("pytest", True), ("kettle", False)])
def test_metadata_of_a_runner_in_its_tree_gets_a_copy(name: str, is_copied: bool, tmp_path: Path) -> None:
    setup = f"from setuptools import setup\nsetup(name='{name}', version='1', package_dir={{'': 'src'}})\n"
    plan = build_plan(tmp_path, {"setup.py": setup, f"src/{name}.py": "", "test_a.py": TEST}, date(2019, 9, 9))
    assert (f"-name {name}.egg-info" in plan.source_steps[0]) is is_copied


@pytest.mark.parametrize("value", ["3", '"text"', "[3]", "{a = 3}", "true"])
@pytest.mark.parametrize(
    "key",
    [
        *(
            "build-system",
            "project",
            "dependency-groups",
            "tool",
            "build-system.requires",
            "build-system.build-backend",
        ),
        *(f"project.{name}" for name in ("name", "dependencies", "classifiers", "optional-dependencies", "version")),
        *("project.requires-python", "project.optional-dependencies.a", "dependency-groups.a", "tool.pdm"),
        *("tool.poetry", "tool.poetry.name", "tool.poetry.dependencies", "tool.poetry.dependencies.a"),
        *("tool.poetry.group", "tool.poetry.group.a", "tool.poetry.group.a.dependencies", "tool.poetry.extras"),
        *("tool.pdm.dev-dependencies", "tool.uv", "tool.uv.dev-dependencies", "tool.hatch", "tool.hatch.envs"),
        *("tool.hatch.envs.a", "tool.hatch.envs.a.dependencies", "tool.pytest", "tool.pytest.ini_options", "tool.tox"),
        *("tool.pytest.ini_options.addopts", "tool.setuptools", "tool.setuptools_scm", "tool.tox.legacy_tox_ini"),
    ],
)
def test_values_of_wrong_types_in_a_manifest_are_no_crash(key: str, value: str, tmp_path: Path) -> None:
    files = {"pyproject.toml": f"{key} = {value}\n", "Pipfile": f"dev-packages = {value}\n"}
    build_plan(tmp_path, {**files, "greet.py": "", "tests/test_a.py": TEST})
