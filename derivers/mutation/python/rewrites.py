"""Python written otherwise: what stays the same for every caller. Each rule keeps to cases where that is sure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count

import libcst as cst

from derivers.mutation.change import Found, Part
from derivers.mutation.python.expressions import called, negation
from derivers.mutation.python.source import Source, descendants, everything

LOOKING = frozenset({"locals", "vars", "eval", "exec", "dir", "globals", "_getframe", "currentframe", "query"})
"""Calls that may see the names of local variables."""
REMARK = b"# The next step follows from what is known here."
_LITERALS = (cst.Integer, cst.Float, cst.SimpleString)
_SCOPES = (cst.FunctionDef, cst.Lambda, cst.ClassDef)


def local_renamed(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """A local variable has another name."""
    if not isinstance(node, cst.FunctionDef) or at.function(node) is not None:
        return
    body = at.text(node)
    if any(called(call) in LOOKING for call in descendants(node, cst.Call)):
        return
    for name in _locals(node):
        new = _free(at, name)
        spans = [at.span(one) for one in descendants(node, cst.Name) if one.value == name]
        said = len(re.findall(rb"(?<![\w])" + re.escape(name.encode()) + rb"(?![\w])", body))
        if said == len(spans):  # nowhere else: no text, no comment, no keyword speaks of it
            parts = tuple(Part(*span, new.encode()) for span in sorted(spans))
            yield Found(parts=parts, shown=_line_of(at, spans[0]))


def comparison_commuted(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a == 1` becomes `1 == a`, of a name or attribute and a literal."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        one = node.comparisons[0]
        simple = isinstance(node.left, cst.Name | cst.Attribute) and isinstance(one.comparator, _LITERALS)
        if simple and isinstance(one.operator, cst.Equal | cst.NotEqual):
            word = b" == " if isinstance(one.operator, cst.Equal) else b" != "
            yield at.found(node, at.operand(one.comparator) + word + at.operand(node.left))


def branches_swapped(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`if a: b else: c` becomes `if not a: c else: b`, on lines of their own and in one expression."""
    if isinstance(node, cst.IfExp):
        parts = (at.operand(node.orelse), b" if ", _not(at, node.test), b" else ", at.operand(node.body))
        yield at.found(node, b"".join(parts))
    if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.Else):
        return
    body, orelse = node.body, node.orelse.body
    if isinstance(body, cst.IndentedBlock) and isinstance(orelse, cst.IndentedBlock):
        first, second = _block(at, body), _block(at, orelse)
        if at.before(first[0]) == at.before(second[0]):
            a, b = at.bytes[slice(*first)], at.bytes[slice(*second)]
            test = Part(*at.outer(node.test), _not(at, node.test))
            yield Found(parts=(test, Part(*first, b), Part(*second, a)), shown=at.outer(node.test))


