"""Mutants of any language that tree-sitter reads: by the words of its row, and shapes that all grammars share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from tree_sitter import Node

from derivers.mutation.change import Found
from derivers.mutation.trees import grammars
from derivers.mutation.trees.names import Parameter, is_read, parameters
from derivers.mutation.trees.source import (
    BLOCKS,
    CALLS,
    IFS,
    LEAVING,
    LOOPS,
    MEMBERS,
    NAMES,
    RETURNS,
    STRINGS,
    SWITCHES,
    Source,
    around,
    called,
    condition,
    own_function,
)  # fmt: skip

_PLAIN = NAMES | CALLS | MEMBERS | {"parenthesized_expression", "true", "false"}
_WHOLE = re.compile(rb"(\d+)([A-Za-z]\w*)?\Z")
_REAL = re.compile(rb"(\d+)(\.\d+)([A-Za-z]\w*)?\Z")


def negation(at: Source, node: Node) -> bytes:
    """The opposite of a condition."""
    if at.text(node).startswith(b"!") and len(node.named_children) == 1 and len(node.children) == 2:
        return at.text(node.named_children[0])
    return b"!" + at.text(node) if node.type in _PLAIN else b"!(" + at.text(node) + b")"


def by_table(table: Mapping[str, str]) -> Callable[[Source, Node], Iterator[Found]]:
    """A rule that exchanges operators: between two operands, or before or behind one."""

    def find(at: Source, node: Node) -> Iterator[Found]:
        sign = node.child_by_field_name("operator")
        if sign is None and node.type in ("inc_statement", "dec_statement", "update_expression"):
            sign = next((one for one in node.children if not one.is_named), None)
        if sign is None or (other := table.get(at.word(sign))) is None or _is_step(node):
            return
        sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
        unary = sides[0] is None and at.word(sign) not in ("++", "--")
        if not unary and not any(side is not None and side.type in STRINGS for side in sides if other in ("-", "-=")):
            yield at.found(sign, other.encode(), node)

    return find


comparison_boundary = by_table(grammars.BOUNDARIES)
comparison_flipped = by_table(grammars.OPPOSITES)
boolean_operator = by_table(grammars.JUNCTIONS)
arithmetic = by_table(grammars.ARITHMETIC)


def _is_step(node: Node) -> bool:
    """Whether it is what a loop counts with: changed, the loop never ends."""
    return node.parent is not None and node.parent.child_by_field_name("update") == node


def condition_negated(at: Source, node: Node) -> Iterator[Found]:
    """`if (a)` becomes `if (!a)`; a single comparison has a rule of its own."""
    test = condition(node)
    if test is not None and node.type not in ("for_clause", "for_statement"):
        sign = test.child_by_field_name("operator")
        if at.word(sign) not in grammars.OPPOSITES:
            yield at.found(test, negation(at, test))


def operand_dropped(at: Source, node: Node) -> Iterator[Found]:
    """`a && b` becomes `a`, and `b`."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is not None and right is not None and at.word(node.child_by_field_name("operator")) in grammars.JUNCTIONS:
        yield at.found(node, at.text(left))
        yield at.found(node, at.text(right))


def other_constant(at: Source, node: Node) -> bytes | None:
    """Another constant of the same type; None where it is none that is written plainly."""
    text = at.text(node)
    if text in (b"true", b"false") and not node.named_children:
        return b"false" if text == b"true" else b"true"
    if node.type not in at.grammar.numbers:
        return None
    if (whole := _WHOLE.match(text)) and not (text.startswith(b"0") and len(whole[1]) > 1):
        return str(int(whole[1]) + 1).encode() + (whole[2] or b"")
    real = _REAL.match(text)
    return str(int(real[1]) + 1).encode() + real[2] + (real[3] or b"") if real else None


def constant(at: Source, node: Node) -> Iterator[Found]:
    """`3` becomes `4`, `true` becomes `false`; indices and defaults have rules of their own."""
    parent = node.parent
    if parent is None or not node.is_named or _is_index(node) or _is_default(node):
        return
    if parent.type not in STRINGS and (text := other_constant(at, node)) is not None:
        yield at.found(node, text, _line_around(at, node))


