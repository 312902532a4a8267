"""The two branches of an `if` with an `else`, as the bytes inside of them."""

from __future__ import annotations

from tree_sitter import Node

from mutation.source_file import SourceFile
from mutation.syntax import BLOCKS, list_statements


def find_branch_spans(file: SourceFile, node: Node) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the bytes inside both branches of an `if` with an `else`."""
    first = node.child_by_field_name("consequence") or node.child_by_field_name("body")
    alternatives = node.children_by_field_name("alternative")
    if node.type == "elif_clause" and node.next_named_sibling is not None:
        alternatives = [node.next_named_sibling]
    if first is None or len(alternatives) != 1:
        return None
    second = alternatives[0]
    if second.type == "else_clause" and second.named_children:
        second = second.child_by_field_name("body") or second.named_children[-1]
    is_ruby = second.type == "else"
    if first.type != second.type and not is_ruby:
        return None
    if is_ruby or file.grammar.name == "python":
        return _find_statement_spans(file, first, second)
    spans = _find_brace_span(first), _find_brace_span(second)
    return (spans[0], spans[1]) if spans[0] is not None and spans[1] is not None else None


def _find_statement_spans(
    file: SourceFile, first: Node, second: Node
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return first to last statement of two blocks without braces, where their statements are indented alike."""
    blocks = [list_statements(first), list_statements(second)]
    if not all(blocks):
        return None
    if file.grammar.name == "python":
        prefixes = {file.get_line_prefix(statements[0].start_byte) for statements in blocks}
        if len(prefixes) > 1 or any(prefix.strip() for prefix in prefixes):
            return None
    span, other = ((statements[0].start_byte, statements[-1].end_byte) for statements in blocks)
    return span, other


def _find_brace_span(block: Node) -> tuple[int, int] | None:
    if block.type in BLOCKS and len(block.children) > 1 and block.children[0].type == "{":
        return block.children[0].end_byte, block.children[-1].start_byte
    return None
