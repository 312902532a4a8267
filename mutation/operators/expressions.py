"""Mutants of comparisons, conditions and arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from languages.parsing import iterate_tree
from mutation import swaps
from mutation.mutation import MutationSite
from mutation.source_file import SourceFile
from mutation.syntax import (
    CALLS,
    COLLECTIONS,
    MEMBERS,
    NAMES,
    STRINGS,
    TERNARIES,
    UNARIES,
    find_callee,
    find_condition,
    find_function,
    is_comment,
    is_index,
    list_operators,
    split_comparison,
)

TYPE_CALLS = frozenset({"isinstance", "issubclass", "cast", "TypeVar", "Union"})
"""Functions of Python whose arguments are types."""
_ATOMS = NAMES | CALLS | MEMBERS | {"parenthesized_expression", "true", "false"}
_TEXTS_AND_LISTS = STRINGS | COLLECTIONS


def negate(file: SourceFile, condition: Node) -> bytes:
    """Return the negation of a condition."""
    prefix, text = file.grammar.negation.encode(), file.get_bytes(condition)
    if len(condition.children) == 2 and condition.children[0].type == file.grammar.negation.strip():
        return file.get_bytes(condition.children[1])
    is_atom = condition.type in _ATOMS or (condition.type == "comparison_operator" and prefix == b"not ")
    return prefix + text if is_atom else prefix + b"(" + text + b")"


def shift_boundary(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a < b` becomes `a <= b`."""
    yield from _swap_operators(file, node, swaps.BOUNDARIES)


def flip_comparison(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a == b` becomes `a != b`, `a < b` becomes `a > b`."""
    yield from _swap_operators(file, node, file.grammar.opposites)


def swap_junction(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a && b` becomes `a || b`."""
    yield from _swap_operators(file, node, swaps.JUNCTIONS)


def swap_arithmetic(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a + b` becomes `a - b`, `a += b` becomes `a -= b`; not between strings or lists, nor of types."""
    sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
    if not any(side is not None and side.type in _TEXTS_AND_LISTS for side in sides) and not _joins_types(file, node):
        yield from _swap_operators(file, node, file.grammar.arithmetic)


def _swap_operators(file: SourceFile, node: Node, table: Mapping[str, str]) -> Iterator[MutationSite]:
    if _is_loop_step(node):
        return
    for operator in list_operators(node):
        word = _read_operator(file, operator)
        is_sign = node.child_by_field_name("left") is None and node.type in UNARIES and word not in ("++", "--")
        if word in table and not is_sign:
            yield file.replace_node(operator, table[word].encode(), node)


def _read_operator(file: SourceFile, operator: Node) -> str:
    """Return an operator with single spaces, such as `is not`."""
    return " ".join(file.get_text(operator).split())


def _is_loop_step(node: Node) -> bool:
    """Return whether a loop counts with it: changed, the loop would never end."""
    return node.parent is not None and node.parent.child_by_field_name("update") == node


def _joins_types(file: SourceFile, node: Node) -> bool:
    """Return whether a Python expression `a | b` may be a union of types."""
    operator = file.get_text(node.child_by_field_name("operator"))
    if file.grammar.name != "python" or node.type != "binary_operator" or operator not in ("|", "&"):
        return False
    if find_function(node) is None:
        return True
    ancestor = node.parent
    while ancestor is not None:
        if file.get_text(find_callee(ancestor)) in TYPE_CALLS:
            return True
        ancestor = ancestor.parent
    return False


def negate_condition(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`if (a)` becomes `if (!a)`; a single comparison has an operator of its own."""
    condition = find_condition(node)
    if condition is None or node.type in ("for_clause", "for_statement"):
        return
    parts = split_comparison(condition)
    word = _read_operator(file, parts[1]) if parts is not None else ""
    is_literal = file.grammar.name == "python" and condition.type in ("integer", "true", "false")
    if word not in file.grammar.opposites and not is_literal:
        yield file.replace_node(condition, negate(file, condition))


def drop_operand(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a && b` becomes `a`, and `b`."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = file.get_text(node.child_by_field_name("operator"))
    if left is not None and right is not None and operator in swaps.JUNCTIONS:
        yield file.replace_node(node, file.get_bytes(left))
        yield file.replace_node(node, file.get_bytes(right))


def drop_sign(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`-a` becomes `a`; an index has an operator of its own."""
    if node.type in UNARIES and len(node.children) == 2 and node.children[0].type == "-":
        operand = node.children[1]
        if not is_index(operand):
            yield file.replace_node(node, file.get_bytes(operand))


def choose_first_branch(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a if c else b` and `c ? a : b` become `a`."""
    if node.type not in TERNARIES:
        return
    first = node.child_by_field_name("consequence") or node.child_by_field_name("body")
    if first is None and file.grammar.name == "python":
        first = next((child for child in node.named_children if not is_comment(child)), None)
    if first is not None and not any(child.is_error for child in iterate_tree(first)):
        yield file.replace_node(node, file.get_bytes(first))
