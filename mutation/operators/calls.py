"""Mutants of calls and of the variables that are passed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from mutation.mutation import MutationSite
from mutation.operators.expressions import TYPE_CALLS
from mutation.scopes import is_read, list_parameters
from mutation.source_file import SourceFile
from mutation.syntax import ARGUMENT_LISTS, CALLS, NAMES, find_callee, find_function, is_comment

_PYTHON_ATOMS = frozenset({"attribute", "none"})
_ATTRIBUTE_CALLS = frozenset({"getattr", "setattr", "hasattr", "delattr"})


def swap_function(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`min(...)` becomes `max(...)`. Splits without a limit give the same from both sides."""
    callee = find_callee(node)
    if callee is None or not (other := file.grammar.calls.get(file.get_text(callee))):
        return
    lists = [child for child in node.named_children if child.type in ARGUMENT_LISTS]
    if file.get_text(callee) in ("split", "rsplit") and not any(
        len(_list_arguments(argument_list)) > 1 for argument_list in lists
    ):
        return
    yield file.replace_node(callee, other.encode(), node)


def drop_argument(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`f(a, key=b)` becomes `f(a)`."""
    if _is_argument_list(node):
        for previous, argument in pairwise(_list_arguments(node)):
            if argument.type == "keyword_argument":
                yield file.replace_span((previous.end_byte, argument.end_byte), b"", node.parent or node)


def swap_arguments(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`f(a, b)` becomes `f(b, a)`, for plain names, and attributes in Python."""
    if not _is_argument_list(node) or node.parent is None:
        return
    if file.get_text(find_callee(node.parent)) in TYPE_CALLS | _ATTRIBUTE_CALLS:
        return
    for first, second in pairwise(_list_arguments(node)):
        if all(_unwrap_argument(argument).type in NAMES | _PYTHON_ATOMS for argument in (first, second)):
            between = file.bytes[first.end_byte : second.start_byte]
            swapped = file.get_bytes(second) + between + file.get_bytes(first)
            yield file.replace_span((first.start_byte, second.end_byte), swapped, node.parent)
            return


def _is_argument_list(node: Node) -> bool:
    return node.type in ARGUMENT_LISTS and node.parent is not None and node.parent.type in CALLS


def _list_arguments(node: Node) -> list[Node]:
    return [child for child in node.named_children if not is_comment(child)]


def _unwrap_argument(node: Node) -> Node:
    return node.named_children[0] if node.type == "argument" and node.named_children else node


def confuse_parameters(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A parameter is replaced by the next of the same function, and of the same type where types are checked."""
    function = find_function(node) if node.type in NAMES else None
    if function is None or not is_read(file, node) or function.child_by_field_name("body") is None:
        return
    parameters = list_parameters(file, function)
    own = next((parameter for parameter in parameters if parameter.name == file.get_text(node)), None)
    if own is None or any(parameter.start <= node.start_byte < parameter.end for parameter in parameters):
        return
    position = parameters.index(own)
    others = parameters[position + 1 :] + parameters[:position]
    other = next((parameter for parameter in others if parameter.type == own.type), None)
    if other is not None:
        yield file.replace_node(node, other.name.encode(), file.find_line_context(node))
