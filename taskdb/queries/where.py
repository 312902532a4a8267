"""Expressions of `--where`: a SQL expression over the columns of view `tasks`, compiled for either database.

The text is parsed with sqlglot, and only the operators and functions below are translated, each into SQLAlchemy's;
literals become parameters. No part of the text reaches the database, so the same expression selects the same tasks on
SQLite and PostgreSQL, and nothing but a comparison of columns can be expressed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlglot
from sqlalchemy import ColumnElement, Float, String, and_, cast, false, func, literal, not_, null, or_, true
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser

from core.errors import UsageError
from taskdb.schema.collation import ByteOrder

MAX_CHARACTERS = 100_000
MAX_CONDITIONS = 500
"""Comparisons and operators other than AND and OR; SQLite's parser ends at a depth of 1,000."""
MAX_ARITHMETIC = 20
"""Operators of arithmetic, so that no intermediate result leaves the range of a float."""
MAX_NUMBER = 1e15
LITERAL_ESCAPE = "\\"
"""Escape character of LIKE in both databases."""


class ValueType(StrEnum):
    """Type of a part of an expression."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "condition"
    NULL = "null"


@dataclass(frozen=True)
class TypedExpression:
    """Part of an expression in SQLAlchemy's terms."""

    value: ColumnElement[Any]
    type: ValueType


_ORDERS: Mapping[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)
_JOINS = (exp.And, exp.Or)
_LIKES = (exp.Like, exp.ILike)
_ARGUMENTS = frozenset(
    ("this", "expression", "expressions", "low", "high", "start", "length", "is_string", "table", "db", "safe", "typed")
)
"""Parts of the parser's nodes that are read here. A node with another part is not compiled."""
_FUNCTIONS: Mapping[type[exp.Expr], tuple[str, ValueType, ValueType]] = {
    exp.Lower: ("lower", ValueType.TEXT, ValueType.TEXT),
    exp.Upper: ("upper", ValueType.TEXT, ValueType.TEXT),
    exp.Trim: ("trim", ValueType.TEXT, ValueType.TEXT),
    exp.Length: ("length", ValueType.TEXT, ValueType.NUMBER),
    exp.Abs: ("abs", ValueType.NUMBER, ValueType.NUMBER),
}
"""Functions of an argument: name in both databases, type of the argument, type of the result."""
FUNCTION_NAMES = ("abs", "coalesce", "length", "lower", "substr", "trim", "upper")


def compile_where(text: str, columns: Mapping[str, ColumnElement[Any]]) -> ColumnElement[bool]:
    """Compile an expression into a condition on columns.

    Args:
        text: an SQL expression, such as `changed_lines < 50 AND repo LIKE 'pallets/%'`. LIKE and ILIKE ignore case,
            a division is that of real numbers, a division by zero is null.
        columns: name -> typed column.

    Raises:
        UsageError: it is not such an expression; the message names the problem.
    """
    try:
        tree = _parse(text)
        _check_size(tree)
        compiled = _Compiler(columns).compile(tree)
        if compiled.type is not ValueType.BOOLEAN:
            raise _build_error(f"{_quote(tree)} is no condition")
    except RecursionError:
        raise _build_error("the expression is nested too deeply") from None
    return compiled.value


