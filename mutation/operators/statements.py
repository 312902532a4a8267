"""Mutants of simple statements and exception handlers."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from mutation.mutation import MutationSite
from mutation.source_file import SourceFile
from mutation.syntax import BLOCKS, CALLS, MEMBERS, RETURNS, find_function, list_statements

_FIXED_VALUES = ("true", "false", "True", "False", "None", "nil", "null")
_PYTHON_REMOVABLE = frozenset({"augmented_assignment", "delete_statement", "raise_statement"})


def clear_return_value(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """The returned value becomes null, or the zero of the function's type; of several values of Go only the error."""
    function = find_function(node)
    if node.type not in RETURNS or not node.named_children or function is None:
        return
    value, return_type = node.named_children[0], _read_return_type(file, function)
    if value.type == "expression_list" and len(value.named_children) > 1 and not file.grammar.null_literal:
        value, return_type = value.named_children[-1], "error" if return_type.rstrip(")").endswith("error") else ""
    default = file.grammar.default_zero if return_type else ""
    text = file.grammar.null_literal or file.grammar.zero_values.get(return_type, default)
    is_pointer = file.get_text(function.child_by_field_name("declarator")).startswith(("*", "&"))
    if text and not is_pointer and file.get_text(value) not in (text, *_FIXED_VALUES):
        yield file.replace_node(value, text.encode(), node)


def _read_return_type(file: SourceFile, function: Node) -> str:
    return_type = function.child_by_field_name("result") or function.child_by_field_name("return_type")
    if return_type is None and function.type != "method_definition":
        return_type = function.child_by_field_name("type")
    return file.get_text(return_type)


def remove_statement(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A call whose result is unused, or the assignment of a field or an item, is removed.

    In Python also calls at module level, `a += b`, `del` and `raise`.
    """
    parent, is_python = node.parent, file.grammar.name == "python"
    if parent is None or parent.type not in BLOCKS | ({"module"} if is_python else set()):
        return
    inner = node.named_children[0] if node.type == "expression_statement" and node.named_children else node
    if inner.type in ("await", "await_expression", "unary_expression") and inner.named_children:
        inner = inner.named_children[-1]
    if find_function(node) is None:
        is_removable = is_python and inner.type in CALLS
    else:
        is_removable = inner.type in CALLS or _has_effect(inner, is_python=is_python)
    if is_removable:
        yield file.remove_statement(node)


def _has_effect(node: Node, *, is_python: bool) -> bool:
    """Return whether a statement that is not a call changes more than a local variable."""
    if is_python and node.type in _PYTHON_REMOVABLE:
        return True
    left = node.child_by_field_name("left")
    if left is not None and left.type == "expression_list":
        left = left.named_children[0]
    return left is not None and "assignment" in node.type and left.type in MEMBERS


def empty_handler(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """The body of a `catch`, `rescue` or `except` is removed."""
    if node.type not in ("catch_clause", "rescue", "except_clause", "except_group_clause"):
        return
    body = node.child_by_field_name("body")
    if body is None:
        body = next((child for child in node.named_children if child.type == "block"), None)
    statements = list_statements(body)
    if statements and [statement.type for statement in statements] != ["pass_statement"]:
        span = (statements[0].start_byte, statements[-1].end_byte)
        yield file.replace_span(span, file.grammar.block_filler.encode(), node)
