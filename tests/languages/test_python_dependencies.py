"""Requirements of Python projects, read from files without executing them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.languages.python_trees import TEST, build_plan, list_requirements


def test_poetry_constraints_become_pep_508(tmp_path: Path) -> None:
    plan = build_plan(
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
    assert list_requirements(plan) == {
        "requests>=2.25,<3",
        "tomli>=1.2,<1.3; python_version < '3.11'",
        "pytest>=7.1,<8",
        "poetry-core",
    }


def test_dependency_groups_include_each_other(tmp_path: Path) -> None:
    text = '[project]\nname="g"\n[dependency-groups]\nbase=["pytest>=8"]\ntests=[{include-group="base"},"pretend"]\n'
    plan = build_plan(tmp_path, {"pyproject.toml": text, "g.py": "", "tests/test_g.py": TEST})
    assert list_requirements(plan) == {"pytest>=8", "pretend", "setuptools", "wheel"}


LOCK = """\
pytest==7.2.2 ; python_full_version < '3.9'
pytest==8.1.1 ; python_full_version >= '3.9'
iniconfig==2.0.0
"""


def test_alternatives_for_different_pythons_in_a_lock_file_are_all_kept(tmp_path: Path) -> None:
    ci = "jobs:\n  build:\n    steps:\n      - run: pip install -r requirements-dev.lock\n      - run: pytest\n"
    files = {".github/workflows/tests.yml": ci, "requirements-dev.lock": LOCK, "setup.py": "", "test_one.py": TEST}
    assert list_requirements(build_plan(tmp_path, files)) >= set(LOCK.splitlines())


def test_a_requirement_for_old_pythons_does_not_replace_the_general_one(tmp_path: Path) -> None:
    ci = "jobs:\n  build:\n    steps:\n      - run: pip install -r a.txt -r b.txt\n      - run: pytest\n"
    lists = {"a.txt": "pytest==4.6 ; python_version < '3'\n", "b.txt": "pytest\n"}
    plan = build_plan(tmp_path, {".github/workflows/tests.yml": ci, "setup.py": "", "test_one.py": TEST} | lists)
    assert "pytest" in list_requirements(plan)


@pytest.mark.parametrize(
    "name",
    ["requirements-min.txt", "ci/requirements-minimum.txt", "test-requirements-lowest.txt", "lower-constraints.txt"],
)
def test_files_of_the_oldest_supported_versions_are_no_test_environment(tmp_path: Path, name: str) -> None:
    ci = f"jobs:\n  build:\n    steps:\n      - run: pip install -r test.txt -r {name}\n      - run: pytest\n"
    files = {name: "attrs==20.1\nsix==1.9\n", "test.txt": "pytest\nattrs>=22\n", "setup.py": "", "test_one.py": TEST}
    requirements = list_requirements(build_plan(tmp_path, {".github/workflows/tests.yml": ci} | files))
    assert requirements >= {"pytest", "attrs>=22"}
    assert not {requirement for requirement in requirements if "==" in requirement}


def test_factors_environments_and_sessions_of_the_oldest_and_unreleased_versions_are_left_out(tmp_path: Path) -> None:
    tox = """\
[tox]
envlist = py311, py311-min, oldest
[testenv]
deps =
    pytest
    min: attrs==20.1
    py39-min,oldest: six==1.9
    py311,min: mock
    !min: attrs>=22
    oldestdeps,minversions: idna==1.0
    devdeps: numpy>=0.0.dev0
    djangodev,nightly: django==99
    !devdeps: numpy
commands =
    pytest
[testenv:oldest]
deps = requests==2.0
commands = pytest
[testenv:py311-predeps]
deps = scipy==99
commands = pytest
"""
    nox = "def tests_lowest(session):\n    session.install('pytest', 'idna==2.0')\n    session.run('pytest')\n"
    plan = build_plan(tmp_path, {"tox.ini": tox, "noxfile.py": nox, "setup.py": "", "test_one.py": TEST})
    requirements = list_requirements(plan)
    assert requirements >= {"pytest", "mock", "attrs>=22", "numpy"}
    assert not {requirement for requirement in requirements if "==" in requirement or "dev" in requirement}


def test_an_environment_named_main_is_a_suite_and_a_branch_of_a_dependency_is_not(tmp_path: Path) -> None:
    tox = """\
[tox]
envlist = main, py311-django-main
[testenv]
deps =
    main: attrs
    main: https://example.org/django/archive/main.tar.gz
commands =
    echo
