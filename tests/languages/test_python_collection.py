"""The files that must be collected are those that the runner finds: test suites that are data of tests are not."""

from __future__ import annotations

from pathlib import Path

from languages.python import PYTHON
from languages.python.plan import render_plan
from tests.languages.python_trees import build_draft, build_plan, list_requirements
from tests.languages.trees import build_tree

UNITTEST = "import unittest\n\n\nclass TestOne(unittest.TestCase):\n    def test_one(self):\n        pass\n"
FUNCTION = "def test_one():\n    pass\n"
PROJECT = {
    "setup.py": "from setuptools import setup\n\nsetup(name='demo', packages=['demo'])\n",
    "demo/__init__.py": "",
}


def find(tmp_path: Path, files: dict[str, str]) -> list[str]:
    plan = render_plan(build_draft(tmp_path / "draft", files))
    return PYTHON.find_test_files(build_tree(tmp_path / "tree", files), plan)


def test_discovery_of_unittest_enters_packages_only(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "demo/tests/__init__.py": "",
        "demo/tests/test_real.py": UNITTEST,
        "demo/tests/unit/__init__.py": "",
        "demo/tests/unit/test_real.py": UNITTEST,
        "demo/tests/support/scenario/test_data.py": UNITTEST,
        "demo/tests/support/package/__init__.py": "",
        "demo/tests/support/package/test_data.py": UNITTEST,
        "demo/tests/other.py": UNITTEST,
    }
    assert find(tmp_path, files) == ["demo/tests/test_real.py", "demo/tests/unit/test_real.py"]


def test_discovery_of_unittest_starts_in_the_package_of_a_namespace(tmp_path: Path) -> None:
    files = {
        "setup.py": "from setuptools import setup\n\nsetup(name='acme.demo', package_dir={'': 'src'})\n",
        "src/acme/demo/__init__.py": "",
        "src/acme/demo/tests.py": UNITTEST,
        "src/acme/demo/more/__init__.py": "",
        "src/acme/demo/more/test_more.py": UNITTEST,
        "src/acme/demo/data/test_data.py": UNITTEST,
    }
    plan = build_plan(tmp_path, files)
    assert plan.test.argv[3:] == ("discover", "-s", "src/acme/demo", "-p", "test*.py", "-t", "src")
    assert find(tmp_path, files) == ["src/acme/demo/more/test_more.py", "src/acme/demo/tests.py"]


def test_pytest_does_not_enter_the_folders_that_its_settings_exclude(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "pytest.ini": "[pytest]\ntestpaths = testing\nnorecursedirs = testing/example_scripts old*\n",
        "testing/test_real.py": FUNCTION,
        "testing/build/test_real.py": FUNCTION,
        "testing/example_scripts/collect/test_data.py": FUNCTION,
        "testing/older/test_data.py": FUNCTION,
        "testing/deep/older/test_data.py": FUNCTION,
    }
    assert find(tmp_path, files) == ["testing/build/test_real.py", "testing/test_real.py"]
    del files["pytest.ini"]
    assert "testing/build/test_real.py" not in find(tmp_path / "default", files)
    assert "testing/older/test_data.py" in find(tmp_path / "again", files)


def test_pytest_does_not_collect_what_a_conftest_ignores(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "tests/conftest.py": 'collect_ignore = ["data", "test_old.py"]\ncollect_ignore_glob = ["*_py2.py"]\n',
        "tests/test_real.py": FUNCTION,
        "tests/test_old.py": FUNCTION,
        "tests/test_names_py2.py": FUNCTION,
        "tests/data/inner/test_data.py": FUNCTION,
        "tests/more/conftest.py": "collect_ignore = [name for name in ()]\n",
        "tests/more/test_real.py": FUNCTION,
    }
    assert find(tmp_path, files) == ["tests/more/test_real.py", "tests/test_real.py"]


def test_pytest_does_not_collect_what_its_options_ignore(tmp_path: Path) -> None:
    settings = "--ignore=tests/test_old.py --strict-markers --ignore ./tests/data --ignore-glob=tests/*_py2.py"
    files = {
        **PROJECT,
        "tox.ini": f"[pytest]\naddopts = {settings}\n",
        "tests/test_real.py": FUNCTION,
        "tests/test_old.py": FUNCTION,
        "tests/test_names_py2.py": FUNCTION,
        "tests/data/test_data.py": FUNCTION,
        "tests/more/data/test_data.py": FUNCTION,
    }
    assert find(tmp_path, files) == ["tests/more/data/test_data.py", "tests/test_real.py"]


def test_files_with_all_tests_under_a_condition_are_not_expected(tmp_path: Path) -> None:
    header = "try:\n    import browser\nexcept ImportError:\n    browser = None\n\n"
    condition = f"{header}if browser:\n\n    class TestOne:\n        def test_one(self):\n            pass\n"
    files = {
        **PROJECT,
        "tests/test_browser.py": condition,
        "tests/test_some.py": f"{condition}\n\n{FUNCTION}",
        "tests/test_one.py": FUNCTION,
    }
    assert find(tmp_path, files) == ["tests/test_one.py", "tests/test_some.py"]


def test_suites_that_pytest_does_not_collect_need_no_packages(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "testing/test_real.py": "import attr\n\n\n" + FUNCTION,
        "testing/plugins/test_asyncio.py": "import pytest_asyncio\nimport yaml\n\n\n" + FUNCTION,
    }
    assert {"pyyaml", "pytest-asyncio"} <= list_requirements(build_plan(tmp_path / "all", files))
    files["pytest.ini"] = "[pytest]\nnorecursedirs = testing/plugins\n"
    requirements = list_requirements(build_plan(tmp_path / "some", files))
    assert not {"pyyaml", "pytest-asyncio"} & requirements


def test_a_project_that_provides_a_fixture_needs_no_plugin_for_it(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "demo/plugin.py": "def mocker():\n    pass\n",
        "tests/test_real.py": "def test_one(mocker):\n    pass\n",
    }
    assert "pytest-mock" in list_requirements(build_plan(tmp_path / "function", files))
    files["demo/plugin.py"] = "import pytest\n\n\n@pytest.fixture\ndef mocker():\n    pass\n"
    assert "pytest-mock" not in list_requirements(build_plan(tmp_path / "fixture", files))


def test_a_marker_needs_its_plugin_although_the_project_has_a_fixture_of_its_name(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "demo/plugin.py": "import pytest\n\n\n@pytest.fixture\ndef benchmark():\n    pass\n",
        "tests/test_real.py": "import pytest\n\n\n@pytest.mark.benchmark\ndef test_one(benchmark):\n    pass\n",
    }
    assert "pytest-benchmark" in list_requirements(build_plan(tmp_path, files))