def _parse(text: str) -> exp.Expr:
    if len(text) > MAX_CHARACTERS:
        raise _build_error(f"the expression is longer than {MAX_CHARACTERS:,} characters")
    if any(ord(character) < ord(" ") and character not in "\t\n\r" for character in text) or not _is_unicode(text):
        raise _build_error("the expression has control characters")
    try:
        tokens = sqlglot.tokenize(text)
        # A comment could hide the part of an expression that a person overlooks in a shared command.
        if any(token.comments for token in tokens):
            raise _build_error("comments are not possible")
        if any(token.token_type is sqlglot.TokenType.SEMICOLON for token in tokens):
            raise _build_error("not one SQL expression: it contains ';'")
        trees = [tree for tree in Parser().parse_into(exp.Condition, tokens, text) if tree is not None]
    except SqlglotError as error:
        at = getattr(error, "errors", None)
        near = str(at[0].get("highlight") or "").strip() if at else ""
        where = f" near {near[:40]!r}" if near else ""
        raise _build_error(f"not one SQL expression{where}") from error
    if len(trees) != 1:
        raise _build_error("the expression is empty")
    return trees[0]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_size(tree: exp.Expr) -> None:
    conditions = arithmetic = 0
    for node in tree.walk():
        conditions += isinstance(node, (exp.Binary, exp.Func)) and not isinstance(node, _JOINS)
        arithmetic += isinstance(node, (*_ARITHMETIC, exp.Mod))
    if conditions > MAX_CONDITIONS:
        raise _build_error(f"the expression has more than {MAX_CONDITIONS} operators")
    if arithmetic > MAX_ARITHMETIC:
        raise _build_error(f"the expression has more than {MAX_ARITHMETIC} operators of arithmetic")


def _quote(node: exp.Expr) -> str:
    text = node.sql()
    return text if len(text) <= 60 else f"{text[:57]}..."


def _build_error(problem: str) -> UsageError:
    return UsageError(f"--where: {problem}", advice="one SQL expression over the columns of view `tasks`")


