"""Kinds of rules of a program: the forms of the conditions under which its methods return a failure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from worlds.program.tree import ProgramTree, get_own_attribute

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
HELPER = "helper"
VALUE = "value"


def list_rule_kinds(tree: ProgramTree, tool: str) -> set[str]:
    """Return the kinds of rules that a tool checks itself, such as `value not in state` or `field < number`.

    Names, texts and numbers of a condition are left out, so that rules of different worlds have the same kind.
    """
    failing = {name for name in tree.methods if _always_fails(name, tree)}
    kinds: set[str] = set()
    for node in ast.walk(tree.methods[tool]):
        if isinstance(node, ast.If) and any(_is_failure(line, failing) for line in (*node.body, *node.orelse)):
            kinds.update(_name_conditions(node.test))
    return kinds


def _always_fails(name: str, tree: ProgramTree) -> bool:
    """Return whether all returns of a method are failures that it writes itself."""
    returns = [node for node in ast.walk(tree.methods[name]) if isinstance(node, ast.Return)]
    return bool(returns) and all(_is_failure(node, set()) for node in returns)


def _is_failure(statement: ast.stmt, failing: set[str]) -> bool:
    match statement:
        case ast.Return(value=ast.Dict(keys=keys, values=values)):
            return any(
                isinstance(key, ast.Constant)
                and key.value == "success"
                and isinstance(value, ast.Constant)
                and value.value is False
                for key, value in zip(keys, values, strict=True)
            )
        case ast.Return(value=ast.Call(func=function)):
            return get_own_attribute(function) in failing
    return False


def _name_conditions(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _name_conditions(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from (f"not {kind}" for kind in _name_conditions(operand))
        case ast.Compare(left=left, ops=operators, comparators=comparators):
            for first, operator, second in zip([left, *comparators], operators, comparators, strict=False):
                yield f"{_name_operand(first)} {_OPERATORS[type(operator)]} {_name_operand(second)}"
        case ast.NamedExpr(value=value):
            yield from _name_conditions(value)
        case _:
            yield _name_operand(node)


def _name_operand(node: ast.expr) -> str:
    kind = VALUE
    match node:
        case ast.Constant(value=value):
            kind = "text" if isinstance(value, str) else "number" if type(value) in (int, float) else str(value)
        case ast.Name(id=name) if name.isupper():
            kind = "limit"
        case ast.Attribute() if get_own_attribute(node):
            kind = "state"
        case ast.Subscript():
            kind = "field"
        case ast.Call(func=ast.Name(id=name)):
            kind = name
        case ast.Call(func=function):
            kind = HELPER if get_own_attribute(function) else "call"
        case ast.Tuple() | ast.List() | ast.Set():
            kind = "choices"
        case ast.BinOp():
            kind = "sum"
    return kind
