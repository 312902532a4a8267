"""Mutants of the order and the presence of statements, branches and operands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from languages.parsing import iterate_tree
from mutation.branches import find_branch_spans
from mutation.mutation import MutationSite, TextEdit
from mutation.source_file import SourceFile
from mutation.syntax import (
    BLOCKS,
    CALLS,
    EXITS,
    FORS,
    IFS,
    MEMBERS,
    NAMES,
    WHILES,
    find_callee,
    find_condition,
    find_function,
    list_statements,
    split_comparison,
)

_DIRECTED_OPERATORS = frozenset({"-", "/", "//", "%", "<<", ">>", "**"})
_PLAIN_ASSIGNMENTS = frozenset({"assignment", "assignment_expression", "assignment_statement"})
_ASSIGNMENTS = _PLAIN_ASSIGNMENTS | {"augmented_assignment"}
_LENGTH_CALLS = frozenset({"len", "length", "size", "count", "strlen"})
_DEFINITIONS = ("import", "function", "class", "method_d", "global", "nonlocal", "declar")


def swap_branch_bodies(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`if (a) { b } else { c }` becomes `if (a) { c } else { b }`."""
    if node.type not in IFS | {"elif_clause"} or find_function(node) is None:
        return
    condition = find_condition(node)
    spans = find_branch_spans(file, node) if condition is not None else None
    if condition is None or spans is None:
        return
    (first_start, first_end), (second_start, second_end) = spans
    edits = (
        TextEdit(first_start, first_end, file.bytes[second_start:second_end]),
        TextEdit(second_start, second_end, file.bytes[first_start:first_end]),
    )
    yield MutationSite(edits=edits, shown=(node.start_byte, second_end))


def remove_conditional(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """An `if` without `else`, whose body does more than return, throw, continue or break, is removed."""
    body = node.child_by_field_name("consequence") or node.child_by_field_name("body")
    if node.type not in IFS or body is None or node.child_by_field_name("alternative") is not None:
        return
    only = body
    while only.type in BLOCKS and len(list_statements(only)) == 1:
        only = _unwrap(list_statements(only)[0])
    if only.type not in EXITS:
        yield from _remove_whole(file, node)


def _unwrap(statement: Node) -> Node:
    """Return the expression that a statement consists of; any other statement itself."""
    children = statement.named_children
    return children[0] if statement.type == "expression_statement" and len(children) == 1 else statement


def remove_loop(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A loop is removed."""
    if node.type in FORS | WHILES:
        yield from _remove_whole(file, node)


def _remove_whole(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """Remove a statement of a function, which may be an expression in a statement of its own."""
    statement = node
    if node.parent is not None and node.parent.type == "expression_statement":
        statement = node.parent
    in_block = statement.parent is not None and statement.parent.type in BLOCKS
    if in_block and node.is_named and find_function(node) is not None:
        yield file.remove_statement(statement)


def remove_assignment(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """The assignment of a variable is removed where the function has named the variable before."""
    function = find_function(node)
    left = node.child_by_field_name("left")
    if node.type not in _PLAIN_ASSIGNMENTS or function is None or left is None:
        return
    if left.type == "expression_list" and len(left.named_children) == 1:
        left = left.named_children[0]
    if left.type not in NAMES or node.child_by_field_name("right") is None:
        return
    if _is_named_before(file, function, file.get_bytes(left), node.start_byte):
        yield from _remove_whole(file, node)


def shuffle_statements(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """Two statements after each other change places, where the second names a variable that the first changes."""
    function = find_function(node) if node.type in BLOCKS else None
    if function is None:
        return
    for first, second in pairwise(list_statements(node)):
        if not all(_can_move(file, statement) for statement in (first, second)):
            continue
        written = _list_written_names(file, first)
        read = {file.get_bytes(child) for child in iterate_tree(second) if child.type in NAMES}
        if not written & read or not all(_is_named_before(file, function, name, first.start_byte) for name in written):
            continue
        between = file.bytes[first.end_byte : second.start_byte]
        text = file.get_bytes(second) + between + file.get_bytes(first)
        yield file.replace_span((first.start_byte, second.end_byte), text, first)


def _can_move(file: SourceFile, statement: Node) -> bool:
    inner = _unwrap(statement)
    is_definition = any(word in kind for kind in (statement.type, inner.type) for word in _DEFINITIONS)
    return not is_definition and inner.type not in EXITS and file.fills_lines(statement)


def _list_written_names(file: SourceFile, statement: Node) -> set[bytes]:
    """Return the names that an assignment assigns to, or the object of which a statement calls a method."""
    inner = _unwrap(statement)
    if inner.type in _ASSIGNMENTS and (left := inner.child_by_field_name("left")) is not None:
        return {file.get_bytes(child) for child in iterate_tree(left) if child.type in NAMES}
    if inner.type not in CALLS:
        return set()
    owner = inner.child_by_field_name("object") or inner.child_by_field_name("receiver")
    target = inner.child_by_field_name("function")
    if owner is None and target is not None and target.type in MEMBERS:
        owner = target
    first = next((child for child in iterate_tree(owner) if child.type in NAMES), None) if owner is not None else None
    return {file.get_bytes(first)} if first is not None else set()


def _is_named_before(file: SourceFile, function: Node, name: bytes, position: int) -> bool:
    """Return whether a function names a variable before a byte of the file."""
    return any(
        other.type in NAMES and other.end_byte <= position and file.get_bytes(other) == name
        for other in iterate_tree(function)
    )


def swap_operands(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a - b` becomes `b - a`."""
    if node.type not in ("binary_operator", "binary_expression", "binary"):
        return
    parts = split_comparison(node)
    if parts is None or file.get_text(parts[1]) not in _DIRECTED_OPERATORS:
        return
    left, _, right = parts
    if any("string" in side.type for side in (left, right)) or file.get_bytes(left) == file.get_bytes(right):
        return
    between = file.bytes[left.end_byte : right.start_byte]
    text = file.get_bytes(right) + between + file.get_bytes(left)
    yield file.replace_span((left.start_byte, right.end_byte), text, node)


def shorten_length(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`len(a)` and `a.length` become one less."""
    parent = node.parent
    if parent is None or find_function(node) is None:
        return
    callee = file.get_text(find_callee(node)) if node.type in CALLS else ""
    prop = node.child_by_field_name("property") if node.type == "member_expression" else None
    is_written = parent.child_by_field_name("left") == node and parent.type in _ASSIGNMENTS
    is_called = parent.type in CALLS and parent.child_by_field_name("function") == node
    is_length = callee in _LENGTH_CALLS or (prop is not None and file.get_text(prop) == "length")
    if is_length and not (is_written or is_called):
        yield file.replace_node(node, b"(" + file.get_bytes(node) + b" - 1)", file.find_line_context(node))
