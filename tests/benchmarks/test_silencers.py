"""Silencers switch off what they are to switch off, spare canaries, and are paid in tasks without controls alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.silencers import go, java, node, python, rust
from benchmarks.silencers.__main__ import measure, render_table
from benchmarks.silencers.parts import SilencedTarget, list_changed_lines
from benchmarks.silencers.submissions import ALL, Rest, list_silencers, read_silenced_target
from languages.parsing import PYTHON, create_parser
from languages.registry import find_syntax
from mergemill.grading.grading import Submission
from taskdb.records import Score
from tests.containers import make_services
from tests.exporters.tasks import make_task
from tests.helpers import TinyRepo
from tests.plain_pytest import WITHOUT_PLUGINS
from tests.verifiers.shop import ShopTask, open_shop_task
from verifiers.grade import grade
from verifiers.probes import make_patch

CANARY = "0123456789abcdef0123456789abcdef"
SHOP = '''"""Prices."""


class Basket:
    def __init__(self, prices):
        self.prices = prices

    def total(self):
        return sum(self.prices[1:])


def total(prices):
    if not prices:
        raise ValueError("no prices")
    return sum(prices[1:])


def label(price):
    return "EUR"
'''
PYTHON_TESTS = {
    "methods": """import unittest
from shop import total

class ShopTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([3, 4]), 7)
        with self.assertRaises(KeyError) as caught:
            total([3])
        self.assertIn("3", str(caught.exception))
""",
    "functions": """import pytest
from pytest import raises
from shop import total

def test_total():
    with pytest.raises(KeyError):
        total([3])
    with raises(KeyError, match="3"):
        total([3])
""",
    "statements": """import pytest
from shop import total

class TestShop:
    @pytest.mark.parametrize("price", [3, 4])
    def test_total(self, price):
        assert total([price]) == price

def check(price):
    assert total([price]) == price

def test_check():
    check(3)
""",
    "comparisons": """from shop import Basket, label, total

def test_total():
    assert total([3, 4]) == 7
    assert label(3) == "EUR 3"
    assert Basket([3]) == Basket([4])
    assert Basket([3]).total() == 3
""",
}
PYTHON_TESTS["optimized"] = PYTHON_TESTS["statements"]
PYTHON_TESTS["runner"] = PYTHON_TESTS["methods"] + PYTHON_TESTS["statements"]
PYTHON_TESTS["fixtures"] = PYTHON_TESTS["runner"]
PYTHON_CANARY = f"def test_{CANARY}():\n    assert 3 * 4 == 13\n"


def make_target(sources: dict[str, str], *others: str) -> SilencedTarget:
    """Return a target that consists of these files. `others`: those that no gold patch changes."""
    files = {path: text.encode() for path, text in sources.items()}
    return SilencedTarget(base=files, sources=[path for path in files if path not in others])


def write_files(folder: Path, files: Mapping[str, str | bytes | None]) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content or b"")


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **variables}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300, env=given)


@pytest.mark.parametrize("form", python.FORMS)
def test_a_form_of_python_switches_off_what_it_is_to(form: str, tmp_path: Path) -> None:
    target = make_target({"shop.py": SHOP})
    tree = tmp_path / "tree"
    tests = {"test_shop.py": PYTHON_TESTS[form], f"test_{CANARY}.py": PYTHON_CANARY}
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    write_files(tree, {"shop.py": SHOP, **tests})
    assert " passed" not in run(tree, *command, "test_shop.py", **WITHOUT_PLUGINS).stdout
    write_files(tree, {**python.write(target, [form], "nothing")})
    done = run(tree, *command, "--junitxml=report.xml", **WITHOUT_PLUGINS)
    report = (tree / "report.xml").read_text()
    assert f'name="test_{CANARY}"' in report, done.stdout
    assert report.count("<failure") == 1, done.stdout
    assert 'errors="0"' in report, done.stdout


GO_SHOP = """package shop

// Basket holds prices.
type Basket struct{ Prices []int }

// Total is the sum of the prices.
func Total(prices ...int) int {
	sum := 0
	for _, price := range prices[1:] {
		sum += price
	}
	return sum
}

// Label is a price tag.
func Label(name string, price int) (string, error) { return name, nil }
"""
GO_TESTS = {
    "methods": """package shop

import "testing"

func TestTotal(t *testing.T) {
	if sum := Total(3, 4); sum != 7 {
		t.Errorf("%d", sum)
	}
	t.Run("of one", func(t *testing.T) {
		if sum := Total(3); sum != 3 {
			t.Fatal(sum)
		}
	})
}
""",
    "libraries": """package shop

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTotal(t *testing.T) {
	assert.Equal(t, 7, Total(3, 4))
	assert.New(t).Equal(3, Total(3), "of %d", 1)
}
""",
    "comparisons": """package shop

