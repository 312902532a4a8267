"""Removals: functions, classes and small modules whose bodies are taken out of a file; their callers stay.

A definition remains as its interface: signature, documentation, and a stub in place of the body (`mutation.stubs`).
Functions of the same file that nothing else in the tree names exist only for a removed one and go with it.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tree_sitter import Node

from mutation import build_patch
from mutation.definitions import get_function, iterate_definition_nodes
from mutation.grammars import find_grammar
from mutation.mutation import TextEdit, apply_edits
from mutation.source_file import SourceFile
from mutation.stubs import build_stub, count_statements, find_head_end, remove_unused_imports
from mutation.syntax import is_comment

MIN_STATEMENTS = 3
"""Statements from which a function is not trivial."""
MIN_GROUP_STATEMENTS = 5
"""Statements from which the functions of a class or module together are not trivial."""
MAX_FUNCTION_LINES = 120
MAX_GROUP_LINES = 400
"""Lines of a class or module up to which it is small."""
MAX_GROUP_FUNCTIONS = 20
_WORD = re.compile(rb"\w+")
_TEST_MODULES = frozenset({"tests", "test"})
_HEAD_NODES = frozenset({"attribute_item"})
"""Nodes before a definition that belong to it, besides comments."""


class Level(StrEnum):
    """Size of a removal."""

    BODY = "body"
    """A function or method."""
    CLASS = "class"
    """All methods that a file defines of a type."""
    MODULE = "module"
    """All functions of a file."""


@dataclass(frozen=True, kw_only=True)
class RemovableFunction:
    """A function of a file whose body can be replaced by a stub."""

    path: str
    name: str
    """Qualified by the types around it."""
    interface: str
    """Comments, signature and documentation as in the file, without its indentation."""
    lines: range
    """Lines of the body, 1-based."""
    n_statements: int
    span: tuple[int, int]
    """Bytes of the whole lines of the definition with the comments before it."""
    body: tuple[int, int]
    """Bytes of the body."""
    stub: TextEdit

    @property
    def last_name(self) -> str:
        """The name without those of types."""
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """Qualified name of the type around it; empty for none."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Functions of a file that are removed together."""

    level: Level
    path: str
    name: str
    """Name of the function or type; the path of a module."""
    functions: tuple[RemovableFunction, ...]
    """Those that remain as stubs, in the order of the file."""
    helpers: tuple[str, ...]
    """Names of functions that are gone entirely, as they exist only for the others."""
    patch: bytes
    """Patch to the base tree."""


@dataclass(frozen=True)
class RemovableFile:
    """A source file of the base tree with its functions."""

    path: str
    source: SourceFile
    functions: tuple[RemovableFunction, ...]

    @classmethod
    def parse(cls, path: str, content: bytes) -> RemovableFile | None:
        """Return a file, or None where no grammar knows its language."""
        grammar = find_grammar(path)
        if grammar is None:
            return None
        source = SourceFile(content, grammar)
        functions = (_read_function(path, source, name, node) for name, node in iterate_definition_nodes(source.root))
        listed = sorted((function for function in functions if function is not None), key=lambda item: item.span)
        return cls(path, source, tuple(listed))

    @property
    def names(self) -> frozenset[bytes]:
        """Names of the functions."""
        return frozenset(function.last_name.encode() for function in self.functions)

    def list_removals(self, n_uses: Mapping[bytes, int]) -> Iterator[Removal]:
        """Yield the removals of the file: functions, then classes, then the module; of equal ones the first.

        Args:
            n_uses: how often the names of functions occur in the whole tree.
        """
        seen: set[bytes] = set()
        for removal in self._list_removals(n_uses):
            if removal.patch not in seen:
                seen.add(removal.patch)
                yield removal

    def _list_removals(self, n_uses: Mapping[bytes, int]) -> Iterator[Removal]:
        for function in self.functions:
            if function.n_statements >= MIN_STATEMENTS and len(function.lines) <= MAX_FUNCTION_LINES:
                yield from self._remove(Level.BODY, function.name, [function], n_uses)
        owners = dict.fromkeys(function.owner for function in self.functions)
        for owner in filter(None, owners):
            methods = [function for function in self.functions if function.owner == owner]
            if _is_small_group(methods):
                yield from self._remove(Level.CLASS, owner, methods, n_uses)
        if (len(owners) > 1 or "" in owners) and _is_small_group(self.functions):
            yield from self._remove(Level.MODULE, self.path, self.functions, n_uses)

    def _remove(
        self, level: Level, name: str, chosen: Sequence[RemovableFunction], n_uses: Mapping[bytes, int]
    ) -> Iterator[Removal]:
        """Yield the removal of some functions, unless the rest of the file is no program."""
        helpers = self._find_helpers(chosen, n_uses)
        stubs = [function for function in chosen if function not in helpers]
        edits = [function.stub for function in stubs] + [TextEdit(*helper.span, b"") for helper in helpers]
        after = apply_edits(self.source.bytes, edits)
        if not stubs or not self.source.parses(after, edits):
            return
        after = remove_unused_imports(self.source, after)
        yield Removal(
            level=level,
            path=self.path,
            name=name,
            functions=tuple(stubs),
            helpers=tuple(helper.name for helper in helpers),
            patch=build_patch(self.path, self.source.bytes, after),
        )

    def _find_helpers(
        self, chosen: Sequence[RemovableFunction], n_uses: Mapping[bytes, int]
    ) -> list[RemovableFunction]:
        """Return the functions whose names occur only in themselves and in removed bodies, at least once there."""
        helpers: list[RemovableFunction] = []
        while True:
            removed = [function.body for function in chosen if function not in helpers]
            removed += [helper.span for helper in helpers]
            for function in self.functions:
                if function not in helpers and self._is_used_only_in(function, removed, n_uses):
                    helpers.append(function)
                    break
            else:
                return helpers

    def _is_used_only_in(
        self, function: RemovableFunction, spans: Sequence[tuple[int, int]], n_uses: Mapping[bytes, int]
    ) -> bool:
        name = function.last_name.encode()
        start, end = function.span
        elsewhere = [span for span in spans if not (start <= span[0] and span[1] <= end)]
        inside = sum(count_words(self.source.bytes[slice(*span)])[name] for span in elsewhere)
        own = count_words(self.source.bytes[start:end])[name]
        return inside > 0 and inside + own == n_uses.get(name, 0)


