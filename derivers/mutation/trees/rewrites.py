"""Programs written otherwise, in any language that tree-sitter reads. Each rule keeps to cases where that is sure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, count

from tree_sitter import Node

from derivers.mutation.change import Found, Part
from derivers.mutation.trees.mutants import negation
from derivers.mutation.trees.names import local_names
from derivers.mutation.trees.source import (
    BLOCKS,
    FUNCTIONS,
    IFS,
    MEMBERS,
    NAMES,
    RETURNS,
    Source,
    condition,
    own_function,
)  # fmt: skip

REMARK = b" The next step follows from what is known here."
_EQUAL = ("==", "!=", "===", "!==")


def local_renamed(at: Source, node: Node) -> Iterator[Found]:
    """A local variable has another name."""
    if node.type not in FUNCTIONS:
        return
    for name, places in local_names(at, node):
        bare = name.lstrip("$")
        said = len(re.findall(rb"(?<!\w)" + re.escape(bare.encode()) + rb"(?!\w)", at.text(node)))
        if said == len(places):  # nowhere else: no text, no comment, no key speaks of it
            new = name[: len(name) - len(bare)] + free(at, bare)
            parts = tuple(Part(one.start_byte, one.end_byte, new.encode()) for one in places)
            yield Found(parts=parts, shown=(places[0].start_byte, at.line_end(places[0].end_byte)))


def comparison_commuted(at: Source, node: Node) -> Iterator[Found]:
    """`a == 1` becomes `1 == a`, of a name or member and a number."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    sign = at.word(node.child_by_field_name("operator"))
    if left is None or right is None or sign not in _EQUAL or right.type not in at.grammar.numbers:
        return
    if left.type in NAMES | MEMBERS:
        yield at.found(node, at.text(right) + f" {sign} ".encode() + at.text(left))


def branches_swapped(at: Source, node: Node) -> Iterator[Found]:
    """`if (a) { b } else { c }` becomes `if (!a) { c } else { b }`."""
    test = condition(node) if node.type in IFS else None
    first = node.child_by_field_name("consequence") or node.child_by_field_name("body")
    other = node.children_by_field_name("alternative")
    if test is None or first is None or len(other) != 1:
        return
    second = other[0]
    if second.type == "else_clause" and second.named_children:
        second = second.named_children[-1]
    ruby = second.type == "else"
    if first.type != second.type and not ruby:
        return
    spans = [_inside(first, ruby=ruby), _inside(second, ruby=ruby)]
    if spans[0] and spans[1]:
        (a1, a2), (b1, b2) = spans[0], spans[1]
        parts = (
            Part(test.start_byte, test.end_byte, negation(at, test)),
            Part(a1, a2, at.bytes[b1:b2]), Part(b1, b2, at.bytes[a1:a2]),
        )  # fmt: skip
        yield Found(parts=parts, shown=(test.start_byte, test.end_byte))


def _inside(block: Node, *, ruby: bool) -> tuple[int, int] | None:
    """What stands between a block's braces, or its words."""
    if ruby:
        named = block.named_children
        return (named[0].start_byte, named[-1].end_byte) if named else None
    if block.type in BLOCKS and len(block.children) > 1 and block.children[0].type == "{":
        return block.children[0].end_byte, block.children[-1].start_byte
    return None


def doubly_negated(at: Source, node: Node) -> Iterator[Found]:
    """`if (a)` becomes `if (!(!a))`."""
    test = condition(node) if node.type in IFS else None
    if test is not None:
        yield at.found(test, b"!(" + negation(at, test) + b")")


def result_named(at: Source, node: Node) -> Iterator[Found]:
    """`return a + b;` becomes `const outcome = a + b; return outcome;`."""
    function = own_function(node)
    whole = node.parent if node.parent is not None and node.parent.type == "expression_statement" else node
    if node.type not in RETURNS or len(node.named_children) != 1 or function is None or not at.grammar.name_it:
        return
    value = node.named_children[0]
    if value.type in ("expression_list", "argument_list") and len(value.named_children) == 1:
        value = value.named_children[0]
    in_block = whole.parent is not None and whole.parent.type in BLOCKS
    computed = "binary" in value.type or ("call" in value.type and at.grammar.name != "go") or value.type in MEMBERS
    if not in_block or not computed or not at.begins_line(whole) or b"\n" in at.text(value):
        return
    kind = at.word(function.child_by_field_name("type"))
    name = free(at, "outcome")
    shown = f"${name}" if at.grammar.name == "php" else name
    line = at.grammar.name_it.format(name=name, value=at.word(value), type=kind).encode()
    between = line + at.newline + at.before(whole.start_byte) + b"return " + shown.encode()
    if kind or "{type}" not in at.grammar.name_it:
        yield at.at((node.start_byte, value.end_byte), between, node)


def step_added(at: Source, node: Node) -> Iterator[Found]:
    """An idle statement before the first one of a function."""
    first = _first(node.child_by_field_name("body")) if node.type in FUNCTIONS else None
    if first is not None and at.grammar.idle and at.begins_line(first) and "directive" not in at.word(first)[:12]:
        text = at.grammar.idle.encode() + at.newline + at.before(first.start_byte)
        if not at.text(first).startswith((b"'", b'"', b"super", b"this(")):
            yield at.at((first.start_byte, first.start_byte), text, first)


def _first(body: Node | None) -> Node | None:
    if body is None or body.type not in BLOCKS or not body.named_children:
        return None
    first = body.named_children[0]
    return first if "comment" not in first.type else None


def remark_added(at: Source, node: Node) -> Iterator[Found]:
    """A comment before a statement of a function."""
    yield from _line_added(at, node, at.grammar.remark.encode() + REMARK)


def blank_line_added(at: Source, node: Node) -> Iterator[Found]:
    """An empty line before a statement of a function."""
    yield from _line_added(at, node, b"")


def _line_added(at: Source, node: Node, text: bytes) -> Iterator[Found]:
    parent = node.parent
    if parent is None or parent.type not in BLOCKS or not node.is_named or own_function(node) is None:
        return
    indent = at.before(node.start_byte)
    if not indent.strip() and node.type not in BLOCKS and node.type not in ("rescue", "ensure", "then", "elsif"):
        start = node.start_byte - len(indent)
        yield at.at((start, start), (indent + text if text else b"") + at.newline, node)


def free(at: Source, name: str) -> str:
    """The name, with a number behind it if need be, as it occurs nowhere in the file."""
    names = chain([name], (f"{name}{number}" for number in count(2)))
    return next(one for one in names if not re.search(rf"\b{one}\b".encode(), at.bytes))