def string(at: Source, node: Node) -> Iterator[Found]:
    """`"abc"` becomes `"ab"`, `""` becomes `" "`, where it is compared or returned."""
    if node.type not in STRINGS or node.parent is None:
        return
    sign = at.word(node.parent.child_by_field_name("operator"))
    content = at.text(node)[1:-1]
    compared = sign in grammars.OPPOSITES or around_return(node) is not None
    if compared and b"\\" not in content and b"{" not in content and b"$" not in content and len(content) != 1:
        quote = at.text(node)[:1]
        yield at.found(node, quote + (content[:-1] if content else b" ") + quote, node.parent)


def around_return(node: Node) -> Node | None:
    """The `return` whose value it is."""
    parent = node.parent
    if parent is not None and parent.type in ("expression_list", "argument_list"):
        parent = parent.parent
    return parent if parent is not None and parent.type in RETURNS else None


def index(at: Source, node: Node) -> Iterator[Found]:
    """`a[0]` becomes `a[1]`."""
    if _is_index(node) and (text := other_constant(at, node)) is not None and node.is_named:
        yield at.found(node, text, node.parent)


def _is_index(node: Node) -> bool:
    parent = node.parent
    if parent is not None and parent.type == "subscript_argument_list":
        return True
    kinds = ("index_expression", "subscript_expression", "array_access", "element_reference", "slice_expression")
    return parent is not None and parent.type in kinds and parent.start_byte != node.start_byte


def default_argument(at: Source, node: Node) -> Iterator[Found]:
    """`f(a = 1)` becomes `f(a = 2)`."""
    if node.is_named and _is_default(node) and (text := other_constant(at, node)) is not None:
        yield at.found(node, text, node.parent)


def _is_default(node: Node) -> bool:
    parent = node.parent
    kinds = (
        "assignment_pattern", "optional_parameter", "required_parameter", "simple_parameter", "keyword_parameter",
        "optional_parameter_declaration",
    )  # fmt: skip
    return parent is not None and parent.type in kinds


def return_value(at: Source, node: Node) -> Iterator[Found]:
    """What is returned becomes nothing: null, or a zero of the function's type; of several values the error."""
    function = own_function(node)
    if node.type not in RETURNS or not node.named_children or function is None:
        return
    value = node.named_children[0]
    result = function.child_by_field_name("result") or function.child_by_field_name("return_type")
    result = result or (function.child_by_field_name("type") if function.type != "method_definition" else None)
    values = value.named_children if value.type == "expression_list" else [value]
    kind = at.word(result)
    if len(values) > 1:
        value, kind = values[-1], "error" if kind.rstrip(")").endswith("error") else ""
    text = at.grammar.nothing or (at.grammar.zeros or {}).get(kind, at.grammar.otherwise if kind else "")
    pointer = at.word(function.child_by_field_name("declarator")).startswith(("*", "&"))
    if text and not pointer and at.word(value) not in (text, "true", "false", "None", "nil", "null"):
        yield at.found(value, text.encode(), node)


def statement_removed(at: Source, node: Node) -> Iterator[Found]:
    """A call whose result nobody takes, or the setting of a field or item, is left out."""
    parent = node.parent
    if parent is None or parent.type not in BLOCKS or own_function(node) is None:
        return
    inner = node.named_children[0] if node.type == "expression_statement" and node.named_children else node
    if inner.type in ("await_expression", "unary_expression") and inner.named_children:
        inner = inner.named_children[-1]
    left = inner.child_by_field_name("left")
    if left is not None and left.type == "expression_list":
        left = left.named_children[0]
    if inner.type in CALLS or (left is not None and "assignment" in inner.type and left.type in MEMBERS):
        yield _removed(at, node)


def guard_removed(at: Source, node: Node) -> Iterator[Found]:
    """An `if` without `else` that only returns, throws, continues or breaks is left out."""
    parent = node.parent
    body = node.child_by_field_name("consequence") or node.child_by_field_name("body")
    if node.type == "if_expression" and parent is not None and parent.type == "expression_statement":
        whole: Node = parent
    else:
        whole = node
    inside = whole.parent is not None and whole.parent.type in BLOCKS
    if node.type not in IFS | {"if_modifier", "unless_modifier"} or body is None or not inside:
        return
    only = body
    while only.type in BLOCKS | {"expression_statement"} and len(only.named_children) == 1:
        only = only.named_children[0]
    if node.child_by_field_name("alternative") is None and only.type in LEAVING:
        yield _removed(at, whole)


