"""Which test files are refused by their text alone, and which honest ones are not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from languages.registry import get_language
from languages.test_faults import TestFaultReason as R

SOURCES = ("src/shop/cart.py", "src/shop/__init__.py", "tools/convert.py")

CASES = tomllib.loads(Path(__file__).with_name("test_faults.toml").read_text())
REFUSED, HONEST = CASES["refused"], CASES["honest"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_for_a_reason_with_its_line(name: str) -> None:
    reason, text = REFUSED[name]["reason"], REFUSED[name]["text"]
    fault = get_language("python").find_test_fault(text, SOURCES)
    assert fault is not None
    assert (fault.reason, 1 <= fault.line <= text.count("\n") + 1) == (reason, True), fault.detail


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_file_passes(name: str) -> None:
    assert get_language("python").find_test_fault(HONEST[name]["text"], SOURCES) is None


@pytest.mark.parametrize(
    ("language", "reason", "text"),
    [
        ("javascript", R.READS_SOURCE, "test('a', () => { expect(fs.readFileSync('src/cart.js')).toContain('x') })"),
        ("javascript", R.SEARCHES_SOURCE, "test('a', () => { expect(execSync('grep x -r .')).toBeTruthy() })"),
        ("javascript", R.READS_GIT, "test('a', () => { expect(execSync('git log')).toBeTruthy() })"),
        ("javascript", R.SKIPS, "test.skip('a', () => { expect(total([1])).toBe(1) })"),
        ("javascript", R.NO_ASSERTION, "test('a', () => { total([1]) })"),
        (
            "go",
            R.READS_SOURCE,
            'func TestA(t *testing.T) { b, _ := os.ReadFile("cart.go"); if len(b) == 0 { t.Fatal() } }',
        ),
        ("go", R.SKIPS, 'func TestA(t *testing.T) { t.Skip("no") }'),
        ("rust", R.READS_SOURCE, 'fn a() { assert!(include_str!("../src/cart.rs").contains("x")); }'),
        ("ruby", R.READS_SOURCE, "it 'a' do expect(File.read('lib/cart.rb')).to include('x') end"),
        ("java", R.ENDS_RUN, "@Test void a() { assertEquals(1, Cart.total(1)); System.exit(0); }"),
        (
            "javascript",
            None,
            "const { total } = require('../src/cart.js')\ntest('a', () => { expect(total([1])).toBe(1) })",
        ),
        ("go", None, 'func TestA(t *testing.T) { if Total(1) != 1 { t.Errorf("got %d", Total(1)) } }'),
        ("rust", None, "#[test]\nfn a() { assert_eq!(shop::total(&[1]), 1); }"),
        ("java", None, "@Test void a() { assertEquals(1, Cart.total(1)); }"),
    ],
)
def test_rules_for_all_languages(language: str, reason: R | None, text: str) -> None:
    sources = ("src/cart.js", "cart.go", "src/cart.rs", "lib/cart.rb", "src/main/java/Cart.java")
    fault = get_language(language).find_test_fault(text + "\n", sources)
    assert (fault.reason if fault else None) == reason
