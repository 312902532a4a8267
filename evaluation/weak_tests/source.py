"""A test file as text and syntax tree, with its definitions: functions, classes and calls with a title."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from languages.controls import ControlSites
from languages.parsing import iterate_tree
from languages.registry import parse_source
from languages.weak_tests import WeakTestSyntax

_FUNCTIONS = re.compile(
    r"^(function_(definition|declaration|item)|method(_declaration|_definition)?|singleton_method|constructor_declaration"
    r"|subroutine_declaration_statement)$"
)
_CLASSES = re.compile(
    r"^((class|object|interface)_(definition|declaration)|class|module|mod_item|impl_item|trait_item)$"
)
_STRINGS = re.compile(r"string|heredoc")
_BODIES = re.compile(r"func|lambda|closure|subroutine|arrow|^(do_)?block$")
MAX_QUOTE = 120


@dataclass(frozen=True, kw_only=True)
class ParsedFile:
    """A parsed file. `words` are the signs of its language."""

    path: str
    source: bytes
    root: Node
    words: WeakTestSyntax
    sites: ControlSites

    def read(self, node: Node) -> str:
        """Return the text of a node."""
        return self.source[node.start_byte : node.end_byte].decode(errors="replace")

    def quote(self, node: Node) -> str:
        """Return the place and the first line of a node's text, `path:line: text`."""
        line = " ".join(self.read(node).split("\n", 1)[0].split())
        return f"{self.path}:{node.start_point.row + 1}: {line[:MAX_QUOTE]}"

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes in the order of the text."""
        return list(iterate_tree(self.root))

    @cached_property
    def functions(self) -> dict[str, list[str]]:
        """Name of a function -> texts of the definitions with that name."""
        texts: dict[str, list[str]] = {}
        for node in self.nodes:
            if _FUNCTIONS.search(node.type) and (name := self.find_name(node)):
                texts.setdefault(name, []).append(self.read(_include_decorators(node)))
        return texts

    def find_name(self, node: Node) -> str:
        """Return the name that a definition gives, or the title of a call with one; empty where there is neither."""
        if _FUNCTIONS.search(node.type) or _CLASSES.search(node.type):
            name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
            words = re.findall(r"\w+", self.read(name)) if name is not None else []
            return words[0] if words else ""
        return self._find_title(node) if re.search(self.sites.call_nodes, node.type) else ""

    def _find_title(self, call: Node) -> str:
        """Return the string that is the first argument of a call of a test or group of tests."""
        arguments = next((child for child in call.named_children if "argument" in child.type), None)
        first = next(iter(arguments.named_children), None) if arguments is not None else None
        bodies = [*call.named_children[1:], *(arguments.named_children if arguments is not None else ())]
        has_body = any(_BODIES.search(body.type) for body in bodies)
        if first is None or not has_body or not _STRINGS.search(first.type):
            return ""
        return self.read(first).strip("\"'`")

    def find_scope(self, node: Node) -> tuple[str, ...]:
        """Return the names of the definitions around a node, the outermost first; empty for the file's own level.

        A decorator belongs to what it decorates. Functions that run before all tests of their class belong to it.
        """
        names: list[str] = []
        around: Node | None = node
        while around is not None:
            holder = around
            if around.type == "decorated_definition":
                holder = around.child_by_field_name("definition") or around
            if (name := self.find_name(holder)) and not re.search(self.words.setups, name):
                names.append(name)
            around = around.parent
            # A decorated definition has been named by its definition already.
            if (
                around is not None
                and around.type == "decorated_definition"
                and holder == around.child_by_field_name("definition")
            ):
                around = around.parent
        return tuple(reversed(names))

    def find_function(self, node: Node) -> Node | None:
        """Return the innermost function around a node; None outside of functions."""
        around = node.parent
        while around is not None and not _FUNCTIONS.search(around.type):
            around = around.parent
        return around

    def iterate_ancestors(self, node: Node) -> Iterator[Node]:
        """Yield the nodes around a node, the innermost first, up to the function that contains it."""
        around = node.parent
        while around is not None and not _FUNCTIONS.search(around.type):
            yield around
            around = around.parent


def parse_file(path: str, source: bytes) -> ParsedFile | None:
    """Return a parsed file; None for languages without a grammar and for content that is not UTF-8."""
    if (parsed := parse_source(path, source)) is None:
        return None
    language, root = parsed
    return ParsedFile(path=path, source=source, root=root, words=language.weak_tests, sites=language.controls)


def _include_decorators(node: Node) -> Node:
    return node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