@dataclass(frozen=True)
class _Compiler:
    columns: Mapping[str, ColumnElement[Any]]

    def compile(self, node: exp.Expr) -> TypedExpression:
        known = {*_ARGUMENTS, "negate"} if isinstance(node, _LIKES) else _ARGUMENTS
        if unknown := [name for name, value in node.args.items() if value and name not in known]:
            raise _build_error(f"{_quote(node)} is not possible: {unknown[0]}")
        for kinds, compile_node in _NODES.items():
            if isinstance(node, kinds):
                return compile_node(self, node)
        kind = "the function" if isinstance(node, exp.Func) else "the expression"
        functions = f"; functions: {', '.join(FUNCTION_NAMES)}" if isinstance(node, exp.Func) else ""
        raise _build_error(f"{kind} {_quote(node)} is not possible{functions}")

    def require(self, node: exp.Expr, *wanted: ValueType) -> ColumnElement[Any]:
        """Compile a part that must have a type; null has every type."""
        compiled = self.compile(node)
        if compiled.type not in (*wanted, ValueType.NULL):
            raise _build_error(f"{_quote(node)} is a {compiled.type}, not a {' or '.join(wanted)}")
        return compiled.value

    def compile_paren(self, node: exp.Expr) -> TypedExpression:
        return self.compile(node.this)

    def compile_column(self, node: exp.Expr) -> TypedExpression:
        if not isinstance(node.this, exp.Identifier):
            raise _build_error(f"{_quote(node)} is no column")
        # As in SQL, where unquoted names have no case.
        name = node.name if node.name in self.columns else node.name.lower()
        if name not in self.columns or (node.args.get("table") and node.text("table") != "tasks") or node.text("db"):
            quoted = "; text stands in single quotes" if node.this.args.get("quoted") else ""
            raise _build_error(f"there is no column {_quote(node)}{quoted}; columns: {', '.join(self.columns)}")
        column = self.columns[name]
        return TypedExpression(column, ValueType.TEXT if column.type.python_type is str else ValueType.NUMBER)

    def compile_literal(self, node: exp.Expr) -> TypedExpression:
        if node.args.get("is_string"):
            return TypedExpression(literal(node.name, String()), ValueType.TEXT)
        number = float(node.name)
        # Larger numbers are read differently by the two databases.
        if not math.isfinite(number) or abs(number) > MAX_NUMBER:
            raise _build_error(f"the number {node.name[:40]} is too large")
        return TypedExpression(literal(int(number) if number.is_integer() else number), ValueType.NUMBER)

    def compile_boolean(self, node: exp.Expr) -> TypedExpression:
        return TypedExpression(true() if node.this else false(), ValueType.BOOLEAN)

    def compile_null(self, _node: exp.Expr) -> TypedExpression:
        return TypedExpression(null(), ValueType.NULL)

    def compile_not(self, node: exp.Expr) -> TypedExpression:
        return TypedExpression(not_(self.require(node.this, ValueType.BOOLEAN)), ValueType.BOOLEAN)

    def compile_join(self, node: exp.Expr) -> TypedExpression:
        join = and_ if isinstance(node, exp.And) else or_
        parts = [self.require(part, ValueType.BOOLEAN) for part in _flatten(node)]
        return TypedExpression(join(*parts), ValueType.BOOLEAN)

    def compile_pair(self, node: exp.Expr, other: exp.Expr) -> tuple[TypedExpression, TypedExpression]:
        left, right = self.compile(node), self.compile(other)
        types = {left.type, right.type} - {ValueType.NULL}
        if ValueType.BOOLEAN in types:
            raise _build_error(f"{_quote(node)} and {_quote(other)} cannot be compared: conditions are joined by AND")
        if len(types) > 1:
            raise _build_error(f"{_quote(node)} is a {left.type} and {_quote(other)} a {right.type}")
        return left, right

    def compile_equality(self, node: exp.Expr) -> TypedExpression:
        left, right = self.compile_pair(node.this, node.expression)
        if ValueType.NULL in (left.type, right.type):
            raise _build_error(f"{_quote(node)} is never true: use IS NULL or IS NOT NULL")
        is_equal = left.value == right.value if isinstance(node, exp.EQ) else left.value != right.value
        return TypedExpression(is_equal, ValueType.BOOLEAN)

    def compile_order(self, node: exp.Expr) -> TypedExpression:
        left, right = self.compile_pair(node.this, node.expression)
        return TypedExpression(_order(left, _ORDERS[type(node)], right), ValueType.BOOLEAN)

    def compile_between(self, node: exp.Expr) -> TypedExpression:
        value, low = self.compile_pair(node.this, node.args["low"])
        _, high = self.compile_pair(node.this, node.args["high"])
        return TypedExpression(and_(_order(value, ">=", low), _order(value, "<=", high)), ValueType.BOOLEAN)

    def compile_is(self, node: exp.Expr) -> TypedExpression:
        if not isinstance(node.expression, exp.Null):
            raise _build_error(f"{_quote(node)} is not possible: IS is followed by NULL or NOT NULL")
        return TypedExpression(self.compile(node.this).value.is_(None), ValueType.BOOLEAN)

    def compile_in(self, node: exp.Expr) -> TypedExpression:
        members = node.args.get("expressions")
        if not members or any(not isinstance(member, exp.Literal | exp.Neg) for member in members):
            raise _build_error(f"{_quote(node)} is not possible: IN is followed by a list of values")
        pairs = [self.compile_pair(node.this, member) for member in members]
        return TypedExpression(pairs[0][0].value.in_([member.value for _, member in pairs]), ValueType.BOOLEAN)

    def compile_like(self, node: exp.Expr) -> TypedExpression:
        value = self.require(node.this, ValueType.TEXT)
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.args.get("is_string"):
            raise _build_error(f"{_quote(node)} is not possible: LIKE is followed by a text")
        trailing = len(pattern.name) - len(pattern.name.rstrip(LITERAL_ESCAPE))
        # PostgreSQL raises an error for it, and SQLite matches nothing.
        if trailing % 2:
            raise _build_error(f"{_quote(node)} ends with the escape character of LIKE")
        matches = value.ilike(pattern.name, escape=LITERAL_ESCAPE)
        return TypedExpression(not_(matches) if node.args.get("negate") else matches, ValueType.BOOLEAN)

    def compile_arithmetic(self, node: exp.Expr) -> TypedExpression:
        # Both databases would divide integers without a rest.
        left = cast(self.require(node.this, ValueType.NUMBER), Float)
        right = cast(self.require(node.expression, ValueType.NUMBER), Float)
        operators: Mapping[type[exp.Expr], Callable[[], ColumnElement[Any]]] = {
            exp.Add: lambda: left + right,
            exp.Sub: lambda: left - right,
            exp.Mul: lambda: left * right,
            # PostgreSQL raises an error for a division by zero, and SQLite returns null.
            exp.Div: lambda: left.op("/")(func.nullif(right, 0.0)),
        }
        return TypedExpression(operators[type(node)](), ValueType.NUMBER)

    def compile_negation(self, node: exp.Expr) -> TypedExpression:
        return TypedExpression(-self.require(node.this, ValueType.NUMBER), ValueType.NUMBER)

    def compile_concatenation(self, node: exp.Expr) -> TypedExpression:
        parts = [self.require(part, ValueType.TEXT) for part in (node.this, node.expression)]
        return TypedExpression(parts[0].concat(parts[1]), ValueType.TEXT)

    def compile_function(self, node: exp.Expr) -> TypedExpression:
        name, wanted, result = _FUNCTIONS[type(node)]
        if any(value for key, value in node.args.items() if key != "this"):
            raise _build_error(f"{_quote(node)} is not possible: {name} has one argument")
        return TypedExpression(getattr(func, name)(self.require(node.this, wanted)), result)

    def compile_substring(self, node: exp.Expr) -> TypedExpression:
        bounds = [node.args.get("start"), node.args.get("length")]
        numbers = [bound for bound in bounds if bound is not None]
        if not numbers or any(not isinstance(bound, exp.Literal) or not bound.name.isdigit() for bound in numbers):
            raise _build_error(f"{_quote(node)} is not possible: substr(TEXT, FIRST, LENGTH) takes two whole numbers")
        limits = [int(bound.name) for bound in numbers]
        if limits[0] < 1 or max(limits) > MAX_CHARACTERS:
            raise _build_error(f"{_quote(node)} is not possible: the first character is number 1")
        return TypedExpression(func.substr(self.require(node.this, ValueType.TEXT), *limits), ValueType.TEXT)

    def compile_coalesce(self, node: exp.Expr) -> TypedExpression:
        parts = [self.compile(part) for part in (node.this, *node.expressions)]
        types = {part.type for part in parts} - {ValueType.NULL}
        if len(types) != 1 or ValueType.BOOLEAN in types or len(parts) < 2:
            raise _build_error(f"the arguments of {_quote(node)} have several types or are conditions")
        return TypedExpression(func.coalesce(*(part.value for part in parts)), types.pop())


