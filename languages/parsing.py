"""Grammars of tree-sitter. `Language.syntaxes` lists those of a language, such as TypeScript with and without JSX."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import tree_sitter_c
import tree_sitter_cpp
import tree_sitter_elixir
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_kotlin
import tree_sitter_lua
import tree_sitter_perl
import tree_sitter_php
import tree_sitter_python
import tree_sitter_ruby
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """The grammar of some files. `load` returns the language object of the tree-sitter package."""

    name: str
    suffixes: tuple[str, ...]
    load: Callable[[], object]


PYTHON = Syntax(name="python", suffixes=(".py",), load=tree_sitter_python.language)
GO = Syntax(name="go", suffixes=(".go",), load=tree_sitter_go.language)
JAVASCRIPT = Syntax(name="javascript", suffixes=(".js", ".jsx", ".mjs", ".cjs"), load=tree_sitter_javascript.language)
TYPESCRIPT = Syntax(
    name="typescript", suffixes=(".ts", ".mts", ".cts"), load=tree_sitter_typescript.language_typescript
)
TSX = Syntax(name="typescript", suffixes=(".tsx",), load=tree_sitter_typescript.language_tsx)
RUST = Syntax(name="rust", suffixes=(".rs",), load=tree_sitter_rust.language)
JAVA = Syntax(name="java", suffixes=(".java",), load=tree_sitter_java.language)
KOTLIN = Syntax(name="kotlin", suffixes=(".kt", ".kts"), load=tree_sitter_kotlin.language)
C = Syntax(name="c", suffixes=(".c", ".h"), load=tree_sitter_c.language)
CPP = Syntax(name="c++", suffixes=(".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"), load=tree_sitter_cpp.language)
RUBY = Syntax(name="ruby", suffixes=(".rb", ".rake"), load=tree_sitter_ruby.language)
PHP = Syntax(name="php", suffixes=(".php",), load=tree_sitter_php.language_php)
PERL = Syntax(name="perl", suffixes=(".t", ".pl", ".pm"), load=tree_sitter_perl.language)
ELIXIR = Syntax(name="elixir", suffixes=(".exs", ".ex"), load=tree_sitter_elixir.language)
LUA = Syntax(name="lua", suffixes=(".lua",), load=tree_sitter_lua.language)


def create_parser(syntax: Syntax) -> Parser:
    """Return a new parser; a parser must not be shared between threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some packages still return their language as a number
        return Parser(Language(syntax.load()))


def iterate_tree(node: Node) -> Iterator[Node]:
    """Yield a node and all its descendants, in the order of the text."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(node.children)