[testenv:main]
deps = mock
commands = pytest
[testenv:py311-django-main]
deps = six
commands = pytest
"""
    requirements = list_requirements(build_plan(tmp_path, {"tox.ini": tox, "setup.py": "", "test_one.py": TEST}))
    assert {"attrs", "mock"} <= requirements
    assert not {requirement for requirement in requirements if "six" in requirement or "example.org" in requirement}


def test_a_pin_of_the_oldest_numpy_for_isolated_builds_is_no_pin_of_the_tests(tmp_path: Path) -> None:
    project = (
        '[build-system]\nrequires = ["setuptools", "oldest-supported-numpy"]\nbuild-backend = "setuptools.build_meta"\n'
    )
    requirements = list_requirements(
        build_plan(tmp_path, {"pyproject.toml": project, "setup.py": "", "test_one.py": TEST})
    )
    assert "numpy" in requirements
    assert "oldest-supported-numpy" not in requirements


def test_a_second_suite_in_a_folder_of_its_own_is_left_out(tmp_path: Path) -> None:
    tox = "[testenv]\n{commands}deps = attrs\n\n[testenv:two]\nchangedir = {folder}\ndeps = django\ncommands = pytest\n"
    files = {"setup.py": "", "test_one.py": TEST}

    def plan(commands: str, folder: str) -> set[str]:
        text = tox.format(commands=commands, folder=folder)
        return list_requirements(build_plan(tmp_path / str(hash(text)), files | {"tox.ini": text}))

    assert {"attrs", "django"} & plan("commands = pytest\n", "testing/plugins") == {"attrs"}
    assert {"attrs", "django"} <= plan("commands = pytest\n", "{toxinidir}")
    assert {"attrs", "django"} <= plan("", "tests")


@pytest.mark.parametrize("name", ["requirements-admin-test.txt", "requirements-minimal-test.txt"])
def test_other_names_are_no_oldest_versions(tmp_path: Path, name: str) -> None:
    plan = build_plan(tmp_path, {name: "pytest\nattrs==20.1\n", "setup.py": "", "test_one.py": TEST})
    assert "attrs==20.1" in list_requirements(plan)


def test_nox_sessions_are_parsed(tmp_path: Path) -> None:
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
    plan = build_plan(tmp_path, {"noxfile.py": nox, "n.py": "", "tests/test_n.py": TEST})
    assert plan.language_version == "3.11"
    assert list_requirements(plan) == {"hypothesis", "pytest", "setuptools", "wheel"}


def test_only_imported_packages_of_a_conda_environment_are_required(tmp_path: Path) -> None:
    files = {
        "ci/requirements-py37.yml": "dependencies:\n- python=3.7\n- numpy=1.17\n- cartopy\n- pip:\n  - pretend\n",
        "m.py": "import numpy\n",
        "test_m.py": "import pretend\n" + TEST,
    }
    plan = build_plan(tmp_path, files, date(2020, 1, 1))
    assert plan.language_version == "3.7"
    assert list_requirements(plan) >= {"numpy==1.17.*", "pretend"}
    assert "cartopy" not in list_requirements(plan)


def test_a_complete_conda_environment_takes_precedence_over_a_minimal_one_for_a_newer_python(tmp_path: Path) -> None:
    rich = "dependencies:\n- python=3.7\n- numpy\n- scipy\n- pandas\n- dask\n"
    files = {
        "ci/py37.yml": rich,
        "ci/py38.yml": "dependencies:\n- python=3.8\n- numpy\n",
        "m.py": "",
        "test_m.py": TEST,
    }
    assert build_plan(tmp_path, files, date(2020, 1, 1)).language_version == "3.7"


def test_a_folded_yaml_script_is_split_into_commands(tmp_path: Path) -> None:
    workflow = (
        "jobs:\n  test:\n    steps:\n    - run:\n        python -m pip install --upgrade pip\n"
        "        pip install simplejson pytest\n    - run: pytest\n"
    )
    plan = build_plan(tmp_path, {".github/workflows/a.yml": workflow, "a.py": "", "test_a.py": TEST})
    assert "simplejson" in list_requirements(plan)
    assert not {"install", "pip"} & set(list_requirements(plan))


def test_optional_imports_of_tests_are_not_installed(tmp_path: Path) -> None:
    body = "try:\n    import simplejson\nexcept ImportError:\n    simplejson = None\n" + TEST
    plan = build_plan(tmp_path, {"a.py": "", "test_a.py": body})
    assert "simplejson" not in list_requirements(plan)


def test_invalid_files_are_ignored(tmp_path: Path) -> None:
    broken = {
        "pyproject.toml": "[",
        "setup.cfg": "x",
        "tox.ini": "[",
        "setup.py": "(",
        ".travis.yml": "a: [",
        "noxfile.py": "(",
    }
    plan = build_plan(tmp_path, {**broken, ".github/workflows/a.yml": "- 1", "a.py": "", "test_a.py": TEST})
    assert plan.test.framework == "pytest"