def count_words(content: bytes) -> Counter[bytes]:
    """Return how often each word occurs in a text."""
    return Counter(_WORD.findall(content))


def _is_small_group(functions: Sequence[RemovableFunction]) -> bool:
    """Return whether functions that are removed together are several, small and not trivial."""
    return (
        2 <= len(functions) <= MAX_GROUP_FUNCTIONS
        and sum(function.n_statements for function in functions) >= MIN_GROUP_STATEMENTS
        and sum(len(function.lines) for function in functions) <= MAX_GROUP_LINES
    )


def _read_function(path: str, file: SourceFile, name: str, node: Node) -> RemovableFunction | None:
    """Return the function that a definition defines; None for types, tests in sources, and bodies without a stub."""
    function = get_function(node)
    body = function.child_by_field_name("body") if function is not None else None
    if function is None or body is None or _TEST_MODULES & {*name.split(".")[:-1]}:
        return None
    if (stub := build_stub(file, function)) is None:
        return None
    if receiver := function.child_by_field_name("receiver"):
        name = f"{_find_type_name(file, receiver)}.{name}".lstrip(".")
    statement = _find_statement(node)
    first = _find_first_comment(file, statement)
    start = first.start_byte - len(file.get_line_prefix(first.start_byte))
    return RemovableFunction(
        path=path,
        name=name,
        interface=_dedent(file.bytes[start : find_head_end(file, function)]),
        lines=range(body.start_point[0] + 1, body.end_point[0] + 2),
        n_statements=count_statements(function),
        span=(start, _skip_blank_lines(file, file.find_line_end(statement.end_byte))),
        body=(body.start_byte, body.end_byte),
        stub=stub,
    )


def _find_type_name(file: SourceFile, receiver: Node) -> str:
    """Return the name of the type of a method's receiver."""
    todo = [receiver]
    while todo:
        node = todo.pop(0)
        if node.type == "type_identifier":
            return file.get_text(node)
        todo += node.named_children
    return ""


def _find_statement(node: Node) -> Node:
    """Return the statement that a definition begins, with decorators and keywords such as `export`."""
    while (parent := node.parent) is not None and _is_wrapper(parent):
        node = parent
    return node


def _is_wrapper(node: Node) -> bool:
    if node.type in ("lexical_declaration", "variable_declaration"):
        return len(node.named_children) == 1
    return node.type in ("decorated_definition", "export_statement", "expression_statement", "template_declaration")


def _find_first_comment(file: SourceFile, statement: Node) -> Node:
    """Return the first of the comments and attributes directly before a statement; the statement where none is."""
    first, previous = statement, _find_previous(statement)
    while (
        previous is not None
        and (is_comment(previous) or previous.type in _HEAD_NODES)
        and not file.bytes[previous.end_byte : first.start_byte].strip()
        and file.bytes[previous.end_byte - 1 : first.start_byte].count(b"\n") <= 1  # some comments end with it
        and file.begins_line(previous)
    ):
        first, previous = previous, _find_previous(previous)
    return first


def _find_previous(node: Node) -> Node | None:
    """Return the node before a node; before its block, where it is the first of a block without braces."""
    parent = node.parent
    if node.prev_sibling is None and parent is not None and parent.start_byte == node.start_byte:
        return parent.prev_sibling
    return node.prev_sibling


def _skip_blank_lines(file: SourceFile, start: int) -> int:
    """Return the start of the first line that is not blank, from the start of a line on."""
    while start < len(file.bytes) and not file.bytes[start : file.find_line_end(start)].strip():
        start = file.find_line_end(start)
    return start


def _dedent(text: bytes) -> str:
    return textwrap.dedent(text.decode(errors="replace").expandtabs(4).replace("\r", "")).rstrip()
