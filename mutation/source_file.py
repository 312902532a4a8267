"""A parsed file: its text, its syntax tree, and the edits that operators make at its nodes."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, count

from tree_sitter import Node, Query, QueryCursor

from languages.parsing import create_parser, iterate_tree
from mutation.grammars import Grammar
from mutation.mutation import MutationOperator, MutationSite, TextEdit
from mutation.syntax import BLOCKS, is_comment, is_docstring, list_statements

_SKIPPED_PREFIXES = ("import", "future_import", "package", "preproc", "use_", "attribute_", "annotation", "decorator")
_SKIPPED_SUFFIXES = ("_type", "type_arguments", "type_parameters", "type_annotation", "type_identifier")
_SKIPPED_NODES = frozenset({"type", "type_parameter", "type_alias_statement", "marker_annotation"})


class SourceFile:
    """A file with its syntax tree."""

    def __init__(self, source: bytes, grammar: Grammar) -> None:
        self.bytes = source
        self.grammar = grammar
        self._parser = create_parser(grammar.syntax)
        self._tree = self._parser.parse(source)
        self._fault_query = Query(self._parser.language or self._tree.language, "(ERROR) @fault (MISSING) @fault")
        self.root = self._tree.root_node
        self._fault_count = self._count_faults(self.root)
        self._is_checked_by_ast = grammar.name == "python" and _is_python(source)

    def parses(self, text: bytes, edits: Sequence[TextEdit]) -> bool:
        """Return whether a new text, made by these edits, parses as well as the file does.

        Python that the running interpreter can parse is checked by its own parser, too, which is stricter.
        """
        tree = self._tree.copy()
        for start, end, new in sorted(edits, reverse=True):  # only the edited places are parsed again
            before, old_end = self._find_point(start), self._find_point(end)
            last_line = new.rpartition(b"\n")[2]
            lines = new.count(b"\n")
            new_end = (before[0] + lines, len(last_line) if lines else before[1] + len(last_line))
            tree.edit(start, end, start + len(new), before, old_end, new_end)
        root = self._parser.parse(text, tree).root_node
        if root.has_error and not 0 < self._count_faults(root) <= self._fault_count:
            return False
        return not self._is_checked_by_ast or _is_python(text)

    def _find_point(self, position: int) -> tuple[int, int]:
        """Return (row, column) of a byte."""
        row = bisect_right(self._line_starts, position) - 1
        return row, position - self._line_starts[row]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(position + 1 for position, byte in enumerate(self.bytes) if byte == 10)]

    def _count_faults(self, root: Node) -> int:
        if not root.has_error:
            return 0
        return sum(len(nodes) for nodes in QueryCursor(self._fault_query).captures(root).values())

    # ------------------------------------------------------------------------------------------------------ nodes

    def iterate_mutable_nodes(self) -> Iterator[Node]:
        """Yield the nodes that may be changed, in the order of the text.

        Excluded are syntax errors, imports, types, decorators, comments, docstrings, and tests inside the module.
        """
        todo = [self.root]
        while todo:
            node = todo.pop()
            if not self._is_skipped(node):
                yield node
                todo += reversed(node.children)

    def _is_skipped(self, node: Node) -> bool:
        kind = node.type
        if kind.startswith(_SKIPPED_PREFIXES) or kind.endswith(_SKIPPED_SUFFIXES) or kind in _SKIPPED_NODES:
            return True
        if node.is_error or is_comment(node) or is_docstring(node):
            return True
        if kind == "mod_item":
            return self.get_bytes(node).startswith(b"mod tests")
        return self.grammar.name == "python" and self._is_module_metadata(node)

    def _is_module_metadata(self, node: Node) -> bool:
        """Return whether a Python node is `if __name__ ...`, `if TYPE_CHECKING`, or sets a name such as `__all__`."""
        if node.type == "if_statement" and (condition := node.child_by_field_name("condition")) is not None:
            names = {self.get_text(child) for child in iterate_tree(condition) if child.type == "identifier"}
            return bool(names & {"__name__", "TYPE_CHECKING"})
        if node.type == "assignment":
            name = self.get_text(node.child_by_field_name("left"))
            return re.fullmatch(r"__\w+__", name) is not None
        return False

    # ------------------------------------------------------------------------------------------------------- text

    def get_bytes(self, node: Node) -> bytes:
        """Return the text of a node."""
        return self.bytes[node.start_byte : node.end_byte]

    def get_text(self, node: Node | None) -> str:
        """Return the text of a node, decoded; empty for None."""
        return self.get_bytes(node).decode(errors="replace") if node is not None else ""

    def get_line_prefix(self, start: int) -> bytes:
        """Return the text before a byte on its line: the indentation of a statement that begins the line."""
        return self.bytes[self.bytes.rfind(b"\n", 0, start) + 1 : start]

    def find_line_end(self, end: int) -> int:
        """Return the start of the next line, or the end of the file."""
        position = self.bytes.find(b"\n", end)
        return len(self.bytes) if position < 0 else position + 1

    @property
    def newline(self) -> bytes:
        """The line ending."""
        return b"\r\n" if b"\r\n" in self.bytes[:2000] else b"\n"

    def begins_line(self, node: Node) -> bool:
        """Return whether only white space precedes a node on its line."""
        return not self.get_line_prefix(node.start_byte).strip()

    def fills_lines(self, node: Node) -> bool:
        """Return whether nothing but comments shares the lines of a node."""
        rest = self.bytes[node.end_byte : self.find_line_end(node.end_byte)].strip()
        return self.begins_line(node) and (not rest or rest.startswith(self.grammar.comment_prefix.encode()))

    def find_line_context(self, node: Node) -> Node:
        """Return the largest node around a node that lies on a single line and is not a block."""
        while (
            node.parent is not None
            and node.parent.type not in BLOCKS
            and node.parent.parent is not None
            and b"\n" not in self.get_bytes(node.parent)
        ):
            node = node.parent
        return node

    def find_free_name(self, name: str) -> str:
        """Return the name, with a number appended if needed, so that it occurs nowhere in the file."""
        numbered = (self.grammar.numbered_name.format(name=name, number=number) for number in count(2))
        return next(
            free for free in chain([name], numbered) if not re.search(rf"\b{re.escape(free)}\b".encode(), self.bytes)
        )

    # ------------------------------------------------------------------------------------------------------ edits

    def replace_node(self, node: Node, text: bytes, shown: Node | None = None) -> MutationSite:
        """Return a site that replaces a node; `shown` is quoted in the detail."""
        return self.replace_span((node.start_byte, node.end_byte), text, shown or node)

    def replace_span(self, span: tuple[int, int], text: bytes, shown: Node) -> MutationSite:
        """Return a site that replaces some bytes."""
        start, end = min(shown.start_byte, span[0]), max(shown.end_byte, span[1])
        return MutationSite(edits=(TextEdit(*span, text),), shown=(start, end))

    def remove_statement(self, node: Node) -> MutationSite:
        """Return a site that removes a statement: its lines, where it shares them with no other, else its text.

        Where a block may not be empty, the only statement of a block is replaced by the language's filler.
        """
        filler = self.grammar.block_filler.encode()
        if not self.fills_lines(node) or (filler and len(list_statements(node.parent)) == 1):
            return self.replace_node(node, filler)
        start = node.start_byte - len(self.get_line_prefix(node.start_byte))
        return self.replace_span((start, self.find_line_end(node.end_byte)), b"", node)


SyntaxOperator = MutationOperator[SourceFile, Node]


def _is_python(text: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes and the like, which are the file's own
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
