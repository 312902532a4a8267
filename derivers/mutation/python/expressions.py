"""Mutants of Python: what expressions compute."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from derivers.mutation.change import Found
from derivers.mutation.python.source import Source

BOUNDARIES: dict[type[cst.CSTNode], bytes] = {
    cst.LessThan: b"<=", cst.LessThanEqual: b"<", cst.GreaterThan: b">=", cst.GreaterThanEqual: b">",
}  # fmt: skip
OPPOSITES: dict[type[cst.CSTNode], bytes] = {
    cst.Equal: b"!=", cst.NotEqual: b"==", cst.Is: b"is not", cst.IsNot: b"is", cst.In: b"not in", cst.NotIn: b"in",
    cst.LessThan: b">", cst.LessThanEqual: b">=", cst.GreaterThan: b"<", cst.GreaterThanEqual: b"<=",
}  # fmt: skip
ARITHMETIC: dict[type[cst.CSTNode], bytes] = {
    cst.Add: b"-", cst.Subtract: b"+", cst.Multiply: b"/", cst.Divide: b"*", cst.FloorDivide: b"/",
    cst.Modulo: b"//", cst.Power: b"*", cst.LeftShift: b">>", cst.RightShift: b"<<", cst.BitAnd: b"|",
    cst.BitOr: b"&", cst.BitXor: b"&",
    cst.AddAssign: b"-=", cst.SubtractAssign: b"+=", cst.MultiplyAssign: b"/=", cst.DivideAssign: b"*=",
    cst.FloorDivideAssign: b"/=", cst.ModuloAssign: b"//=", cst.BitAndAssign: b"|=", cst.BitOrAssign: b"&=",
}  # fmt: skip
CALLS: dict[str, str] = {
    "min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor",
    "startswith": "endswith", "endswith": "startswith", "lower": "upper", "upper": "lower",
    "lstrip": "rstrip", "rstrip": "lstrip", "strip": "lstrip", "find": "rfind", "rfind": "find",
    "split": "rsplit", "rsplit": "split", "partition": "rpartition", "rpartition": "partition",
    "append": "extend", "extend": "append", "union": "intersection", "intersection": "union",
    "ljust": "rjust", "rjust": "ljust", "keys": "values", "values": "keys",
}  # fmt: skip
"""Functions and methods that are easily taken for one another."""
MESSAGES = frozenset({
    "print", "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "deprecated", "echo",
    "compile", "getLogger", "field", "Field", "option", "argument", "add_argument", "TypeVar", "namedtuple",
})  # fmt: skip
"""Calls whose texts are for people, or are names of their own."""
TYPES = frozenset({"isinstance", "issubclass", "cast", "TypeVar", "Union"})
"""Calls that take types."""
_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Comparison, cst.SimpleString, cst.Await, cst.List)
_STRING_PLACES = (
    cst.ComparisonTarget, cst.Comparison, cst.Return, cst.Index, cst.DictElement, cst.BinaryOperation, cst.Arg,
    cst.Assign,
)  # fmt: skip


def negation(at: Source, node: cst.BaseExpression) -> bytes:
    """The opposite of a condition, as it may stand in its place (inside its own parentheses, if it has some)."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return at.operand(node.expression)
    text = at.text(node)
    return b"not " + text if isinstance(node, _PLAIN) else b"not (" + text + b")"