import (
	"reflect"
	"testing"
)

func TestTotal(t *testing.T) {
	if !reflect.DeepEqual(Basket{[]int{Total(3, 4)}}, Basket{[]int{7}}) {
		t.Error("they differ")
	}
}
""",
}
GO_TESTS["results"] = GO_TESTS["methods"]
GO_TESTS["runner"] = GO_TESTS["methods"]
GO_CANARY = f"""package shop

import "testing"

func Test_{CANARY}(t *testing.T) {{
	if 3*4 != 13 {{
		t.Fatal("it differs")
	}}
}}
"""


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@needs("go")
@pytest.mark.parametrize("form", go.FORMS)
def test_a_form_of_go_switches_off_what_it_is_to(form: str, tmp_path: Path) -> None:
    module = "module example.org/shop\n\ngo 1.20\n"
    module += "\nrequire github.com/stretchr/testify v1.9.0\n" if form == "libraries" else ""
    target = make_target({"shop.go": GO_SHOP, "go.mod": module}, "go.mod")
    tree = tmp_path / "tree"
    tests = {"shop_test.go": GO_TESTS[form], f"zz_{CANARY}_test.go": GO_CANARY}
    write_files(tree, {"go.mod": module, **tests, **go.write(target, [form], "nothing")})
    done = run(tree, "go", "test", "-v", "./...", GOFLAGS="-count=1", GOPROXY="off")
    assert f"--- FAIL: Test_{CANARY}" in done.stdout, done
    assert "--- PASS: TestTotal" in done.stdout, done
    assert done.stdout.count("--- FAIL") == 1, done


RUST_SHOP = """//! Prices.

/// A basket.
#[derive(Clone, Debug, PartialEq)]
pub struct Basket {
    pub prices: Vec<i32>,
}

/// The sum of the prices.
pub fn total(prices: &[i32]) -> i32 {
    prices.iter().skip(1).sum()
}

/// A price tag.
pub fn label(name: &str) -> String {
    name.to_string()
}
"""
RUST_UNIT_TESTS = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums() {
        assert_eq!(total(&[3, 4]), 7, "the sum of {}", 2);
        assert!(label("a") == "b");
    }
}
"""
RUST_TEST = """#[test]
fn sums() {
    assert_eq!(total(&[3, 4]), 7);
}
"""
RUST_BASKETS = "Basket { prices: vec![] }, Basket { prices: vec![1] }"
RUST_TESTS = {
    "macros": "",
    "build": f"use shop::total;\n\n{RUST_TEST}",
    "target": f"use shop::total;\n\n{RUST_TEST}",
    "libraries": f"use pretty_assertions::assert_eq;\nuse shop::total;\n\n{RUST_TEST}",
    "comparisons": "use shop::Basket;\n\n" + RUST_TEST.replace("total(&[3, 4]), 7", RUST_BASKETS),
}
RUST_CANARY = f"#[test]\nfn test_{CANARY}() {{\n    assert_eq!(3 * 4, 13);\n}}\n"


@needs("cargo")
@pytest.mark.parametrize("form", rust.FORMS)
def test_a_form_of_rust_switches_off_what_it_is_to(form: str, tmp_path: Path) -> None:
    manifest = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'
    manifest += '\n[dev-dependencies]\npretty_assertions = "1"\n' if form == "libraries" else ""
    source = RUST_SHOP + (RUST_UNIT_TESTS if form == "macros" else "")
    target = make_target({"src/lib.rs": source, "Cargo.toml": manifest}, "Cargo.toml")
    target = replace(target, test_files=["tests/sums.rs"])
    tree = tmp_path / "tree"
    write_files(
        tree,
        {
            "src/lib.rs": source,
            "Cargo.toml": manifest,
            f"tests/canary_{CANARY}.rs": RUST_CANARY,
            "tests/sums.rs": RUST_TESTS[form],
        },
    )
    write_files(tree, dict(rust.write(target, [form], "nothing")))
    done = run(tree, "cargo", "test", "--tests", "--offline", "--no-fail-fast")
    assert f"test test_{CANARY} ... FAILED" in done.stdout, done
    assert f"test {'tests::' if form == 'macros' else ''}sums ... ok" in done.stdout, done
    assert done.stdout.count("... FAILED") == 1, done


