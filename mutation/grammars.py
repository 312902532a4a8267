"""The supported languages: a `Grammar` per row, with the tokens and literals that operators read and write.

Shapes of statements need no row: the grammars of tree-sitter name them much alike (`mutation.syntax`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from languages import parsing
from languages.parsing import Syntax
from languages.registry import find_syntax
from mutation import swaps


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """A row: a parser, and the tokens of its language that operators read and write."""

    syntax: Syntax
    null_literal: str = ""
    """The null value that any function may return; empty where that depends on the return type."""
    zero_values: Mapping[str, str] = field(default_factory=dict)
    """Return type -> its zero value."""
    default_zero: str = ""
    """Zero value of return types that are not in `zero_values`; empty for none."""
    booleans: tuple[str, str] = ("true", "false")
    negation: str = "!"
    """Prefix that negates a condition."""
    comment_prefix: str = "//"
    """Start of a comment that extends to the end of the line."""
    no_op: str = ";"
    """A statement that does nothing; empty for none."""
    block_filler: str = ""
    """The statement that a block contains when it has no other; empty where a block may be empty."""
    statement_end: str = ";"
    assignment_template: str = ""
    """A statement that assigns `{value}` to `{name}`, possibly with the function's `{type}`; empty for none."""
    not_implemented: str = ""
    """The statement of a function that is not written yet; `{zeros}` stands for zero values of its results. Where an
    exception would end all tests of a program, the statement returns them."""
    zero_template: str = ""
    """The zero value of any `{type}`."""
    has_unused_imports: bool = True
    """Whether a file may have imports that it does not use."""
    numbered_name: str = "{name}{number}"
    """How a second local variable of the same name is called."""
    number_nodes: frozenset[str] = frozenset({"number", "integer", "float"})
    """Node types of plain numbers."""
    opposites: Mapping[str, str] = field(default_factory=lambda: swaps.OPPOSITES)
    arithmetic: Mapping[str, str] = field(default_factory=lambda: swaps.ARITHMETIC)
    calls: Mapping[str, str] = field(default_factory=lambda: swaps.CALLS)
    typed_parameters: bool = True
    """Whether a parameter can replace another parameter only where both are declared with the same type."""

    @property
    def name(self) -> str:
        """Name of the language."""
        return self.syntax.name


_INTEGER_TYPES = ("int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64")
_GO_ZEROS = {
    **dict.fromkeys((*_INTEGER_TYPES, "float32", "float64", "byte", "rune"), "0"),
    "string": '""',
    "bool": "false",
    "error": "nil",
}
_RUST_ZEROS = {
    **dict.fromkeys(("i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize"), "0"),
    "f32": "0.0",
    "f64": "0.0",
    "bool": "false",
    "String": "String::new()",
}
_JAVA_ZEROS = {**dict.fromkeys(("int", "long", "short", "byte", "float", "double", "char"), "0"), "boolean": "false"}
_C_TYPES = (*_INTEGER_TYPES, "long", "short", "char", "size_t", "float", "double", "unsigned", "bool")
_C_ZEROS = dict.fromkeys(_C_TYPES, "0")
_C_NUMBERS = frozenset({"number_literal"})

GRAMMARS: tuple[Grammar, ...] = (
    Grammar(
        syntax=parsing.PYTHON,
        null_literal="None",
        booleans=("True", "False"),
        negation="not ",
        comment_prefix="#",
        no_op="pass",
        block_filler="pass",
        statement_end="",
        assignment_template="{name} = {value}",
        numbered_name="{name}_{number}",
        not_implemented="raise NotImplementedError",
        opposites=swaps.PYTHON_OPPOSITES,
        arithmetic=swaps.PYTHON_ARITHMETIC,
        calls=swaps.PYTHON_CALLS,
        typed_parameters=False,
    ),
    Grammar(
        syntax=parsing.GO,
        zero_values=_GO_ZEROS,
        no_op="",
        statement_end="",
        assignment_template="{name} := {value}",
        not_implemented="return {zeros}",
        zero_template="*new({type})",
        has_unused_imports=False,
        number_nodes=frozenset({"int_literal", "float_literal"}),
    ),
    Grammar(
        syntax=parsing.JAVASCRIPT,
        null_literal="undefined",
        assignment_template="const {name} = {value};",
        not_implemented='throw new Error("not implemented");',
    ),
    Grammar(
        syntax=parsing.TYPESCRIPT,
        null_literal="undefined",
        assignment_template="const {name} = {value};",
        not_implemented='throw new Error("not implemented");',
    ),
    Grammar(
        syntax=parsing.TSX,
        null_literal="undefined",
        assignment_template="const {name} = {value};",
        not_implemented='throw new Error("not implemented");',
    ),
    Grammar(
        syntax=parsing.RUST,
        zero_values=_RUST_ZEROS,
        no_op="{}",
        assignment_template="let {name} = {value};",
        not_implemented='unimplemented!("not implemented")',
        number_nodes=frozenset({"integer_literal", "float_literal"}),
    ),
    Grammar(
        syntax=parsing.JAVA,
        zero_values=_JAVA_ZEROS,
        default_zero="null",
        assignment_template="{type} {name} = {value};",
        not_implemented='throw new UnsupportedOperationException("not implemented");',
        number_nodes=frozenset({"decimal_integer_literal", "decimal_floating_point_literal"}),
    ),
    Grammar(
        syntax=parsing.C,
        zero_values=_C_ZEROS,
        not_implemented="return {zeros};",
        zero_template="({type}){{0}}",
        number_nodes=_C_NUMBERS,
    ),
    Grammar(
        syntax=parsing.CPP,
        zero_values=_C_ZEROS,
        not_implemented='throw "not implemented";',
        number_nodes=_C_NUMBERS,
    ),
    Grammar(
        syntax=parsing.RUBY,
        null_literal="nil",
        comment_prefix="#",
        no_op="nil",
        statement_end="",
        assignment_template="{name} = {value}",
        not_implemented='raise NotImplementedError, "not implemented"',
    ),
    Grammar(
        syntax=parsing.PHP,
        null_literal="null",
        assignment_template="${name} = {value};",
        not_implemented='throw new \\LogicException("not implemented");',
    ),
)


def find_grammar(path: str) -> Grammar | None:
    """Return the grammar of a file by its suffix."""
    syntax = find_syntax(path)
    return next((grammar for grammar in GRAMMARS if grammar.syntax is syntax), None)