def branch_removed(at: Source, node: Node) -> Iterator[Found]:
    """`else` and what it holds is left out."""
    other = node.children_by_field_name("alternative")[-1:]
    value = node.type == "if_expression" and node.parent is not None and node.parent.type != "expression_statement"
    if node.type not in IFS or not other or value:
        return
    before = other[0].prev_sibling
    if before is not None and before.type == "else":
        before = before.prev_sibling
    if before is not None:
        yield at.at((before.end_byte, other[0].end_byte), b"", other[0])


def handler_emptied(at: Source, node: Node) -> Iterator[Found]:
    """What a `catch` or `rescue` does is left out."""
    body = node.child_by_field_name("body")
    if node.type in ("catch_clause", "rescue") and body is not None and body.named_children:
        yield at.at((body.named_children[0].start_byte, body.named_children[-1].end_byte), b"", node)


def loop_control(at: Source, node: Node) -> Iterator[Found]:
    """`continue` becomes `break` and the other way round; not in a `switch`, and none with a label."""
    kinds = ("continue_statement", "break_statement", "continue_expression", "break_expression", "next", "break")
    inside = around(node, LOOPS | SWITCHES)
    if not node.is_named or node.type not in kinds or node.named_children or inside is None or inside.type in SWITCHES:
        return
    word = at.word(node).rstrip(";")
    other = {"continue": "break", "break": "next" if at.grammar.name == "ruby" else "continue", "next": "break"}
    if word in other:
        yield at.at((node.start_byte, node.start_byte + len(word)), other[word].encode(), node)


def call_swapped(at: Source, node: Node) -> Iterator[Found]:
    """`min(...)` becomes `max(...)`."""
    name = called(node)
    if name is not None and (other := grammars.CALLS.get(at.word(name))):
        yield at.found(name, other.encode(), node)


def wrong_variable(at: Source, node: Node) -> Iterator[Found]:
    """A parameter is read where another one of the same type was meant."""
    function = own_function(node)
    if node.type not in NAMES or function is None or not is_read(node) or function.child_by_field_name("body") is None:
        return
    known = parameters(at, function)
    mine = next((one for one in known if one.name == at.word(node)), None)
    if mine is None or any(one.start <= node.start_byte < one.end for one in known):
        return
    others = [one for one in _behind(known, mine) if one.kind == mine.kind]
    if others:
        yield at.found(node, others[0].name.encode(), _line_around(at, node))


def _behind(known: list[Parameter], mine: Parameter) -> list[Parameter]:
    """The other parameters, from the next one on."""
    place = known.index(mine)
    return known[place + 1 :] + known[:place]


def arguments_swapped(at: Source, node: Node) -> Iterator[Found]:
    """`f(a, b)` becomes `f(b, a)`, of plain names."""
    if node.type not in ("argument_list", "arguments") or node.parent is None or node.parent.type not in CALLS:
        return
    given = node.named_children
    for first, second in pairwise(given):
        names = [
            one.named_children[0] if one.type == "argument" and one.named_children else one for one in (first, second)
        ]
        if all(one.type in NAMES for one in names):
            between = at.bytes[first.end_byte : second.start_byte]
            swapped = at.text(second) + between + at.text(first)
            yield at.at((first.start_byte, second.end_byte), swapped, node.parent)
            return


def _removed(at: Source, node: Node) -> Found:
    """Without the statement: its lines where it has them for itself, else only what it is."""
    if at.has_lines(node):
        return at.at((node.start_byte - len(at.before(node.start_byte)), at.line_end(node.end_byte)), b"", node)
    return at.found(node, b"")


def _line_around(at: Source, node: Node) -> Node:
    """The largest node around it that lies on one line and is no block."""
    one = node
    while one.parent is not None and one.parent.type not in BLOCKS and b"\n" not in at.text(one.parent):
        one = one.parent
    return one
