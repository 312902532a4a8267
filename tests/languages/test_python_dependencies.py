"""What a Python project needs, read from its files and never run."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tests.languages.python_trees import TEST, plan_of, requirements


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
