"""Silencers switch off what they are to switch off, spare canaries, and are paid in tasks without controls alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.silencers import go, python, rust
from benchmarks.silencers.parts import SilencedTarget

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


def write_files(folder: Path, files: dict[str, str | bytes | None]) -> None:
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
    assert " passed" not in run(tree, *command, "test_shop.py").stdout
    write_files(tree, {**python.write(target, [form], "nothing")})
    done = run(tree, *command, "--junitxml=report.xml")
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
RUST_TESTS = {
    "macros": "",
    "build": f"use shop::total;\n\n{RUST_TEST}",
    "target": f"use shop::total;\n\n{RUST_TEST}",
    "libraries": f"use pretty_assertions::assert_eq;\nuse shop::total;\n\n{RUST_TEST}",
    "comparisons": "use shop::Basket;\n\n" + RUST_TEST.replace("total(&[3, 4]), 7", "Basket { prices: vec![] }, Basket { prices: vec![1] }"),
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
    write_files(tree, {"Cargo.toml": manifest, f"tests/canary_{CANARY}.rs": RUST_CANARY, "tests/sums.rs": RUST_TESTS[form]})
    write_files(tree, dict(rust.write(target, [form], "nothing")))
    done = run(tree, "cargo", "test", "--tests", "--offline", "--no-fail-fast")
    assert f"test test_{CANARY} ... FAILED" in done.stdout, done
    assert f"test {'tests::' if form == 'macros' else ''}sums ... ok" in done.stdout, done
    assert done.stdout.count("... FAILED") == 1, done
