"""Stubs of functions in every language with a grammar, and bodies that have none."""

from __future__ import annotations

import pytest

from mutation.definitions import get_function, iterate_definition_nodes
from mutation.grammars import GRAMMARS, find_grammar
from mutation.mutation import apply_edits
from mutation.source_file import SourceFile
from mutation.stubs import build_stub, count_statements, remove_unused_imports

PYTHON = '''class Cart:
    def total(self):  # noqa: X1
        """The sum.

        >>> Cart().total()
        """
        # a comment on how
        result = 0
        for price in self.prices:
            result += price
        return result  # the end
        # of it

    async def first(self):  # noqa: X2
        # a comment before the first statement
        price = await self.prices[0]
        return price


def one_line(): return 1
'''
PYTHON_STUB = '''class Cart:
    def total(self):  # noqa: X1
        """The sum.

        >>> Cart().total()
        """
        raise NotImplementedError

    async def first(self):  # noqa: X2
        raise NotImplementedError


def one_line(): return 1
'''
GO = """package cart

func (c *Cart) Total(a, b int) (int, error) {
	// a comment on how
	return a + b, nil
}

func Named(a int) (n int, err error) {
	n = a
	return
}

func One(a int) []string {
	return nil
}

func Nothing(a int) {
	print(a)
}

func Short() int { return 1 }
"""
GO_STUB = """package cart

func (c *Cart) Total(a, b int) (int, error) {
	// not implemented
	return *new(int), *new(error)
}

func Named(a int) (n int, err error) {
	// not implemented
	return
}

func One(a int) []string {
	// not implemented
	return *new([]string)
}

func Nothing(a int) {
	// not implemented
}

func Short() int { return *new(int) }
"""
JAVASCRIPT = """/** The sum. */
exports.total = function (prices) {
  let sum = 0;
  return sum;
};
export const first = async (prices) => {
  return prices[0];
};
const last = (prices) => prices[1];
class Cart {
  constructor(prices) {
    this.prices = prices;
  }
  handler = () => {
    return 1;
  };
}
module.exports = { of(a) { return a; }, by: function (b) { return b; } };
"""
JAVASCRIPT_STUB = """/** The sum. */
exports.total = function (prices) {
  throw new Error("not implemented");
};
export const first = async (prices) => {
  throw new Error("not implemented");
};
const last = (prices) => prices[1];
class Cart {
  constructor(prices) {
    throw new Error("not implemented");
  }
  handler = () => {
    throw new Error("not implemented");
  };
}
module.exports = { of(a) { STUB }, by: function (b) { STUB } };
""".replace("STUB", 'throw new Error("not implemented");')
RUST = """impl Cart {
    pub fn total(&self, a: u32) -> u32 {
        // a comment on how
        let b = a;
        b + 1
    }
}
"""
RUST_STUB = """impl Cart {
    pub fn total(&self, a: u32) -> u32 {
        unimplemented!("not implemented")
    }
}
"""
JAVA = """class Cart {
    Cart(int a) { this.a = a; }

    @Override
    public long total(int a) throws IOException {
        return a;
    }

    abstract int none();
}
"""
JAVA_STUB = """class Cart {
    Cart(int a) { this.a = a; }

    @Override
    public long total(int a) throws IOException {
        throw new UnsupportedOperationException("not implemented");
    }

    abstract int none();
}
"""
C = """static char *name(int a) {
  return names[a];
}

struct point move(int a) {
  return origin;
}

int total(int a)
{
    return a;
}

void print(int a) {
  puts(a);
}
"""
C_STUB = """static char *name(int a) {
  // not implemented
  return 0;
}

struct point move(int a) {
  // not implemented
  return (struct point){0};
}

int total(int a)
{
    // not implemented
    return (int){0};
}

void print(int a) {
  // not implemented
}
"""
CPP = """Cart::Cart(int a) : a_(a) {
  fill();
}

int Cart::total(int a) const {
  return a;
}
"""
CPP_STUB = """Cart::Cart(int a) : a_(a) {
  fill();
}

int Cart::total(int a) const {
  throw "not implemented";
}
"""
RUBY = """class Cart
  # The sum.
  def total(a) # rubocop:disable X
    # a comment on how
    b = a
    b
  end

  def self.none
  end

  def short(x) = x
end
"""
RUBY_STUB = """class Cart
  # The sum.
  def total(a) # rubocop:disable X
    raise NotImplementedError, "not implemented"
  end

  def self.none
  end

  def short(x) = x
end
"""
PHP = """<?php
class Cart {
  public function total(int $a): int {
    $b = $a;
    return $b;
  }
}
"""
PHP_STUB = """<?php
class Cart {
  public function total(int $a): int {
    throw new \\LogicException("not implemented");
  }
}
"""
TYPESCRIPT = """export class Cart {
  total(a: number): number {
    return a;
  }
  first = (a: number): number => {
    return a;
  };
}
"""
TYPESCRIPT_STUB = TYPESCRIPT.replace("return a;", 'throw new Error("not implemented");')


