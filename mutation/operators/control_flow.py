"""Mutants of branches and loops."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from mutation.mutation import MutationSite
from mutation.source_file import SourceFile
from mutation.syntax import (
    BLOCKS,
    CONTINUES_AND_BREAKS,
    EXITS,
    FORS,
    IFS,
    LOOPS,
    SWITCHES,
    find_enclosing,
    find_function,
    list_statements,
)


def remove_guard(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """An `if` without `else` that only returns, throws, continues or breaks is removed."""
    body = node.child_by_field_name("consequence") or node.child_by_field_name("body")
    if node.type not in IFS | {"if_modifier", "unless_modifier"} or body is None:
        return
    statement = node
    if node.type == "if_expression" and node.parent is not None and node.parent.type == "expression_statement":
        statement = node.parent
    if statement.parent is None or statement.parent.type not in BLOCKS or find_function(node) is None:
        return
    only = body
    while only.type in BLOCKS | {"expression_statement"} and len(list_statements(only)) == 1:
        only = list_statements(only)[0]
    if node.child_by_field_name("alternative") is None and only.type in EXITS:
        yield file.remove_statement(statement)


def remove_branch(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`else` with its body is removed; in Python each `elif`, too."""
    alternatives = node.children_by_field_name("alternative")
    is_value = node.type == "if_expression" and node.parent is not None and node.parent.type != "expression_statement"
    if node.type not in IFS or not alternatives or is_value:
        return
    if file.grammar.name == "python":
        for alternative in alternatives:
            yield from _remove_clause(file, alternative)
        return
    last = alternatives[-1]
    previous = last.prev_sibling
    if previous is not None and previous.type == "else":
        previous = previous.prev_sibling
    if previous is not None:
        yield file.replace_span((previous.end_byte, last.end_byte), b"", last)


def _remove_clause(file: SourceFile, clause: Node) -> Iterator[MutationSite]:
    """Remove the lines of an `elif` or `else` of Python, unless its body does nothing."""
    body = clause.child_by_field_name("consequence") or clause.child_by_field_name("body")
    if [statement.type for statement in list_statements(body)] != ["pass_statement"]:
        start = clause.start_byte - len(file.get_line_prefix(clause.start_byte))
        yield file.replace_span((start, file.find_line_end(clause.end_byte)), b"", clause)


def swap_loop_control(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`continue` becomes `break` and vice versa; not in a `switch`, and not with a label."""
    enclosing = find_enclosing(node, LOOPS | SWITCHES)
    if not node.is_named or node.type not in CONTINUES_AND_BREAKS or node.named_children:
        return
    if enclosing is None or enclosing.type in SWITCHES:
        return
    word = file.get_text(node).rstrip(";")
    swap = {"continue": "break", "break": "next" if file.grammar.name == "ruby" else "continue", "next": "break"}
    if word in swap:
        yield file.replace_span((node.start_byte, node.start_byte + len(word)), swap[word].encode(), node)


def end_loop(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """A `for` loop ends after its first iteration."""
    statements = list_statements(node.child_by_field_name("body")) if node.type in FORS else []
    if not statements or not file.fills_lines(statements[-1]) or statements[-1].type in EXITS:
        return
    last, end = statements[-1], file.find_line_end(statements[-1].end_byte)
    line = file.get_line_prefix(last.start_byte) + f"break{file.grammar.statement_end}".encode() + file.newline
    yield file.replace_span((end, end), line if file.bytes[:end].endswith(b"\n") else file.newline + line, node)
