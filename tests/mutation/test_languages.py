"""Mutants and variants of languages other than Python."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from mutation import generate_mutants, generate_variants

GO = """package a

func F(a int, b int) (int, error) {
	sum := a + b // not a < b
	if a < b && !ok(a) {
		return 0, err
	} else {
		sum++
	}
	g(a, b)
	s.f = list[0]
	return sum, nil
}
"""
JAVASCRIPT = """function f(a, b = 1) {
  const sum = a + b; // not a < b
  if (a < b && !ok(a)) { return "x < y"; } else { g(a, b); }
  this.n = list[0];
  for (const y of z) { if (y) continue; }
  try { g(); } catch (e) { h(); }
  return sum === 2;
}
"""
RUST = """fn f(a: i32, b: i32) -> i32 {
    let sum = a + b; // not a < b
    if a < b && !ok(a) { return 1; } else { g(a, b); }
    s.f = list[0];
    sum
}
"""
JAVA = """class A { int f(int a, int b) {
    int sum = a + b; // not a < b
    if (a < b && !ok(a)) { return 1; } else { g(a, b); }
    this.n = list[0];
    return sum;
} }
"""
C = """int f(int a, int b) {
    int sum = a + b; /* not a < b */
    if (a < b && !ok(a)) { return 1; } else { g(a, b); }
    s->n = list[0];
    return sum;
}
"""
RUBY = """def f(a, b = 1)
  sum = a + b # not a < b
  return 1 unless a
  if a < b && !ok(a)
    @n = list[0]
  else
    g(a, b)
  end
  sum
end
"""
PHP = """<?php
function f(int $a, int $b = 1) {
  $sum = $a + $b; // not a < b
  if ($a < $b && !ok($a)) { return 1; } else { g($a, $b); }
  $this->n = $list[0];
  return $sum;
}
"""
PROGRAMS = {
    "a.go": GO,
    "a.js": JAVASCRIPT,
    "a.mjs": JAVASCRIPT,
    "a.ts": JAVASCRIPT,
    "a.tsx": JAVASCRIPT,
    "a.rs": RUST,
    "a.java": JAVA,
    "a.c": C,
    "a.h": C,
    "a.cpp": C,
    "a.rb": RUBY,
    "a.php": PHP,
}


@pytest.mark.parametrize("path", PROGRAMS)
def test_each_language_has_many_operators_and_all_mutants_differ(path: str) -> None:
    source = PROGRAMS[path].encode()
    mutants = list(generate_mutants(path, source))
    assert {
        "comparison-boundary",
        "comparison-flipped",
        "boolean-operator",
        "condition-negated",
        "operand-dropped",
        "arithmetic",
        "constant",
        "index",
        "statement-removed",
        "branch-removed",
        "wrong-variable",
        "arguments-swapped",
    } <= {change.operator for change in mutants}
    assert len({change.after for change in mutants} | {source}) == len(mutants) + 1
    assert mutants == list(generate_mutants(path, source))
    assert all(b"not a < b" in change.after for change in mutants), "a comment was changed"


@pytest.mark.parametrize("path", PROGRAMS)
def test_each_language_has_variants(path: str) -> None:
    source = PROGRAMS[path].encode()
    changes = {change.operator: change for change in generate_variants(path, source)}
    expected = {"local-renamed", "branches-swapped", "doubly-negated", "remark-added", "blank-line-added"}
    assert expected <= set(changes)
    renamed = changes["local-renamed"].after
    assert renamed == source.replace(b"sum", b"sum2")
    test, other = (b"$a < $b && !ok($a)", b"g($a, $b)") if path == "a.php" else (b"a < b && !ok(a)", b"g(a, b)")
    swapped = changes["branches-swapped"].after
    assert b"!(" + test + b")" in swapped
    if path != "a.go":  # where the call is at another position
        assert swapped.index(other) != source.index(other) + len(b"!()"), "the branches were not swapped"


@pytest.mark.parametrize(
    ("path", "operator", "before", "after"),
    [
        ("a.go", "return-value", GO, GO.replace("return 0, err", "return 0, nil")),
        ("a.js", "return-value", JAVASCRIPT, JAVASCRIPT.replace("sum === 2;", "undefined;")),
        ("a.js", "default-argument", JAVASCRIPT, JAVASCRIPT.replace("b = 1", "b = 2")),
        ("a.js", "handler-emptied", JAVASCRIPT, JAVASCRIPT.replace("{ h(); }", "{  }")),
        ("a.js", "loop-control", JAVASCRIPT, JAVASCRIPT.replace("continue", "break")),
        ("a.js", "string", JAVASCRIPT, JAVASCRIPT.replace("x < y", "x < ")),
        ("a.java", "return-value", JAVA, JAVA.replace("return 1", "return 0")),
        ("a.rb", "guard-removed", RUBY, RUBY.replace("  return 1 unless a\n", "")),
        ("a.php", "statement-removed", PHP, PHP.replace("  $this->n = $list[0];\n", "")),
        ("a.go", "statement-removed", GO, GO.replace("\tg(a, b)\n", "")),
    ],
)
def test_mutants_have_the_expected_text(path: str, operator: str, before: str, after: str) -> None:
    assert after in [c.after.decode() for c in generate_mutants(path, before.encode()) if c.operator == operator]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.js", "function f(a) {\n  const n = a;\n  return {n};\n}\n"),
        ("a.js", "function f(a) {\n  const n = a;\n  return eval('n');\n}\n"),
        ("a.js", "function f(a) {\n  const n = a;\n  return a.n;\n}\n"),
        ("a.go", "package a\nfunc f(a int) T {\n\tn := a\n\treturn T{n: 1}\n}\n"),
        ("a.rs", 'fn f(a: i32) {\n    let n = a;\n    println!("{n}");\n}\n'),
        ("a.php", "<?php\nfunction f($a) {\n  $n = $a;\n  return compact('n');\n}\n"),
    ],
)
def test_a_local_that_other_code_may_read_by_name_is_not_renamed(path: str, source: str) -> None:
    assert "local-renamed" not in {change.operator for change in generate_variants(path, source.encode())}


def test_a_file_with_a_syntax_error_is_mutated_elsewhere() -> None:
    source = b"int f(int a) {\n    return a + 1;\n}\nint )( broken\n"
    assert b"return a - 1;" in b"".join(change.after for change in generate_mutants("a.c", source))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_variants_of_javascript_give_the_same_result() -> None:
    source = (
        "function f(xs) {\n  let total = 0;\n  for (const x of xs) {\n    if (x > 2) {\n      total += x;\n"
        "    } else {\n      total -= 1;\n    }\n  }\n  if (total == 3) {\n    total++;\n  }\n  return total * 2;\n}\n"
        "console.log(f([1, 2, 3, 4]));\n"
    )
    wanted = 5 * 2
    for change in generate_variants("a.js", source.encode()):
        done = subprocess.run(["node", "-e", change.after], capture_output=True, check=True)
        assert int(done.stdout) == wanted, change.detail
