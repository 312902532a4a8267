"""The unittest harness, run as the box runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import backends.testing
from backends.testing import junit

HARNESS = Path(backends.testing.__file__).parent / "harness" / "unittest_junit.py"
CASES = """
import unittest

class Base(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.assertEqual(1, 2)
    def test_errors(self): raise KeyError("x")
    def test_skips(self): self.skipTest("no")
    @unittest.expectedFailure
    def test_xfails(self): self.fail()
    @unittest.expectedFailure
    def test_xpasses(self): pass
    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("no")
    def test_never(self): pass
"""


def make_project(folder: Path) -> list[str]:
    (folder / "tests").mkdir()
    files = {
        "tests/__init__.py": "", "tests/test_a.py": CASES, "tests/test_b.py": "import not_there_at_all\n",
        "tests/test_c.py": "import unittest\nclass C(unittest.TestCase):\n    def test_c(self): pass\n",
        "runtests.py": "import sys, unittest\nsys.exit(not unittest.TextTestRunner().run("
        "unittest.defaultTestLoader.discover('tests', top_level_dir='.')).wasSuccessful())\n",
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text)
    return list(files)


@pytest.mark.parametrize(
    "words",
    [("-m", "unittest", "discover"), ("-m", "unittest"), ("runtests.py",)],
    ids=["discover", "plain", "own-runner"],
)
def test_a_suite_is_run_its_own_way_and_reported(words: tuple[str, ...], tmp_path: Path) -> None:
    known = make_project(tmp_path)
    command = [sys.executable, str(HARNESS), "--report", "out.xml", "--", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    report = junit.parse((tmp_path / "out.xml").read_bytes(), known)
    assert done.returncode == 1
    assert {test: outcome.status.value for test, outcome in report.outcomes.items()} == {
        "tests/test_a.py::Base::test_passes": "passed",
        "tests/test_a.py::Base::test_fails": "failed",
        "tests/test_a.py::Base::test_errors": "error",
        "tests/test_a.py::Base::test_skips": "skipped",
        "tests/test_a.py::Base::test_xfails": "xfailed",
        "tests/test_a.py::Base::test_xpasses": "failed",
        "tests/test_a.py::Base::test_parts": "failed",
        "tests/test_c.py::C::test_c": "passed",
    }
    assert set(report.uncollected) == {"tests/test_a.py", "tests/test_b.py"}
    assert "PASSED tests/test_c.py::C::test_c" in done.stdout
    assert report.outcomes["tests/test_a.py::Base::test_fails"].message == "AssertionError: 1 != 2"


def test_only_the_named_files_are_run_in_their_order(tmp_path: Path) -> None:
    known = make_project(tmp_path)
    (tmp_path / "list").write_text("tests/test_c.py\n")
    command = [
        sys.executable,
        str(HARNESS),
        "--report",
        "out.xml",
        "--files",
        "list",
        "--",
        "-m",
        "unittest",
        "discover",
    ]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    report = junit.parse((tmp_path / "out.xml").read_bytes(), known)
    assert list(report.outcomes) == ["tests/test_c.py::C::test_c"]
