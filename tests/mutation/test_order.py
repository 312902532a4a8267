"""Mutants of the order and the presence of statements, branches and operands, in several languages."""

from __future__ import annotations

import pytest

from mutation import generate_mutants

PYTHON = """def f(a, b):
    total = a - b
    for x in a:
        total -= x
        total *= 2
    if total:
        b.append(total)
        a.sort()
    if not b:
        return 0
    if a:
        a = b
    else:
        b = a
    return a[len(b)]
"""
GO = """package a

func f(a int, b []int) int {
	a = a / 2
	a = a - len(b)
	if a > 2 {
		g(a)
	}
	for _, x := range b {
		a += x
	}
	return a
}
"""
JAVASCRIPT = """function f(a, b) {
  a = a - b.length;
  if (a) { g(a); h(a); }
  if (b) { return 1; }
  while (a) { a = g(a); }
  b.push(a);
  b.push(1);
  return a;
}
"""
RUST = """fn f(mut a: i32, b: Vec<i32>) -> i32 {
    a = a - 1;
    if a > 2 { g(a); }
    for x in b { a = a * x; }
    a
}
"""
JAVA = """class A { int f(int a, String b) {
    a = a - b.length();
    if (a > 2) { g(a); }
    for (int x : c) { g(x); }
    return a;
} }
"""
RUBY = """def f(a, b)
  a = a - b.length
  if a
    g(a)
  end
  while a
    a = g(a)
  end
  a
end
"""


def list_texts(path: str, source: str, operator: str) -> list[str]:
    return [m.after.decode() for m in generate_mutants(path, source.encode()) if m.operator == operator]


@pytest.mark.parametrize(
    ("path", "source", "operator", "before", "after"),
    [
        ("a.py", PYTHON, "operands-swapped", "a - b", "b - a"),
        ("a.py", PYTHON, "loop-removed", "    for x in a:\n        total -= x\n        total *= 2\n", ""),
        ("a.py", PYTHON, "statements-shuffled", "total -= x\n        total *= 2", "total *= 2\n        total -= x"),
        ("a.py", PYTHON, "conditional-removed", "    if total:\n        b.append(total)\n        a.sort()\n", ""),
        ("a.py", PYTHON, "branch-bodies-swapped", "a = b\n    else:\n        b = a", "b = a\n    else:\n        a = b"),
        ("a.py", PYTHON, "assignment-removed", "        a = b\n", "        pass\n"),
        ("a.py", PYTHON, "length-shortened", "len(b)", "(len(b) - 1)"),
        ("a.go", GO, "operands-swapped", "a / 2", "2 / a"),
        ("a.go", GO, "assignment-removed", "\ta = a / 2\n", ""),
        ("a.go", GO, "statements-shuffled", "a = a / 2\n\ta = a - len(b)", "a = a - len(b)\n\ta = a / 2"),
        ("a.go", GO, "conditional-removed", "\tif a > 2 {\n\t\tg(a)\n\t}\n", ""),
        ("a.go", GO, "loop-removed", "\tfor _, x := range b {\n\t\ta += x\n\t}\n", ""),
        ("a.go", GO, "length-shortened", "len(b)", "(len(b) - 1)"),
        ("a.js", JAVASCRIPT, "length-shortened", "b.length", "(b.length - 1)"),
        ("a.js", JAVASCRIPT, "conditional-removed", "  if (a) { g(a); h(a); }\n", ""),
        ("a.js", JAVASCRIPT, "loop-removed", "  while (a) { a = g(a); }\n", ""),
        ("a.js", JAVASCRIPT, "assignment-removed", "  a = a - b.length;\n", ""),
        ("a.ts", JAVASCRIPT, "statements-shuffled", "b.push(a);\n  b.push(1);", "b.push(1);\n  b.push(a);"),
        ("a.rs", RUST, "assignment-removed", "    a = a - 1;\n", ""),
        ("a.rs", RUST, "loop-removed", "    for x in b { a = a * x; }\n", ""),
        ("a.rs", RUST, "conditional-removed", "    if a > 2 { g(a); }\n", ""),
        ("a.java", JAVA, "assignment-removed", "    a = a - b.length();\n", ""),
        ("a.java", JAVA, "length-shortened", "b.length()", "(b.length() - 1)"),
        ("a.java", JAVA, "loop-removed", "    for (int x : c) { g(x); }\n", ""),
        ("a.rb", RUBY, "assignment-removed", "  a = a - b.length\n", ""),
        ("a.rb", RUBY, "conditional-removed", "  if a\n    g(a)\n  end\n", ""),
        ("a.rb", RUBY, "loop-removed", "  while a\n    a = g(a)\n  end\n", ""),
    ],
)
def test_mutants_have_the_expected_text(path: str, source: str, operator: str, before: str, after: str) -> None:
    assert source.replace(before, after, 1) in list_texts(path, source, operator)


def test_a_guard_is_no_conditional() -> None:
    assert len(list_texts("a.py", PYTHON, "conditional-removed")) == 1
    assert len(list_texts("a.js", JAVASCRIPT, "conditional-removed")) == 1


def test_a_variable_is_not_used_before_it_is_assigned() -> None:
    source = "def f(b):\n    a = g(b)\n    c = h(a)\n    return c\n"
    assert list_texts("a.py", source, "assignment-removed") == []
    assert list_texts("a.py", source, "statements-shuffled") == []


def test_a_length_that_is_assigned_stays() -> None:
    assert list_texts("a.js", "function f(a) {\n  a.length = 0;\n}\n", "length-shortened") == []