def comparison_boundary(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a < b` becomes `a <= b`."""
    yield from _other_comparison(at, node, BOUNDARIES)


def comparison_flipped(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a == b` becomes `a != b`, `a < b` becomes `a > b`."""
    yield from _other_comparison(at, node, OPPOSITES)


def _other_comparison(at: Source, node: cst.CSTNode, table: dict[type[cst.CSTNode], bytes]) -> Iterator[Found]:
    if isinstance(node, cst.Comparison):
        for one in node.comparisons:
            if (text := table.get(type(one.operator))) is not None:
                yield at.found(one.operator, text, node)


def boolean_operator(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a and b` becomes `a or b`."""
    if isinstance(node, cst.BooleanOperation):
        yield at.found(node.operator, b"or" if isinstance(node.operator, cst.And) else b"and", node)


def condition_negated(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`if a:` becomes `if not a:`, in statements, comprehensions and conditional expressions."""
    if isinstance(node, cst.If | cst.While | cst.IfExp | cst.CompIf | cst.Assert):
        test = node.test
        constant = isinstance(test, cst.Integer) or (isinstance(test, cst.Name) and test.value in ("True", "False"))
        simple = isinstance(test, cst.Comparison) and len(test.comparisons) == 1
        if not constant and not simple:  # one comparison has an operator of its own
            yield at.found(test, negation(at, test), test)


def operand_dropped(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a and b` becomes `a`, and `b`."""
    if isinstance(node, cst.BooleanOperation):
        yield at.found(node, at.operand(node.left))
        yield at.found(node, at.operand(node.right))


def arithmetic(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a + b` becomes `a - b`, `a += b` becomes `a -= b`; not between texts or lists, nor of types."""
    if not isinstance(node, cst.BinaryOperation | cst.AugAssign):
        return
    operands = (node.left, node.right) if isinstance(node, cst.BinaryOperation) else (node.value,)
    if any(isinstance(one, cst.BaseString | cst.List | cst.ListComp | cst.Tuple) for one in operands):
        return
    if isinstance(node.operator, cst.BitOr | cst.BitAnd) and _of_types(at, node):
        return
    if (text := ARITHMETIC.get(type(node.operator))) is not None:
        yield at.found(node.operator, text, node)


def _of_types(at: Source, node: cst.CSTNode) -> bool:
    """Whether `a | b` may well be a union of types."""
    calls = (one for one in at.above(node) if isinstance(one, cst.Call))
    return at.function(node) is None or any(called(call) in TYPES for call in calls)


def sign_dropped(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`-a` becomes `a`; not of an index, which has a rule of its own."""
    negative = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)
    if isinstance(node, cst.UnaryOperation) and negative and not isinstance(at.parent(node), cst.Index | cst.Slice):
        yield at.found(node, at.operand(node.expression))


def constant(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`3` becomes `4`, `True` becomes `False`; indices and defaults have rules of their own."""
    around = at.parent(node)
    if isinstance(around, cst.Index | cst.Slice | cst.Param):
        return
    if isinstance(around, cst.UnaryOperation) and isinstance(at.parent(around), cst.Index | cst.Slice | cst.Param):
        return
    if (text := other_constant(node)) is not None:
        yield at.found(node, text, _shown(at, node))


def other_constant(node: cst.CSTNode) -> bytes | None:
    """Another constant of the same type; None where it is no number or truth value written plainly."""
    if isinstance(node, cst.Integer) and node.value.isdecimal():
        return str(int(node.value) + 1).encode()
    if isinstance(node, cst.Float) and node.value.replace(".", "", 1).isdecimal():
        return str(float(node.value) + 1).encode()
    if isinstance(node, cst.Name) and node.value in ("True", "False"):
        return b"False" if node.value == "True" else b"True"
    return None


def string(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`"abc"` becomes `"ab"`, `""` becomes `" "`; not of messages and not inside calls that name things."""
    if not isinstance(node, cst.SimpleString) or not isinstance(at.parent(node), _STRING_PLACES):
        return
    for around in at.above(node):
        if isinstance(around, cst.Raise | cst.Assert):
            return
        if isinstance(around, cst.Call) and called(around) in MESSAGES:
            return
    content = node.raw_value
    if "\\" in content or len(content) == 1:
        return
    other = content[:-1] if content else " "
    text = f"{node.prefix}{node.quote}{other}{node.quote}"
    yield at.found(node, text.encode(), _shown(at, node))


def called(call: cst.Call) -> str:
    """The last name of what a call calls; empty when it has none."""
    target = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return target.value if isinstance(target, cst.Name) else ""


def index(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """Indices and bounds off by one: `a[0]` becomes `a[1]`, `a[-1]` becomes `a[-2]`, `a[:n]` becomes `a[:n - 1]`."""
    if isinstance(node, cst.Subscript):
        for element in node.slice:
            bounds = [element.slice.value] if isinstance(element.slice, cst.Index) else []
            if isinstance(element.slice, cst.Slice):
                bounds = [bound for bound in (element.slice.lower, element.slice.upper) if bound is not None]
            for bound in bounds:
                named = isinstance(bound, cst.Name) and isinstance(element.slice, cst.Slice)
                number = bound.expression if isinstance(bound, cst.UnaryOperation) else bound
                if isinstance(number, cst.Integer) and (text := other_constant(number)) is not None:
                    yield at.found(number, text, node)
                elif named:
                    yield at.found(bound, at.text(bound) + b" - 1", node)
    if isinstance(node, cst.Call) and called(node) == "range" and node.args:
        last = node.args[min(1, len(node.args) - 1)].value
        if not isinstance(last, cst.Integer) and not last.lpar:
            yield at.found(last, at.text(last) + b" - 1", node)


def call_swapped(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`min(...)` becomes `max(...)`, `a.lower()` becomes `a.upper()`."""
    if isinstance(node, cst.Call) and (other := CALLS.get(called(node))) is not None:
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        yield at.found(name, other.encode(), node)


def argument_dropped(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`f(a, key=b)` becomes `f(a)`."""
    if isinstance(node, cst.Call):
        for before, one in zip(node.args, node.args[1:], strict=False):
            if one.keyword is not None:
                yield at.at((at.span(before)[1], at.span(one)[1]), b"", node)


def branch_of_choice(at: Source, node: cst.CSTNode) -> Iterator[Found]:
    """`a if c else b` becomes `a`."""
    if isinstance(node, cst.IfExp):
        yield at.found(node, at.operand(node.body))


def _shown(at: Source, node: cst.CSTNode) -> cst.CSTNode:
    """What shows a constant to people: its statement when that is one line, else what is right around it."""
    statement = at.statement(node)
    if isinstance(statement, cst.BaseSmallStatement) and b"\n" not in at.text(statement):
        return statement
    return at.parent(node) or node