def replace_bodies(path: str, source: str) -> str:
    """Return the source with stubs in place of all bodies that have one."""
    grammar = find_grammar(path)
    assert grammar is not None
    file = SourceFile(source.encode(), grammar)
    functions = (get_function(node) for _, node in iterate_definition_nodes(file.root))
    stubs = [build_stub(file, function) for function in functions if function is not None]
    edits = [stub for stub in stubs if stub is not None]
    after = apply_edits(file.bytes, edits)
    assert file.parses(after, edits)
    return after.decode()


@pytest.mark.parametrize(
    ("path", "source", "stub"),
    [
        ("cart.py", PYTHON, PYTHON_STUB),
        ("cart.go", GO, GO_STUB),
        ("cart.js", JAVASCRIPT, JAVASCRIPT_STUB),
        ("cart.ts", TYPESCRIPT, TYPESCRIPT_STUB),
        ("cart.tsx", TYPESCRIPT, TYPESCRIPT_STUB),
        ("cart.rs", RUST, RUST_STUB),
        ("Cart.java", JAVA, JAVA_STUB),
        ("cart.c", C, C_STUB),
        ("cart.cpp", CPP, CPP_STUB),
        ("cart.rb", RUBY, RUBY_STUB),
        ("cart.php", PHP, PHP_STUB),
    ],
)
def test_a_stub_keeps_signature_and_documentation_alone(path: str, source: str, stub: str) -> None:
    assert replace_bodies(path, source) == stub


@pytest.mark.parametrize("path", ["cart.py", "cart.js", "Cart.java"])
def test_line_endings_stay(path: str) -> None:
    source, stub = {"cart.py": (PYTHON, PYTHON_STUB), "cart.js": (JAVASCRIPT, JAVASCRIPT_STUB)}.get(
        path, (JAVA, JAVA_STUB)
    )
    assert replace_bodies(path, source.replace("\n", "\r\n")) == stub.replace("\n", "\r\n")


def test_every_grammar_has_a_stub() -> None:
    assert all(grammar.not_implemented for grammar in GRAMMARS)
    assert all(grammar.zero_template for grammar in GRAMMARS if "{zeros}" in grammar.not_implemented)


@pytest.mark.parametrize(
    ("path", "source", "number"),
    [
        ("a.py", PYTHON, 4),
        ("a.go", "package a\n\nfunc F(a int) int {\n\tif a > 1 {\n\t\ta++\n\t}\n\t// no\n\treturn a\n}\n", 3),
        ("a.js", "function f(a) {\n  for (const b of a) {\n    g(b);\n  }\n}\n", 2),
        ("a.rs", RUST, 2),
        ("a.rb", RUBY, 2),
    ],
)
def test_statements_are_counted_at_any_depth(path: str, source: str, number: int) -> None:
    grammar = find_grammar(path)
    assert grammar is not None
    file = SourceFile(source.encode(), grammar)
    functions = filter(None, (get_function(node) for _, node in iterate_definition_nodes(file.root)))
    first = min(functions, key=lambda function: function.start_byte)
    assert count_statements(first) == number


IMPORTS = """package cart

import (
	"fmt"
	log "log/slog"
	"example.org/go-money/v2"
	_ "embed"

	"gopkg.in/yaml.v3"
)

import "strings"

func F() {
	%s
}

func G(a yaml.Node) {
	fmt.Println(a)
}
"""


def test_imports_that_only_the_old_text_uses_are_removed_where_they_are_errors() -> None:
    grammar = find_grammar("cart.go")
    assert grammar is not None
    calls = '_ = strings.ToUpper("a")\n\tlog.Info(fmt.Sprint(money.Of(yaml.Node{})))'
    file = SourceFile((IMPORTS % calls).encode(), grammar)
    after = remove_unused_imports(file, (IMPORTS % "// fmt.Print is named").encode()).decode()
    gone = ('\tlog "log/slog"\n', '\t"example.org/go-money/v2"\n', 'import "strings"\n')
    expected = IMPORTS % "// fmt.Print is named"
    for line in gone:
        expected = expected.replace(line, "")
    assert after == expected


def test_imports_stay_where_unused_ones_are_no_errors() -> None:
    grammar = find_grammar("cart.py")
    assert grammar is not None
    file = SourceFile(b"import re\n\nre.compile('a')\n", grammar)
    assert remove_unused_imports(file, b"import re\n") == b"import re\n"