def _order(left: TypedExpression, operator: str, right: TypedExpression) -> ColumnElement[bool]:
    """Return a comparison by order; text is ordered by its bytes."""
    if ValueType.NULL in (left.type, right.type):
        raise _build_error("a comparison with NULL is never true: use IS NULL or IS NOT NULL")
    # The default order of text depends on the database and its locale.
    value = left.value if left.type is ValueType.NUMBER else ByteOrder(left.value, type_=String())
    return value.bool_op(operator)(right.value)


def _flatten(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a chain of ANDs or ORs, first to last."""
    # Without recursion, since the parser nests a chain as deeply as it is long.
    kind, pending = type(node), [node]
    while pending:
        part = pending.pop()
        if type(part) is kind:
            pending += [part.expression, part.this]
        else:
            yield part


_NODES: Mapping[Any, Callable[[_Compiler, Any], TypedExpression]] = {
    exp.Paren: _Compiler.compile_paren,
    exp.Column: _Compiler.compile_column,
    exp.Literal: _Compiler.compile_literal,
    exp.Boolean: _Compiler.compile_boolean,
    exp.Null: _Compiler.compile_null,
    exp.Not: _Compiler.compile_not,
    _JOINS: _Compiler.compile_join,
    (exp.EQ, exp.NEQ): _Compiler.compile_equality,
    tuple(_ORDERS): _Compiler.compile_order,
    exp.Between: _Compiler.compile_between,
    exp.Is: _Compiler.compile_is,
    exp.In: _Compiler.compile_in,
    _LIKES: _Compiler.compile_like,
    _ARITHMETIC: _Compiler.compile_arithmetic,
    exp.Neg: _Compiler.compile_negation,
    exp.DPipe: _Compiler.compile_concatenation,
    tuple(_FUNCTIONS): _Compiler.compile_function,
    exp.Substring: _Compiler.compile_substring,
    exp.Coalesce: _Compiler.compile_coalesce,
}
