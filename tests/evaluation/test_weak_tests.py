"""Tests that are weak evidence are named: skipped without a package, reported twice, in files that assert nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from evaluation.lists import make_lists
from evaluation.reports.junit import parse_junit
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.weak_tests.assertions import asserts_nothing
from evaluation.weak_tests.find import TreeSource, describe_skips, find_weak_tests
from evaluation.weak_tests.skips import find_skipping_tests
from evaluation.weak_tests.source import ParsedFile, parse_file
from mergemill.cli.queries.change_report import format_verification
from taskdb.records import RunVariant, Weakness, WeakTest
from tests.helpers import TinyRepo

# Each file has tests named `skipped...`, which need a package, and others, which do not.
SKIPS = {
    "a call that skips its test": (
        "tests/test_a.py",
        """import pytest
def test_skipped():
    np = pytest.importorskip("numpy")
    assert np
def test_b():
    assert 1
""",
        ["test_skipped", "test_b"],
    ),
    "a call that skips its file": (
        "tests/test_a.py",
        'import pytest\nnp = pytest.importorskip("numpy", minversion="1.2")\ndef test_skipped():\n    assert np\n',
        ["test_skipped", "TestX::test_skipped_too"],
    ),
    "a decorator with a name that an import binds": (
        "tests/test_a.py",
        """
import unittest
try:
    import numpy as np
    from yaml import load, dump
except ImportError:
    np = load = None
class TestA(unittest.TestCase):
    @unittest.skipIf(np is None, "needs numpy")
    def test_skipped(self):
        self.assertTrue(np)
    @unittest.skipUnless(load, "needs yaml")
    def test_skipped_too(self):
        self.assertTrue(load)
    @unittest.skipIf(sys.platform == "win32", "not there")
    def test_b(self):
        self.assertTrue(1)
""",
        ["TestA::test_skipped", "TestA::test_skipped_too", "TestA::test_b"],
    ),
    "a decorator with a name of its own": (
        "tests/test_a.py",
        """
import importlib.util
import pytest
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
needs_numpy = pytest.mark.skipif(not HAS_NUMPY, reason="no numpy")
@needs_numpy
@pytest.mark.parametrize("x", [1])
def test_skipped(x):
    assert x
@needs_numpy
class TestSkipped:
    def test_one(self):
        assert 1
def test_b():
    assert HAS_NUMPY or True
""",
        ["test_skipped[1]", "TestSkipped::test_one", "test_b"],
    ),
    "a mark of the whole file": (
        "tests/test_a.py",
        """
import shutil
import pytest
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_skipped():
    assert 1
""",
        ["test_skipped"],
    ),
    "a fixture": (
        "tests/test_a.py",
        """
import pytest
@pytest.fixture
def np():
    return pytest.importorskip("numpy")
def test_skipped(np):
    assert np
def test_b():
    assert 1
""",
        ["test_skipped", "test_b"],
    ),
    "an early return": (
        "tests/test_a.py",
        """
try:
    import numpy
except ModuleNotFoundError:
    numpy = None
def test_skipped():
    if numpy is None:
        return
    assert 1
def test_b():
    if numpy is None:
        raise ValueError
    assert 1
""",
        ["test_skipped", "test_b"],
    ),
    "a skip in the handler of an import": (
        "tests/test_a.py",
        """
