"""What the rules know of each language: which words stand for which, and how nothing, a remark and a name are written.

Shapes of statements need no row here: the grammars of tree-sitter name them much alike (`trees/shapes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import tree_sitter_c
import tree_sitter_cpp
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_php
import tree_sitter_ruby
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Parser

BOUNDARIES: Mapping[str, str] = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPPOSITES: Mapping[str, str] = {
    "==": "!=", "!=": "==", "===": "!==", "!==": "===", "<": ">", ">": "<", "<=": ">=", ">=": "<=",
}  # fmt: skip
JUNCTIONS: Mapping[str, str] = {"&&": "||", "||": "&&", "and": "or", "or": "and"}
ARITHMETIC: Mapping[str, str] = {
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=",
    "++": "--", "--": "++", "**": "*",
}  # fmt: skip
CALLS: Mapping[str, str] = {
    "min": "max", "max": "min", "Min": "Max", "Max": "Min", "floor": "ceil", "ceil": "floor", "Floor": "Ceil",
    "Ceil": "Floor", "startsWith": "endsWith", "endsWith": "startsWith", "HasPrefix": "HasSuffix",
    "HasSuffix": "HasPrefix", "starts_with": "ends_with", "ends_with": "starts_with", "start_with?": "end_with?",
    "end_with?": "start_with?", "toLowerCase": "toUpperCase", "toUpperCase": "toLowerCase", "ToLower": "ToUpper",
    "ToUpper": "ToLower", "to_lowercase": "to_uppercase", "to_uppercase": "to_lowercase", "downcase": "upcase",
    "upcase": "downcase", "strtolower": "strtoupper", "strtoupper": "strtolower", "trimStart": "trimEnd",
    "trimEnd": "trimStart", "TrimLeft": "TrimRight", "TrimRight": "TrimLeft", "TrimPrefix": "TrimSuffix",
    "TrimSuffix": "TrimPrefix", "lstrip": "rstrip", "rstrip": "lstrip", "ltrim": "rtrim", "rtrim": "ltrim",
    "indexOf": "lastIndexOf", "lastIndexOf": "indexOf", "Index": "LastIndex", "LastIndex": "Index", "some": "every",
    "every": "some", "any": "all", "all": "any", "any?": "all?", "all?": "any?", "anyMatch": "allMatch",
    "allMatch": "anyMatch", "push": "unshift", "unshift": "push", "shift": "pop", "first": "last", "last": "first",
    "is_some": "is_none", "is_none": "is_some", "is_ok": "is_err", "is_err": "is_ok", "front": "back", "back": "front",
    "push_back": "push_front", "push_front": "push_back", "keySet": "values", "keys": "values", "values": "keys",
}  # fmt: skip
"""Functions and methods that are easily taken for one another."""


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """One row: a grammar, and the few words of the language that rules write."""

    name: str
    suffixes: tuple[str, ...]
    load: Callable[[], object]
    """Gives the grammar as the package has it."""
    nothing: str = ""
    """What stands for no value, whatever the function returns; empty where that depends on its type."""
    zeros: Mapping[str, str] | None = None
    """Type of a result -> a value of it that says nothing."""
    otherwise: str = ""
    """As in `zeros`, for types that are not in it; empty for none."""
    remark: str = "//"
    """What a comment to the end of the line begins with."""
    idle: str = ";"
    """A statement that does nothing; empty for none."""
    name_it: str = ""
    """A statement that gives `{value}` the name `{name}`; it may speak of the function's `{type}`. Empty for none."""
    numbers: frozenset[str] = frozenset({"number", "integer", "float"})
    """Types of nodes of plain numbers."""


_WHOLE_TYPES = ("int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64")
_GO = dict.fromkeys((*_WHOLE_TYPES, "float32", "float64", "byte", "rune"), "0") | {
    "string": '""', "bool": "false", "error": "nil",
}  # fmt: skip
_RUST_TYPES = ("i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize")
_RUST = dict.fromkeys(_RUST_TYPES, "0") | {"f32": "0.0", "f64": "0.0", "bool": "false", "String": "String::new()"}
_JAVA = dict.fromkeys(("int", "long", "short", "byte", "float", "double", "char"), "0") | {"boolean": "false"}
_C = dict.fromkeys((*_WHOLE_TYPES, "long", "short", "char", "size_t", "float", "double", "unsigned", "bool"), "0")
_C_NUMBERS = frozenset({"number_literal"})

GRAMMARS: tuple[Grammar, ...] = (
    Grammar(
        name="go", suffixes=(".go",), load=tree_sitter_go.language, zeros=_GO, idle="",
        name_it="{name} := {value}", numbers=frozenset({"int_literal", "float_literal"}),
    ),
    Grammar(
        name="javascript", suffixes=(".js", ".jsx", ".mjs", ".cjs"), load=tree_sitter_javascript.language,
        nothing="undefined", name_it="const {name} = {value};",
    ),
    Grammar(
        name="typescript", suffixes=(".ts", ".mts", ".cts"), load=tree_sitter_typescript.language_typescript,
        nothing="undefined", name_it="const {name} = {value};",
    ),
    Grammar(
        name="typescript", suffixes=(".tsx",), load=tree_sitter_typescript.language_tsx, nothing="undefined",
        name_it="const {name} = {value};",
    ),
    Grammar(
        name="rust", suffixes=(".rs",), load=tree_sitter_rust.language, zeros=_RUST,
        name_it="let {name} = {value};", numbers=frozenset({"integer_literal", "float_literal"}), idle="{}",
    ),
    Grammar(
        name="java", suffixes=(".java",), load=tree_sitter_java.language, zeros=_JAVA, otherwise="null",
        name_it="{type} {name} = {value};",
        numbers=frozenset({"decimal_integer_literal", "decimal_floating_point_literal"}),
    ),
    Grammar(name="c", suffixes=(".c", ".h"), load=tree_sitter_c.language, zeros=_C, numbers=_C_NUMBERS),
    Grammar(
        name="c++", suffixes=(".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"), load=tree_sitter_cpp.language,
        zeros=_C, numbers=_C_NUMBERS,
    ),
    Grammar(
        name="ruby", suffixes=(".rb", ".rake"), load=tree_sitter_ruby.language, nothing="nil", remark="#", idle="nil",
        name_it="{name} = {value}",
    ),
    Grammar(
        name="php", suffixes=(".php",), load=tree_sitter_php.language_php, nothing="null",
        name_it="${name} = {value};",
    ),
)  # fmt: skip


def grammar_of(path: str) -> Grammar | None:
    """The row of the language a file is written in, by the end of its name."""
    suffix = PurePosixPath(path).suffix.lower()
    return next((one for one in GRAMMARS if suffix in one.suffixes), None)


def parser_of(grammar: Grammar) -> Parser:
    """A parser for it; each is for one thread."""
    return Parser(Language(grammar.load()))
