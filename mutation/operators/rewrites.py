"""Variants: rewrites that preserve behaviour. Each operator is limited to cases where that is certain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from mutation.branches import find_branch_spans
from mutation.mutation import MutationSite, TextEdit
from mutation.operators.expressions import negate
from mutation.scopes import find_locals
from mutation.source_file import SourceFile
from mutation.syntax import (
    BLOCKS,
    FUNCTIONS,
    IFS,
    MEMBERS,
    NAMES,
    RETURNS,
    STRINGS,
    TERNARIES,
    WHILES,
    find_condition,
    find_function,
    is_comment,
    is_docstring,
    split_comparison,
)

COMMENT = b" The next step uses the values computed above."
_EQUALITIES = ("==", "!=", "===", "!==")
_STRING_STARTS = (b"'", b'"', b"super", b"this(")


def rename_local(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A local variable gets another name."""
    if node.type not in FUNCTIONS:
        return
    for name, uses in find_locals(file, node):
        bare = name.lstrip("$")
        mentions = re.findall(rb"(?<!\w)" + re.escape(bare.encode()) + rb"(?!\w)", file.get_bytes(node))
        # No string, comment or key mentions the name, so renaming its uses keeps the behaviour.
        if len(mentions) == len(uses):
            new = name[: len(name) - len(bare)] + file.find_free_name(bare)
            edits = tuple(TextEdit(use.start_byte, use.end_byte, new.encode()) for use in uses)
            yield MutationSite(edits=edits, shown=(uses[0].start_byte, file.find_line_end(uses[0].end_byte)))


def commute_comparison(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a == 1` becomes `1 == a`, for a name or member and a number; in Python a string, too."""
    parts = split_comparison(node)
    if parts is None or file.get_text(parts[1]) not in _EQUALITIES:
        return
    left, operator, right = parts
    is_string = file.grammar.name == "python" and right.type in STRINGS and b"{" not in file.get_bytes(right)
    if left.type in NAMES | MEMBERS and (right.type in file.grammar.number_nodes or is_string):
        between = f" {file.get_text(operator)} ".encode()
        yield file.replace_node(node, file.get_bytes(right) + between + file.get_bytes(left))


def swap_branches(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`if (a) { b } else { c }` becomes `if (!a) { c } else { b }`; in Python `a if c else b`, too."""
    condition = find_condition(node)
    if condition is None:
        return
    if node.type in TERNARIES and file.grammar.name == "python":
        first, _, second = (child for child in node.named_children if not is_comment(child))
        parts = (file.get_bytes(second), b" if ", negate(file, condition), b" else ", file.get_bytes(first))
        yield file.replace_node(node, b"".join(parts))
    if node.type not in IFS | {"elif_clause"} or (spans := find_branch_spans(file, node)) is None:
        return
    (first_start, first_end), (second_start, second_end) = spans
    edits = (
        TextEdit(condition.start_byte, condition.end_byte, negate(file, condition)),
        TextEdit(first_start, first_end, file.bytes[second_start:second_end]),
        TextEdit(second_start, second_end, file.bytes[first_start:first_end]),
    )
    yield MutationSite(edits=edits, shown=(condition.start_byte, condition.end_byte))


def negate_twice(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`if (a)` becomes `if (!(!a))`."""
    condition = find_condition(node) if node.type in IFS | WHILES | {"elif_clause"} else None
    if condition is not None:
        prefix = file.grammar.negation.encode()
        yield file.replace_node(condition, prefix + b"(" + negate(file, condition) + b")")


def name_result(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`return a + b;` becomes `const outcome = a + b; return outcome;`."""
    function = find_function(node)
    if node.type not in RETURNS or len(node.named_children) != 1 or function is None:
        return
    statement = node.parent if node.parent is not None and node.parent.type == "expression_statement" else node
    value = node.named_children[0]
    if file.grammar.name != "python" and value.type in ("expression_list", "argument_list"):
        value = value.named_children[0] if len(value.named_children) == 1 else value
    in_block = statement.parent is not None and statement.parent.type in BLOCKS
    if not in_block or not file.begins_line(statement) or not _is_computed(file, value):
        return
    template, name = file.grammar.assignment_template, file.find_free_name("outcome")
    return_type = file.get_text(function.child_by_field_name("type"))
    if not template or ("{type}" in template and not return_type):
        return
    assignment = template.format(name=name, value=file.get_text(value), type=return_type).encode()
    returned = f"return ${name}" if file.grammar.name == "php" else f"return {name}"
    text = assignment + file.newline + file.get_line_prefix(statement.start_byte) + returned.encode()
    yield file.replace_span((node.start_byte, value.end_byte), text, node)


def _is_computed(file: SourceFile, value: Node) -> bool:
    """Return whether a returned value is an expression that a variable of its own can hold."""
    if file.grammar.name == "python":
        return value.type not in NAMES | {"integer", "none", "true", "false"}
    if b"\n" in file.get_bytes(value):
        return False
    is_call = "call" in value.type and file.grammar.name != "go"
    return "binary" in value.type or is_call or value.type in MEMBERS


def expand_assignment(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a += 1` becomes `a = a + 1`, for a name and a number; not in Java, where it also converts."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = file.get_text(node.child_by_field_name("operator"))
    if left is None or right is None or operator not in ("+=", "-=") or file.grammar.name == "java":
        return
    if left.type == "expression_list" and len(left.named_children) == 1:
        left = left.named_children[0]
    number = right.named_children[0] if right.type == "expression_list" and right.named_children else right
    if left.type in NAMES and number.type in file.grammar.number_nodes:
        name = file.get_bytes(left)
        text = name + b" = " + name + f" {operator[0]} ".encode() + file.get_bytes(right)
        yield file.replace_node(node, text)


def add_no_op(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A statement without effect is added before the first of a function, after its docstring."""
    body = node.child_by_field_name("body") if node.type in FUNCTIONS else None
    if body is None or body.type not in BLOCKS or not file.grammar.no_op:
        return
    children = body.named_children
    if file.grammar.name == "python":
        children = [child for child in children if not is_comment(child)]
        children = children[1:] if children and is_docstring(children[0]) else children
    if not children or is_comment(children[0]) or not file.begins_line(children[0]):
        return
    first = children[0]
    if not file.get_bytes(first).startswith(_STRING_STARTS) and "directive" not in file.get_text(first)[:12]:
        text = file.grammar.no_op.encode() + file.newline + file.get_line_prefix(first.start_byte)
        yield file.replace_span((first.start_byte, first.start_byte), text, first)


def add_comment(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A comment is added before a statement of a function."""
    yield from _add_line(file, node, file.grammar.comment_prefix.encode() + COMMENT)


def add_blank_line(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A blank line is added before a statement of a function."""
    yield from _add_line(file, node, b"")


def _add_line(file: SourceFile, node: Node, text: bytes) -> Iterator[MutationSite]:
    parent = node.parent
    if parent is None or parent.type not in BLOCKS or not node.is_named or find_function(node) is None:
        return
    is_clause = node.type in BLOCKS or node.type in ("rescue", "ensure", "then", "elsif")
    indentation = file.get_line_prefix(node.start_byte)
    if not indentation.strip() and not is_clause:
        start = node.start_byte - len(indentation)
        line = (indentation + text if text else b"") + file.newline
        yield file.replace_span((start, start), line, node)
