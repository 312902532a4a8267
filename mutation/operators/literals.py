"""Mutants of constants, strings, indices and default values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from mutation.mutation import MutationSite
from mutation.source_file import SourceFile
from mutation.syntax import (
    CALLS,
    RETURNS,
    STRINGS,
    THROWS,
    find_callee,
    is_comment,
    is_default,
    is_index,
)

MESSAGE_CALLS = frozenset(
    {
        "print",
        "debug",
        "info",
        "warning",
        "warn",
        "error",
        "exception",
        "critical",
        "log",
        "deprecated",
        "echo",
        "compile",
        "getLogger",
        "field",
        "Field",
        "option",
        "argument",
        "add_argument",
        "TypeVar",
        "namedtuple",
    }
)
"""Functions whose strings are messages for people, or names."""
_PYTHON_STRING_PARENTS = frozenset(
    {
        "comparison_operator",
        "return_statement",
        "subscript",
        "pair",
        "binary_operator",
        "argument_list",
        "keyword_argument",
        "assignment",
    }
)
_WHOLE = re.compile(rb"(\d+)([A-Za-z]\w*)?\Z")
_REAL = re.compile(rb"(\d*)(\.\d*)([A-Za-z]\w*)?\Z")
_PREFIXED = (b"0x", b"0X", b"0b", b"0B", b"0o", b"0O")


def change_constant(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`3` becomes `4`, `true` becomes `false`; indices and defaults have operators of their own."""
    parent = node.parent
    if parent is None or not node.is_named or is_index(node) or is_default(node) or parent.type in STRINGS:
        return
    if (text := _find_other_constant(file, node)) is not None:
        yield file.replace_node(node, text, file.find_line_context(node))


def _find_other_constant(file: SourceFile, node: Node) -> bytes | None:
    """Return another constant of the same type; None for nodes that are neither a plain number nor a truth value."""
    text = file.get_bytes(node)
    true, false = (word.encode() for word in file.grammar.booleans)
    if text in (true, false) and not node.named_children:
        return false if text == true else true
    if node.type not in file.grammar.number_nodes or text.startswith(_PREFIXED):
        return None
    if (whole := _WHOLE.match(text)) and not (text.startswith(b"0") and len(whole[1]) > 1):
        return str(int(whole[1]) + 1).encode() + (whole[2] or b"")
    if (real := _REAL.match(text)) and any(byte in b"0123456789" for byte in text):
        return str(int(real[1] or b"0") + 1).encode() + real[2] + (real[3] or b"")
    return None


def shift_index(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`a[0]` becomes `a[1]`; in Python `a[:n]` becomes `a[:n - 1]` and `range(n)` becomes `range(n - 1)`, too."""
    text = _find_other_constant(file, node) if node.is_named and is_index(node) and not _is_slice_step(node) else None
    if text is not None and node.parent is not None:
        yield file.replace_node(node, text, node.parent)
    if file.grammar.name == "python":
        if node.type == "identifier" and node.parent is not None and node.parent.type == "slice":
            if not _is_slice_step(node):
                yield file.replace_node(node, file.get_bytes(node) + b" - 1", node.parent)
        elif file.get_text(find_callee(node)) == "range":
            yield from _shorten_range(file, node)


def _is_slice_step(node: Node) -> bool:
    """Return whether a node is the step of a Python slice: it follows the second colon."""
    part = node
    while part.parent is not None and part.parent.type != "slice":
        if part.parent.type != "unary_operator":
            return False
        part = part.parent
    if part.parent is None:
        return False
    colons = (child for child in part.parent.children if child.type == ":")
    return sum(colon.end_byte <= part.start_byte for colon in colons) > 1


def _shorten_range(file: SourceFile, call: Node) -> Iterator[MutationSite]:
    listed = call.child_by_field_name("arguments")
    arguments = [child for child in listed.named_children if not is_comment(child)] if listed is not None else []
    if arguments:
        last = arguments[min(1, len(arguments) - 1)]
        if last.type not in ("integer", "parenthesized_expression"):
            yield file.replace_node(last, file.get_bytes(last) + b" - 1", call)


def change_string(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`"abc"` becomes `"ab"`, `""` becomes `" "`, where the value of the string matters."""
    if node.type not in STRINGS or node.parent is None or not _is_string_value(file, node):
        return
    parts = _split_string(file, node)
    if parts is None or len(parts[1]) == 1:
        return
    opening, content, closing = parts
    shown = file.find_line_context(node) if file.grammar.name == "python" else node.parent
    yield file.replace_node(node, opening + (content[:-1] if content else b" ") + closing, shown)


def _is_string_value(file: SourceFile, node: Node) -> bool:
    """Return whether a string is compared or returned; in Python also passed, assigned or used as a key."""
    parent = node.parent
    if parent is None or file.grammar.name != "python":
        operator = file.get_text(parent.child_by_field_name("operator")) if parent is not None else ""
        return operator in file.grammar.opposites or _is_returned(node)
    if parent.type not in _PYTHON_STRING_PARENTS:
        return False
    ancestor: Node | None = parent
    while ancestor is not None:
        if ancestor.type in (*THROWS, "assert_statement"):
            return False
        if ancestor.type in CALLS and file.get_text(find_callee(ancestor)) in MESSAGE_CALLS:
            return False
        ancestor = ancestor.parent
    return True


def _is_returned(node: Node) -> bool:
    parent = node.parent
    if parent is not None and parent.type in ("expression_list", "argument_list"):
        parent = parent.parent
    return parent is not None and parent.type in RETURNS


def _split_string(file: SourceFile, node: Node) -> tuple[bytes, bytes, bytes] | None:
    """Return the opening quote with its prefix, the content and the closing quote.

    None for strings with escapes or interpolated values.
    """
    text = file.get_bytes(node)
    if file.grammar.name == "python":
        opening, closing = (file.get_bytes(child) for child in (node.children[0], node.children[-1]))
        content = text[len(opening) : len(text) - len(closing)]
        is_template = b"f" in opening.lower() or b"t" in opening.lower()
        return None if is_template or b"\\" in content else (opening, content, closing)
    content = text[1:-1]
    return None if any(sign in content for sign in (b"\\", b"{", b"$")) else (text[:1], content, text[:1])


def change_default(file: SourceFile, node: Node) -> Iterator[MutationSite]:
    """`f(a = 1)` becomes `f(a = 2)`; in Python `f(a="x")` becomes `f(a="")`."""
    if not node.is_named or node.parent is None or not is_default(node):
        return
    if (text := _find_other_constant(file, node)) is not None:
        yield file.replace_node(node, text, node.parent)
    elif node.type in STRINGS and file.grammar.name == "python":
        parts = _split_string(file, node)
        if parts is not None and parts[1]:
            yield file.replace_node(node, parts[0] + parts[2], node.parent)