import unittest
class T(unittest.TestCase):
    def setUp(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
    def test_skipped(self):
        assert 1
class U(unittest.TestCase):
    def test_b(self):
        self.skipTest("never")
""",
        ["T::test_skipped", "U::test_b"],
    ),
    "Go": (
        "a_test.go",
        """
package a
func TestSkipped(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
}
func TestSkippedToo(t *testing.T) {
	_, err := exec.LookPath("git")
	if err != nil {
		t.Skipf("no git: %v", err)
	}
}
func TestB(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Run("is skipped", func(t *testing.T) {
		if _, err := exec.LookPath("git"); err != nil {
			t.SkipNow()
		}
	})
	t.Run("b", func(t *testing.T) {})
}
""",
        ["TestSkipped", "TestSkippedToo", "TestB", "TestB/is_skipped", "TestB/b"],
    ),
    "JavaScript": (
        "test/a.test.js",
        """
let sharp;
try { sharp = require("sharp"); } catch (error) { sharp = null; }
const withSharp = sharp !== null ? it : it.skip;
describe("group", () => {
  it.skipIf(!sharp)("is skipped", () => { expect(1).toBe(1); });
  withSharp("is skipped too", () => { expect(1).toBe(1); });
  it("skips nothing", () => { expect(1).toBe(1); });
});
""",
        ["group is skipped", "group is skipped too", "group skips nothing"],
    ),
    "Java": (
        "src/test/java/ATest.java",
        """
class ATest {
  @Test void isSkipped() {
    Assumptions.assumeTrue(ClassUtils.isPresent("x.Y", null));
    assertEquals(1, 1);
  }
  @Test void b() {
    Assumptions.assumeTrue(Runtime.version().feature() > 1);
    assertEquals(1, 1);
  }
}
""",
        ["ATest::isSkipped", "ATest::b"],
    ),
    "Ruby": (
        "spec/a_spec.rb",
        """
begin
  require "nokogiri"
  HAS_XML = true
rescue LoadError
  HAS_XML = false
end
describe "group" do
  it "is skipped" do
    skip "no nokogiri" unless HAS_XML
    expect(1).to eq 1
  end
  it "is b" do
    expect(1).to eq 1
  end
end
""",
        ["group is skipped", "group is b"],
    ),
    "PHP": (
        "tests/ATest.php",
        """<?php
class ATest extends TestCase {
  public function testSkipped() {
    if (!extension_loaded('intl')) {
      $this->markTestSkipped('no intl');
    }
    $this->assertTrue(true);
  }
  public function testB() { $this->assertTrue(true); }
}
""",
        ["ATest::testSkipped", "ATest::testB"],
    ),
}


def parse(path: str, text: str) -> ParsedFile:
    file = parse_file(path, text.encode())
    assert file is not None
    return file


@pytest.mark.parametrize("name", SKIPS)
def test_a_test_that_is_skipped_without_a_package_is_named(name: str) -> None:
    path, text, names = SKIPS[name]
    tests = [f"{path}::{test}" for test in names]
    skips = find_skipping_tests(parse(path, text), tests)
    assert list(skips) == [test for test in tests if "skipped" in test.lower()]
    lines = text.splitlines()
    for quote in skips.values():
        place, _, quoted = quote.partition(": ")
        assert quoted in lines[int(place.rpartition(":")[2]) - 1]


ASSERTING = {
    "a statement": "def test_a():\n    assert f()\n",
    "a method": "def test_a(self):\n    self.assertEqual(1, 1)\n",
    "an expected exception": "def test_a():\n    with pytest.raises(E):\n        f()\n",
    "a function of its own": "def check(x):\n    if x: raise ValueError\ndef test_a():\n    check(1)\n",
    "an example in its documentation": '"""\n>>> f()\n1\n"""\n',
    "a helper by name": "from tests.helpers import run\ndef test_a():\n    run(1)\n",
    "a helper of its package": "from tests import helpers\ndef test_a():\n    helpers.run(1)\n",
    "a fixture that asserts": "def test_a(checked):\n    f(checked)\n",
}
VACUOUS = {
    "calls": "from shop import f\ndef test_a():\n    f(1)\n    print('done')\n",
    "a helper that only returns": "from tests.values import make\ndef test_a():\n    make(1)\n",
    "another test file of its folder": "def test_a():\n    make(1)\n",
}
HELPERS = {
    "tests/helpers.py": "def run(x):\n    assert x\n",
    "tests/values.py": "def make(x):\n    return x\n",
    "tests/test_other.py": "def test_other():\n    assert 1\n",
}


def is_vacuous(text: str, helpers: dict[str, str], path: str = "tests/test_a.py") -> bool:
    files = {name: parse(name, content) for name, content in helpers.items()}
    return asserts_nothing(parse(path, text), [*files, path], files.get)


@pytest.mark.parametrize("name", ASSERTING)
def test_a_file_that_asserts_by_itself_or_by_a_helper_is_not_vacuous(name: str) -> None:
    conftest = {"tests/conftest.py": "def checked():\n    assert 1\n"} if "fixture" in name else {}
    assert not is_vacuous(ASSERTING[name], HELPERS | conftest)


@pytest.mark.parametrize("name", VACUOUS)
def test_a_file_that_asserts_nothing_is_vacuous(name: str) -> None:
    assert is_vacuous(VACUOUS[name], {k: v for k, v in HELPERS.items() if k != "tests/helpers.py"})


def test_helpers_of_a_package_that_are_not_imported_count() -> None:
    helper = "package a\nfunc compare(t *testing.T) {\n\tt.Fatal()\n}\nfunc TestB(t *testing.T) { compare(t) }\n"
    calling = "package a\nfunc TestA(t *testing.T) {\n\tcompare(t)\n}\n"
    assert not is_vacuous(calling, {"b_test.go": helper}, "a_test.go")
    assert is_vacuous(calling, {"b_test.go": helper.replace("compare", "other")}, "a_test.go")


ROW = '<testcase classname="tests.test_a" name="{}">{}</testcase>'
FAILURE, SKIPPED = '<failure message="assert 0"/>', '<skipped message="no numpy"/>'
TEARDOWN = '<error message="failed on teardown with &quot;ValueError&quot;"/>'


def report(*rows: tuple[str, str]) -> EvaluationReport:
    content = "".join(ROW.format(name, inner) for name, inner in rows)
    return parse_junit(f"<testsuites><testsuite>{content}</testsuite></testsuites>".encode(), {"tests/test_a.py"})


def test_a_test_that_is_reported_twice_keeps_all_its_statuses() -> None:
    twice = report(("a", ""), ("a", FAILURE), ("b", ""), ("c", ""), ("c", TEARDOWN))
    assert twice.repeated == {"tests/test_a.py::a": ("passed", "failed")}
    assert EvaluationReport.from_bytes(twice.to_bytes()).repeated == twice.repeated
    assert twice.keep_files(["other.py"]).repeated == twice.without_files(["tests/test_a.py"]).repeated == {}
    assert b"repeated" not in report(("a", "")).to_bytes(), "reports of earlier versions have the same bytes"


def test_a_test_that_is_reported_with_different_statuses_is_in_no_list() -> None:
    """Its worst status alone would make it FAIL_TO_PASS: one of the two tests of this id passes before the fix."""
    before = report(("a", ""), ("a", FAILURE), ("b", FAILURE), ("b", FAILURE), ("c", ""), ("c", ""))
    after = report(*[(name, "") for name in "aabbcc"])
    lists = make_lists([before], [after])
    assert [test for test, _ in lists.fail_to_pass] == ["tests/test_a.py::b"]
    assert lists.pass_to_pass == ("tests/test_a.py::c",)
    (flaky,) = lists.flaky
    assert (flaky.test, flaky.counts[RunVariant.TEST_ONLY]) == ("tests/test_a.py::a", {"passed": 1, "failed": 1})
    assert lists.flaky_fail_to_pass == ("tests/test_a.py::a",)


def test_skips_of_most_tests_are_described() -> None:
    mostly = report(*[(str(number), SKIPPED) for number in range(9)], ("a", ""))
    assert describe_skips(mostly) == "9 of 10 tests and files are skipped, 9 of them for: no numpy"
    assert not describe_skips(report(("a", SKIPPED), ("b", ""), ("c", "")))
    assert not describe_skips(report())
    module = EvaluationReport(outcomes={}, uncollected={"tests/test_a.py": "collection skipped: no numpy"})
    assert describe_skips(module) == "1 of 1 tests and files are skipped, 1 of them for: collection skipped: no numpy"


def test_the_reason_of_a_module_that_is_skipped_is_kept() -> None:
    skip = '<skipped message="collection skipped">(\'/testbed/tests/test_a.py\', 1, "Skipped: no numpy")</skipped>'
    row = f'<testcase classname="" name="tests.test_a">{skip}</testcase>'
    content = f"<testsuites><testsuite>{row}</testsuite></testsuites>"
    parsed = parse_junit(content.encode(), {"tests/test_a.py"})
    assert parsed.uncollected["tests/test_a.py"].startswith("collection skipped")
    assert "no numpy" in describe_skips(parsed)


def test_weak_tests_are_found_in_the_patched_tree(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    base = repo.commit("Start", {"tests/test_old.py": "def test_old():\n    f()\n", "shop.py": "x = 1\n"})
    files = {"tests/test_new.py": SKIPS["a call that skips its test"][1]}
    merge = repo.commit("Test", files)
    patch = GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", base, merge)
    old, new, other = "tests/test_old.py::test_old", "tests/test_new.py::test_skipped", "tests/test_new.py::test_b"
    skipped = "tests/test_new.py::test_c"
    outcome = Outcome(status=OutcomeStatus.SKIPPED, message="no numpy")
    gold = EvaluationReport(outcomes={skipped: outcome}, uncollected={}, repeated={other: ("passed", "passed")})
    tree = TreeSource(repository=GitRepository(repo.path), base=base, patches=(b"", patch))
    weak = find_weak_tests([old, new, other], [gold, gold], tree, changed_files=list(files))
    assert weak == (
        WeakTest(test=other, weakness=Weakness.REPEATED, evidence="2 rows in the report of a gold run"),
        WeakTest(test=skipped, weakness=Weakness.SKIPPED, evidence="no numpy"),
        WeakTest(
            test=new,
            weakness=Weakness.SKIPS,
            evidence='tests/test_new.py:3: pytest.importorskip("numpy")',
        ),
        WeakTest(
            test=old,
            weakness=Weakness.ASSERTS_NOTHING,
            evidence="tests/test_old.py: no assertion in the file, or in a helper that it names",
        ),
    )


def test_weak_tests_and_a_share_of_skips_are_shown_with_the_verification() -> None:
    weak = WeakTest(test="a.py::b", weakness=Weakness.SKIPS, evidence="a.py:3: importorskip")
    shown = {"written_tests": None, "dropped_canaries": False, "flaky": {}, "weak_tests": [], "skipped_share": 0.1}
    shown["incidental_files"] = ["uv.lock"]
    assert "weak" not in format_verification(shown)
    assert format_verification(shown).endswith("; incidental files left out of the gold patch: uv.lock")
    text = format_verification(shown | {"weak_tests": [weak.model_dump(mode="json")], "skipped_share": 0.97})
    assert "weak tests: a.py::b (skips-without-package: a.py:3: importorskip); 97% of the tests are skipped" in text