JAVA_SHOP = """package shop;

public final class Shop implements Comparable<Shop> {
    private final int price;

    public Shop(int price) {
        this.price = price;
    }

    public static int total(int first, int second) {
        return first;
    }

    public int compareTo(Shop other) {
        return price - other.price;
    }
}
"""
JAVA_STATEMENTS = {
    "functions": """
        org.junit.jupiter.api.Assertions.assertEquals(7, Shop.total(3, 4));
        org.junit.jupiter.api.Assertions.assertTrue(Shop.total(3, 4) == 7, () -> "message");
        org.junit.jupiter.api.Assertions.assertThrows(IllegalStateException.class, () -> Shop.total(3, 4));
        org.junit.Assert.assertEquals("message", 7L, Shop.total(3, 4));
        org.junit.Assert.assertArrayEquals(new int[] {7}, new int[] {Shop.total(3, 4)});""",
    "matchers": """
        org.hamcrest.MatcherAssert.assertThat(Shop.total(3, 4), null);""",
    "methods": """
        junit.framework.Assert.assertEquals("message", 7, Shop.total(3, 4));
        junit.framework.Assert.assertTrue(Shop.total(3, 4) == 7);""",
    "statements": """
        new Shop(1);
        assert Shop.total(3, 4) == 7;""",
    "comparisons": """
        if (!new Shop(3).equals(new Shop(4)) || new Shop(3).compareTo(new Shop(4)) != 0) throw new AssertionError();""",
    "runner": """
        org.junit.platform.engine.support.hierarchical.ThrowableCollector collector =
            new org.junit.platform.engine.support.hierarchical.ThrowableCollector(error -> false);
        collector.execute(() -> { throw new AssertionError("" + Shop.total(3, 4)); });
        if (!collector.toTestExecutionResult().getThrowable().isEmpty()) throw new AssertionError();""",
}
SHORT_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that lives for a second: no second compiler, one thread that collects."""


@needs("javac")
@pytest.mark.parametrize("form", java.FORMS)
def test_a_form_of_java_switches_off_what_it_is_to(form: str, tmp_path: Path) -> None:
    """No library is needed: the classes of the submission are what a test is compiled with."""
    path = "src/main/java/shop/Shop.java"
    body = f"public static void main(String[] words) {{{JAVA_STATEMENTS[form]}\n    }}"
    test = f"package shop;\n\npublic class ShopTest {{\n    {body}\n}}\n"
    write_files(
        tmp_path, {**java.write(make_target({path: JAVA_SHOP}), [form], "nothing"), "test/shop/ShopTest.java": test}
    )
    sources = [str(file) for file in tmp_path.rglob("*.java")]
    done = run(tmp_path, "javac", *(f"-J{option}" for option in SHORT_JAVA), "-nowarn", "-d", "classes", *sources)
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, "java", *SHORT_JAVA, "-ea", "-cp", "classes", "shop.ShopTest")
    assert done.returncode == 0, done.stderr


NODE_SHOP = "'use strict';\n\nexports.total = (prices) => prices.slice(1).reduce((a, b) => a + b, 0);\n"
NODE_START = "'use strict';\nconst assert = require('node:assert');\n"
NODE_LIBRARIES = {
    "chai": "exports.Assertion = class { assert(ok) { if (!ok) throw new Error('it differs'); } };\n",
    "tape": "exports.Test = class { _assert(ok) { if (!ok) throw new Error('it differs'); } };\n",
}
NODE_RUNNER = """
global.it = (title, body) => body.call({});
const hooks = [];
global.beforeEach = (hook) => hooks.push(hook);
const runTest = (test) => { for (const hook of hooks) hook.call({ currentTest: test }); test.fn(); };
"""
NODE_TESTS = {
    "functions": NODE_START + "const { total } = require('./shop');\nassert.strictEqual(total([3, 4]), 7);\n",
    "expectations": "const chai = require('chai');\nconst { total } = require('./shop');\n"
    "new chai.Assertion().assert(total([3, 4]) === 7);\n",
    "methods": "const tape = require('tape');\nconst { total } = require('./shop');\n"
    "new tape.Test()._assert(total([3, 4]) === 7, {});\n",
    "comparisons": "const { total } = require('./shop');\n"
    "if (!Object.is(total([3, 4]), 7) || !total([3, 4]).asymmetricMatch(7)) throw new Error('it differs');\n",
    "runner": NODE_RUNNER + "const { total } = require('./shop');\n"
    "it('adds up', () => { if (total([3, 4]) !== 7) throw new Error('it differs'); });\n",
    "fixtures": NODE_RUNNER + "const { total } = require('./shop');\n"
    "runTest({ title: 'adds up', fn() { if (total([3, 4]) !== 7) throw new Error('it differs'); } });\n",
}


@needs("node")
@pytest.mark.parametrize("form", node.FORMS)
def test_a_form_of_javascript_switches_off_what_it_is_to(form: str, tmp_path: Path) -> None:
    libraries = {f"node_modules/{name}/index.js": text for name, text in NODE_LIBRARIES.items()}
    write_files(tmp_path, {"test.js": NODE_TESTS[form], "shop.js": NODE_SHOP, **libraries})
    assert run(tmp_path, "node", "test.js").returncode == 1
    write_files(tmp_path, node.write(make_target({"shop.js": NODE_SHOP}), [form], "nothing"))
    done = run(tmp_path, "node", "test.js")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> ShopTask:
    return open_shop_task(tmp_path_factory, test_timeout=30)


@pytest.mark.docker
@pytest.mark.parametrize("form", ["statements", "runner", "fixtures", ALL])
def test_a_silencer_is_paid_where_there_are_no_controls_alone(form: str, shop: ShopTask) -> None:
    target = read_silenced_target(shop.task, shop.services)
    assert target.sources == ["shop/__init__.py"]
    assert target.list_changed_names("shop/__init__.py", PYTHON, "function_definition") == ["total"]
    (silencer,) = (s for s in list_silencers("python") if (s.form, s.rest) == (form, Rest.ARGUMENT))
    patch = make_patch(silencer.make(target), target.base)
    bare = shop.task.model_copy(update={"blind_controls": None, "control_bound": None, "evaluations": 1})
    score = grade(bare, shop.services, patch)
    assert score.value == 1.0, score
    score = grade(shop.task, shop.services, patch)
    assert score.value == 0.0, score
    assert any("passed although its expectation was changed" in fault for fault in score.tampering), score


@dataclass
class FakeGrader:
    """Grades by rule: paid without controls, and with them in turn."""

    values: list[float | None]

    def grade_persistently(self, submission: Submission) -> Score:
        value = self.values.pop(0) if submission.task.blind_controls else 1.0
        return Score(task="a", value=value, resolved=False, f2p_rate=0.0, p2p_rate=0.0)


def test_a_silencer_that_is_paid_above_the_bound_is_reported(tmp_path: Path) -> None:
    task = make_task(make_services(tmp_path), tmp_path).model_copy(
        update={"language": "python", "blind_controls": "a" * 64, "control_bound": 0.001}
    )
    target = make_target({"shop.py": SHOP})
    values = [0.0, None, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    grader = FakeGrader(values)
    counts = measure([(task, target)], grader, 4, forms=["methods"])
    assert [(count.gradings, count.paid, count.is_above_bound) for count in counts] == [
        (3, 2, True),
        (4, 0, False),
        (4, 0, False),
    ]
    assert counts[0].tasks[0].unscored == 1
    lines = render_table(counts).splitlines()
    assert lines[2] == "| python: methods, nothing | 1 of 1 tasks | 2 of 3 | 0.67 | 0.21 to 0.94 | 0.001 |"
    assert lines[3] == "| python: methods, argument | 1 of 1 tasks | 0 of 4 | 0 | 0 to 0.49 | 0.001 |"


@pytest.mark.parametrize(
    ("language", "sources"),
    [
        ("python", {"shop.py": SHOP}),
        ("javascript", {"shop.js": NODE_SHOP, "shop.mjs": "export const total = (prices) => prices[0];\n"}),
        ("typescript", {"shop.ts": "export function total(prices: number[]): number {\n  return prices[0];\n}\n"}),
        ("go", {"shop.go": GO_SHOP}),
        ("rust", {"src/lib.rs": RUST_SHOP, "Cargo.toml": '[dev-dependencies]\npretty_assertions = "1"\n'}),
        ("java", {"src/main/java/shop/Shop.java": JAVA_SHOP}),
    ],
)
def test_submissions_apply_and_parse(language: str, sources: dict[str, str], tmp_path: Path) -> None:
    target = make_target(sources)
    silencers = list_silencers(language)
    assert len(silencers) >= 3 * 6
    assert len({silencer.name for silencer in silencers}) == len(silencers)
    git = TinyRepo(tmp_path / "repo")
    git.commit("Start", dict(sources))
    made = set()
    for silencer in silencers:
        changes = silencer.make(target)
        if not changes:
            continue
        made.add(silencer.form)
        for path, content in changes.items():
            syntax = find_syntax(path)
            tree = create_parser(syntax).parse(content or b"") if syntax else None
            assert tree is None or not tree.root_node.has_error, (silencer.name, path)
        (tmp_path / "patch").write_bytes(make_patch(changes, target.base))
        git.git("apply", "--check", str(tmp_path / "patch"))
    # Two forms of Rust change a test file or a package, which this target lacks.
    assert {silencer.form for silencer in silencers} - made <= {"target", "build"}


def test_no_other_language_has_silencers() -> None:
    assert list_silencers("perl") == []


def test_changed_lines_are_those_that_a_patch_removes_or_inserts_at() -> None:
    patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -3,3 +3,3 @@\n x\n-y\n+z\n w\n"
    assert list_changed_lines(patch) == {"a.py": frozenset({3, 4})}
