"""Mutants of Python: what statements do, and which names they use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from derivers.mutation.change import Found
from derivers.mutation.python.expressions import TYPES, called, other_constant
from derivers.mutation.python.source import Source

_ABOUT_NAMES = frozenset({"getattr", "setattr", "hasattr", "delattr"})
_LEAVING = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def return_value(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`return a` becomes `return None`."""
    if isinstance(node, cst.Return) and node.value is not None:
        known = isinstance(node.value, cst.Name) and node.value.value in ("None", "True", "False")
        if not known:
            yield at.at(at.outer(node.value), b"None", node)


def statement_removed(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """A call whose result nobody takes, or the setting of an attribute or item, is left out."""
    if isinstance(node, cst.Expr):
        value = node.value.expression if isinstance(node.value, cst.Await) else node.value
        if isinstance(value, cst.Call):
            yield _removed(at, node)
    elif at.function(node) is not None and (
        isinstance(node, cst.AugAssign | cst.Del | cst.Raise)
        or (isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Attribute | cst.Subscript))
    ):
        yield _removed(at, node)


def guard_removed(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """An `if` without `else` that only returns, raises, continues or breaks is left out."""
    if not isinstance(node, cst.If) or node.orelse is not None or isinstance(at.parent(node), cst.If):
        return
    body = simple(node.body)
    if len(body) == 1 and isinstance(body[0], _LEAVING) and at.function(node) is not None:
        yield _removed(at, node)


def branch_removed(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`elif b: ...` and `else: ...` are left out."""
    if not isinstance(node, cst.If) or node.orelse is None:
        return
    orelse = node.orelse
    start, end = at.span(orelse)
    if isinstance(orelse, cst.If) and orelse.orelse is not None:  # the rest of the chain stays
        yield at.at((start, at.span(orelse.orelse)[0]), b"", orelse)
    elif not any(isinstance(one, cst.Pass) for one in simple(orelse.body)):
        yield at.at((start - len(at.before(start)), at.line_end(end)), b"", orelse)


def default_argument(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`def f(a=1)` becomes `def f(a=2)`."""
    if isinstance(node, cst.Param) and node.default is not None:
        default = node.default
        number = default.expression if isinstance(default, cst.UnaryOperation) else default
        if (text := other_constant(number)) is not None:
            yield at.found(number, text, node)
        elif isinstance(default, cst.SimpleString) and default.raw_value and "\\" not in default.raw_value:
            quoted = f"{default.prefix}{default.quote}{default.quote}"
            yield at.found(default, quoted.encode(), node)


def handler_emptied(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """What an `except` does is left out."""
    if isinstance(node, cst.ExceptHandler | cst.ExceptStarHandler) and isinstance(node.body, cst.IndentedBlock):
        body, small = node.body.body, simple(node.body)
        if body and not (len(small) == 1 and isinstance(small[0], cst.Pass)):
            yield at.at((at.span(body[0])[0], at.span(body[-1])[1]), b"pass", node)


def loop_control(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`continue` becomes `break` and the other way round."""
    if isinstance(node, cst.Continue | cst.Break):
        yield at.found(node, b"break" if isinstance(node, cst.Continue) else b"continue")


def loop_ended(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """A `for` ends after its first round."""
    if isinstance(node, cst.For) and isinstance(node.body, cst.IndentedBlock):
        last = node.body.body[-1]
        if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _LEAVING):
            return
        start, end = at.span(node.body.body[0])[0], at.line_end(at.span(last)[1])
        text = at.before(start) + b"break" + at.newline
        yield at.at((end, end), text if at.bytes[:end].endswith(b"\n") else at.newline + text, node)


def wrong_variable(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """A parameter is read where another one of the same function was meant."""
    if not isinstance(node, cst.Name) or not _is_read(at, node):
        return
    function = at.function(node)
    if function is None or isinstance(at.statement(node), cst.FunctionDef):
        return
    names = parameters(function)
    if node.value in names and len(names) > 1:
        other = names[(names.index(node.value) + 1) % len(names)]
        yield at.found(node, other.encode(), at.parent(node) if _on_one_line(at, node) else node)


def arguments_swapped(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`f(a, b)` becomes `f(b, a)`, of plain names and attributes."""
    if isinstance(node, cst.Call) and called(node) not in TYPES | _ABOUT_NAMES:
        for first, second in zip(node.args, node.args[1:], strict=False):
            pair = (first, second)
            plain = all(not one.star and one.keyword is None for one in pair)
            if plain and all(isinstance(one.value, cst.Name | cst.Attribute) for one in pair):
                (a1, a2), (b1, b2) = at.outer(first.value), at.outer(second.value)
                yield at.at((a1, b2), at.bytes[b1:b2] + at.bytes[a2:b1] + at.bytes[a1:a2], node)
                break


def parameters(function: cst.FunctionDef) -> list[str]:
    """Names of a function's parameters, in order, without `self` and `cls`."""
    params = function.params
    names = [param.name.value for param in (*params.posonly_params, *params.params, *params.kwonly_params)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _is_read(at: Source, node: cst.Name) -> bool:
    around = at.parent(node)
    if isinstance(around, cst.Attribute):
        return around.value is node
    if isinstance(around, cst.Arg):
        return around.value is node
    written = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Param, cst.NameItem, cst.NamedExpr, cst.AsName)
    expressions = (cst.BaseExpression, cst.BaseSmallStatement, cst.Index, cst.ComparisonTarget, cst.If, cst.Element)
    return not isinstance(around, written) and isinstance(around, (*expressions, cst.Slice, cst.DictElement))


def _on_one_line(at: Source, node: cst.CSTNode) -> bool:
    around = at.parent(node)
    return around is not None and b"\n" not in at.text(around)


def simple(body: cst.BaseSuite) -> Sequence[cst.BaseSmallStatement]:
    """The simple statements of a block that has no other; else nothing."""
    if isinstance(body, cst.SimpleStatementSuite):
        return body.body
    lines = [line for line in body.body if isinstance(line, cst.SimpleStatementLine)]
    return [one for line in lines for one in line.body] if len(lines) == len(body.body) else []


def _removed(at: Source, node: cst.BaseSmallStatement | cst.If) -> Found:
    """Without the statement: the whole lines where others remain in its block, else `pass` in its place."""
    line = node if isinstance(node, cst.If) else at.parent(node)
    block = at.parent(line) if line is not None else None
    alone = isinstance(line, cst.If) or (isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1)
    start, end = at.span(node)
    if alone and isinstance(block, cst.IndentedBlock) and len(block.body) > 1:
        return at.at((start - len(at.before(start)), at.line_end(end)), b"", node)
    return at.found(node, b"pass")