def doubly_negated(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`if a:` becomes `if not not a:`."""
    if isinstance(node, cst.If | cst.While) and not isinstance(node.test, cst.NamedExpr):
        yield at.found(node.test, b"not (" + negation(at, node.test) + b")", node.test)


def result_named(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`return a + b` becomes `outcome = a + b` and `return outcome`."""
    if not isinstance(node, cst.Return) or node.value is None or isinstance(node.value, cst.Name | cst.Integer):
        return
    if _begins_line(at, node) and at.function(node) is not None:
        name, start = _free(at, "outcome").encode(), at.span(node)[0]
        text = name + b" = " + at.operand(node.value) + at.newline + at.before(start) + b"return " + name
        yield at.at((start, max(at.outer(node.value)[1], at.span(node)[1])), text, node)


def sum_written_out(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a += 1` becomes `a = a + 1`, of a name and a number."""
    if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
        word = {cst.AddAssign: b"+", cst.SubtractAssign: b"-"}.get(type(node.operator))
        if word and isinstance(node.value, cst.Integer | cst.Float):
            name = at.text(node.target)
            yield at.found(node, name + b" = " + name + b" " + word + b" " + at.text(node.value))


def step_added(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`pass` before the first statement of a function, behind its docstring."""
    if (first := _first_statement(at, node)) is not None:
        start = at.span(first)[0]
        yield at.at((start, start), b"pass" + at.newline + at.before(start), first)


def remark_added(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """A comment before a statement of a function."""
    yield from _line_added(at, node, REMARK)


def blank_line_added(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """An empty line before a statement of a function."""
    yield from _line_added(at, node, b"")


def _line_added(at: Source, node: cst.CSTNode, text: bytes) -> Iterator[Found]:
    if isinstance(node, cst.SimpleStatementLine) and at.function(node) is not None:
        start = at.span(node)[0]
        indent = at.before(start)
        if not indent.strip() and isinstance(at.parent(node), cst.IndentedBlock):
            line = (indent + text if text else b"") + at.newline
            yield at.at((start - len(indent), start - len(indent)), line, node)


def _locals(function: cst.FunctionDef) -> Iterator[str]:
    """Names that nothing but assignments and loops of this function's own bind, in the order of the text."""
    bound: dict[str, None] = {}
    barred: set[str] = set()
    for node in everything(function):
        if isinstance(node, cst.AssignTarget | cst.For | cst.NamedExpr | cst.AnnAssign):
            bound |= dict.fromkeys(_targets(node.target))
        elif isinstance(node, cst.Param):
            barred.add(node.name.value)
        elif isinstance(node, cst.Global | cst.Nonlocal):
            barred |= {item.name.value for item in node.names}
        elif isinstance(node, cst.Import | cst.ImportFrom | cst.Match):
            barred |= {name.value for name in descendants(node, cst.Name)}
        elif isinstance(node, cst.Attribute):
            barred.add(node.attr.value)
        elif isinstance(node, cst.Arg) and node.keyword is not None:
            barred.add(node.keyword.value)
        elif isinstance(node, cst.FormattedStringExpression) and node.equal is not None:
            barred |= {name.value for name in descendants(node, cst.Name)}
        elif isinstance(node, _SCOPES) and node is not function:  # what is bound in there is of another scope
            barred |= {name.value for one in descendants(node, cst.AssignTarget) for name in _names(one.target)}
            barred |= {one.name.value for one in [node] if not isinstance(one, cst.Lambda)}
    yield from (name for name in bound if name not in barred and not name.startswith("_"))


def _names(target: cst.CSTNode) -> Sequence[cst.Name]:
    return list(descendants(target, cst.Name))


def _targets(target: cst.BaseExpression) -> list[str]:
    """The names a target binds: not those of `a.b` and `a[b]`."""
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, cst.Tuple | cst.List):
        return [name for element in target.elements for name in _targets(element.value)]
    return []


def _free(at: Source, name: str) -> str:
    """The name, with a number behind it if need be, as it occurs nowhere in the file."""
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(free for free in names if not re.search(rf"\b{free}\b".encode(), at.bytes))


def _not(at: Source, test: cst.BaseExpression) -> bytes:
    """The opposite of a condition, safe wherever the condition stood."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return at.operand(test.expression)
    return b"not " + (b"(" + at.text(test) + b")" if not isinstance(test, cst.Name) else at.text(test))


def _block(at: Source, block: cst.IndentedBlock) -> tuple[int, int]:
    return at.span(block.body[0])[0], at.span(block.body[-1])[1]


def _begins_line(at: Source, node: cst.BaseSmallStatement) -> bool:
    line = at.parent(node)
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    return alone and not at.before(at.span(node)[0]).strip()


def _first_statement(at: Source, node: cst.CSTNode) -> cst.CSTNode | None:
    if not isinstance(node, cst.FunctionDef) or not isinstance(node.body, cst.IndentedBlock):
        return None
    lines = node.body.body
    first = lines[0]
    text = isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Expr)
    first = lines[1] if text and len(lines) > 1 else first
    return first if isinstance(first, cst.SimpleStatementLine) and not at.before(at.span(first)[0]).strip() else None


def _line_of(at: Source, span: tuple[int, int]) -> tuple[int, int]:
    """The rest of the line from a place on, for people."""
    end = at.bytes.find(b"\n", span[0])
    return span[0], len(at.bytes) if end < 0 else end
