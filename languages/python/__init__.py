"""Python: pytest and unittest, packages from the package index as of the change's day, by uv."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from importlib import resources
from itertools import pairwise
from pathlib import PurePosixPath

from languages.base import Canary, Framework
from languages.paths import is_test_file
from languages.python import fallbacks, testing
from languages.python.plan import draft, render
from languages.python.releases import DEFAULT, RELEASES
from languages.python.switches import SWITCHES
from languages.tree import Tree
from taskdb.records import BuildPlan

__all__ = [
    "CONFIG_PATTERNS",
    "DEFAULT",
    "FALLBACKS",
    "FRAMEWORKS",
    "KEPT_FOLDERS",
    "NAME",
    "PATH",
    "RELEASES",
    "RUNNER_PATTERNS",
    "SUFFIXES",
    "SWITCHES",
    "TEST_FILE",
    "TEST_PATTERNS",
    "TITLE",
    "defining_files",
    "draft",
    "render",
]  # fmt: skip

NAME, TITLE = "python", "Python"
SUFFIXES = (".py", ".pyx", ".pxd", ".pyi")
TEST_PATTERNS = (
    r"^(test|testing)/",  # deeper down these are often source: django/test, numpy/testing
    r"(^|/)test_[^/]*\.py$",
    r"(^|/)[^/]*_tests?\.py$",
    r"^tests?\.py$",
)
RUNNER_PATTERNS = (
    r"(^|/)conftest\.py$",
    r"(^|/)\.?pytest\.(ini|toml)$",
    r"(^|/)tox\.ini$",
    r"(^|/)(sitecustomize|usercustomize)\.py$",
    r"\.pth$",
    r"(^|/)\.coveragerc$",
    r"(^|/)noxfile\.py$",
)
CONFIG_PATTERNS = (r"(^|/)(pyproject\.toml|setup\.cfg)$",)
TEST_FILE = r"(^|/)(test_[^/]*|[^/]*_tests?|tests?)\.py$"
KEPT_FOLDERS: tuple[str, ...] = ()
PATH = ("/opt/venv/bin",)
FALLBACKS = fallbacks.FALLBACKS


def _canary_name(files: Sequence[str]) -> str:
    named = [PurePosixPath(file).name for file in files if is_test_file(file)]
    return '"${word}_test.py"' if named and all(name.endswith("_test.py") for name in named) else '"test_$word.py"'


def _shell(name: str) -> str:
    return resources.files("languages.python").joinpath(name).read_text(encoding="utf-8")


FRAMEWORKS = (
    Framework(
        name="pytest", shell=_shell("pytest.sh.j2"),
        canary=Canary(
            name=_canary_name, body=r"""printf 'def test_%s():\n    assert 3 * 4 == %s\n' "$word" "$sum" """.rstrip()
        ),
    ),
    Framework(
        name="unittest", shell=_shell("unittest.sh.j2"),
        canary=Canary(
            name=_canary_name,
            body=r"""printf 'import unittest\n\n\nclass Test(unittest.TestCase):\n"""
            r"""    def test_%s(self):\n        self.assertEqual(3 * 4, %s)\n' "$word" "$sum" """.rstrip(),
        ),
    ),
)  # fmt: skip


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files that define tests; with a plan those below its paths whose names its configuration takes in."""
    if plan is None:
        return testing.defining_files(tree)
    found = testing.defining_files(tree, plan.test.paths)
    patterns = testing.PytestConfig(tree).words("python_files") or ["test_*.py", "*_test.py"]
    if plan.test.framework == "unittest":
        patterns = [after for word, after in pairwise(plan.test.argv) if word == "-p"] or ["test*.py"]
    return [path for path in found if any(fnmatch(PurePosixPath(path).name, pattern) for pattern in patterns)] or found
