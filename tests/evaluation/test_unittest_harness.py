"""The unittest harness, run with its command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.reports import junit
from guest.harness import HARNESS_FOLDER

HARNESS = HARNESS_FOLDER / "unittest_junit.py"
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

class Parameters(unittest.TestCase):
    def __init__(self, n):
        super().__init__("test_it")
        self.n = n
    def id(self): return super().id() + "(%d)" % self.n
    def test_it(self): self.assertNotEqual(self.n, 1)

for name in ("a\\nb", "a\\x07b", "a\\x08b", "a\\ud800\\uffff", "<&>'\\\"]]>", "\\u00fc \\u6570"):
    setattr(Base, "test_" + name, lambda self: None)

def load_tests(loader, tests, pattern):
    kinds = [loader.loadTestsFromTestCase(kind) for kind in (Base, Broken, BrokenEnd)]
    return unittest.TestSuite(kinds + [Parameters(n) for n in range(3)])

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("no")
    def test_never(self): pass

class BrokenEnd(unittest.TestCase):
    @classmethod
    def tearDownClass(cls): raise RuntimeError("no")
    def test_before(self): pass

"""


def make_project(folder: Path) -> list[str]:
    (folder / "tests").mkdir()
    files = {
        "tests/__init__.py": "",
        "tests/test_a.py": CASES,
        "tests/test_b.py": "import not_there_at_all\n",
        "tests/test_c.py": "import unittest\nclass C(unittest.TestCase):\n    def test_c(self): pass\n",
        "runtests.py": "import sys, unittest\nsys.exit(not unittest.TextTestRunner().run("
        "unittest.defaultTestLoader.discover('tests', top_level_dir='.')).wasSuccessful())\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return list(files)


@pytest.mark.parametrize(
    "words",
    [("-m", "unittest", "discover"), ("-m", "unittest"), ("runtests.py",)],
    ids=["discover", "plain", "own-runner"],
)
def test_a_suite_runs_with_its_own_command_and_is_reported(words: tuple[str, ...], tmp_path: Path) -> None:
    files = make_project(tmp_path)
    command = [sys.executable, str(HARNESS), "--report", "out.xml", "--", *words]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    report = junit.parse_junit((tmp_path / "out.xml").read_bytes(), files)
    assert process.returncode == 1
    assert {test: outcome.status.value for test, outcome in report.outcomes.items()} == {
        "tests/test_a.py::Base::test_passes": "passed",
        "tests/test_a.py::Base::test_fails": "failed",
        "tests/test_a.py::Base::test_errors": "error",
        "tests/test_a.py::Base::test_skips": "skipped",
        "tests/test_a.py::Base::test_xfails": "xfailed",
        "tests/test_a.py::Base::test_xpasses": "failed",
        "tests/test_a.py::Base::test_parts": "failed",
        "tests/test_a.py::BrokenEnd::test_before": "passed",
        "tests/test_a.py::Base::test_a b": "passed",
        "tests/test_a.py::Base::test_a?b": "passed",
        "tests/test_a.py::Base::test_a?b #2": "passed",
        "tests/test_a.py::Base::test_a??": "passed",
        "tests/test_a.py::Base::test_<&>'\"]]>": "passed",
        "tests/test_a.py::Base::test_\xfc \u6570": "passed",
        "tests/test_a.py::Parameters::test_it": "passed",
        "tests/test_a.py::Parameters::test_it #2": "failed",
        "tests/test_a.py::Parameters::test_it #3": "passed",
        "tests/test_c.py::C::test_c": "passed",
    }
    assert set(report.uncollected) == {"tests/test_a.py", "tests/test_b.py"}
    assert "PASSED tests/test_c.py::C::test_c" in process.stdout
    assert report.outcomes["tests/test_a.py::Base::test_fails"].message == "AssertionError: 1 != 2"


def test_only_the_named_files_run_in_their_order(tmp_path: Path) -> None:
    files = make_project(tmp_path)
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
    report = junit.parse_junit((tmp_path / "out.xml").read_bytes(), files)
    assert list(report.outcomes) == ["tests/test_c.py::C::test_c"]
