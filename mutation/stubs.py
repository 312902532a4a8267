"""Stubs: bodies of functions replaced by the statement of the language for code that is not written yet.

Documentation at the start of a body stays, comments and everything else of it do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from languages.parsing import iterate_tree
from mutation.mutation import TextEdit
from mutation.source_file import SourceFile
from mutation.syntax import BLOCKS, is_comment, is_docstring, list_statements

_NOT_REPLACED = frozenset({"constructor_declaration", "compact_constructor_declaration"})
"""Constructors whose fields would not be set, which a compiler rejects."""
_VERSION = re.compile(r"v\d+")
_VERSION_SUFFIX = re.compile(r"\.v\d+$")


def build_stub(file: SourceFile, function: Node) -> TextEdit | None:
    """Return the edit that replaces the body of a function by a stub; None where there is no body to replace."""
    body = function.child_by_field_name("body")
    if body is None or body.type not in BLOCKS or function.type in _NOT_REPLACED or _is_constructor(function):
        return None
    statements = [statement for statement in list_body_statements(body) if not is_docstring(statement)]
    lines = _write_stub_lines(file, function)
    if not statements or not lines:
        return None
    if file.get_bytes(body).startswith(b"{"):
        return _replace_in_braces(file, body, statements[0], lines)
    start, first = file.find_line_end(find_head_end(file, function)) - 1, statements[0]
    if start > first.start_byte or not file.begins_line(first):
        return None
    indent = file.get_line_prefix(first.start_byte)
    end = body.end_byte - file.get_bytes(body).endswith(b"\r")  # a comment at the end contains it
    return TextEdit(start, end, b"".join(b"\n" + indent + line for line in lines))


def find_head_end(file: SourceFile, function: Node) -> int:
    """Return the end of the part of a function that a stub keeps: signature, and documentation inside the body."""
    body = function.child_by_field_name("body")
    if body is None:
        return function.end_byte
    if file.get_bytes(body).startswith(b"{"):
        return body.start_byte
    first = next(iter(list_statements(body)), None)
    if first is not None and is_docstring(first):
        return first.end_byte
    before = [child for child in function.children if child.end_byte <= body.start_byte and not is_comment(child)]
    return before[-1].end_byte if before else body.start_byte


def list_body_statements(body: Node) -> list[Node]:
    """Return the statements at the top of a body."""
    statements = list_statements(body)
    if len(statements) == 1 and statements[0].type == "statement_list":
        return list_statements(statements[0])
    return statements


def count_statements(function: Node) -> int:
    """Return the number of statements of a function at any depth, without documentation and comments."""
    body = function.child_by_field_name("body")
    blocks = (node for node in iterate_tree(body) if node.type in BLOCKS) if body is not None else ()
    return sum(
        statement.type not in BLOCKS and not is_docstring(statement)
        for block in blocks
        for statement in list_statements(block)
    )


def remove_unused_imports(file: SourceFile, after: bytes) -> bytes:
    """Return a new text of a file without the imports that only its old text uses, where they would be errors."""
    if file.grammar.has_unused_imports:
        return after
    new = SourceFile(after, file.grammar)
    unused = _list_used_packages(file) - _list_used_packages(new)
    for declaration in reversed([node for node in new.root.named_children if node.type == "import_declaration"]):
        specs = [node for node in iterate_tree(declaration) if node.type == "import_spec"]
        gone = [spec for spec in specs if unused & set(_list_package_names(new, spec))]
        for node in [declaration] if gone and len(gone) == len(specs) else reversed(gone):
            start = node.start_byte - len(new.get_line_prefix(node.start_byte))
            after = after[:start] + after[new.find_line_end(node.end_byte) :]
    return after


def _is_constructor(function: Node) -> bool:
    """Return whether a function of C++ has no return type, as constructors and destructors have none."""
    has_declarator = function.type == "function_definition" and function.child_by_field_name("declarator") is not None
    return has_declarator and function.child_by_field_name("type") is None


def _replace_in_braces(file: SourceFile, body: Node, first: Node, lines: list[bytes]) -> TextEdit:
    start, end = body.start_byte + 1, body.end_byte - 1
    if b"\n" not in file.get_bytes(body) or not file.begins_line(first):
        return TextEdit(start, end, b" " + b" ".join(line for line in lines if not _is_comment_line(file, line)) + b" ")
    indent, outer = file.get_line_prefix(first.start_byte), file.get_line_prefix(end)
    closing = outer if not outer.strip() else b""
    newline = file.newline
    text = b"".join(newline + indent + line for line in lines)
    return TextEdit(start, end, text + newline + closing)


def _is_comment_line(file: SourceFile, line: bytes) -> bool:
    return line.startswith(file.grammar.comment_prefix.encode())


def _write_stub_lines(file: SourceFile, function: Node) -> list[bytes]:
    """Return the lines of a stub; none where the language has no such statement."""
    grammar = file.grammar
    if "{zeros}" not in grammar.not_implemented:
        return [grammar.not_implemented.encode()] if grammar.not_implemented else []
    note = f"{grammar.comment_prefix} not implemented".encode()
    zeros = list(_list_zero_values(file, function))
    return [note, grammar.not_implemented.format(zeros=", ".join(zeros)).strip().encode()] if zeros else [note]


def _list_zero_values(file: SourceFile, function: Node) -> Iterator[str]:
    """Yield the zero value of each result of a function; a single empty text where the results have names."""
    template = file.grammar.zero_template
    result = function.child_by_field_name("result")
    if result is not None and result.type == "parameter_list":
        listed = [child for child in result.named_children if not is_comment(child)]
        if any(child.child_by_field_name("name") for child in listed):
            yield ""
            return
        yield from (template.format(type=file.get_text(child)) for child in listed)
    elif result is not None:
        yield template.format(type=file.get_text(result))
    elif (declarator := function.child_by_field_name("declarator")) is not None:
        returned = file.get_text(function.child_by_field_name("type"))
        if declarator.type == "pointer_declarator":
            yield "0"
        elif returned != "void":
            yield template.format(type=returned)


def _list_used_packages(file: SourceFile) -> set[str]:
    """Return the names before a dot, by which a file uses the packages that it imports."""
    fields = (
        node.child_by_field_name(key)
        for node in iterate_tree(file.root)
        for key in {"selector_expression": ("operand",), "qualified_type": ("package",)}.get(node.type, ())
    )
    return {file.get_text(field) for field in fields if field is not None and not field.named_children}


def _list_package_names(file: SourceFile, spec: Node) -> list[str]:
    """Return the names that an imported package may have: the given one, or those that follow from its path."""
    if name := file.get_text(spec.child_by_field_name("name")):
        return [name] if name not in ("_", ".") else []
    parts = file.get_text(spec.child_by_field_name("path")).strip('"`').split("/")
    if len(parts) > 1 and _VERSION.fullmatch(parts[-1]):
        parts.pop()
    last = _VERSION_SUFFIX.sub("", parts[-1])
    bare = re.sub(r"^go[-.]|[-.]go$", "", last)
    return [last, bare, bare.replace("-", ""), bare.replace("-", "_")]
