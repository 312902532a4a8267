"""Tests in test files, as blocks of text: where each begins and ends, and where its name stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tree_sitter import Node

from evaluation.controls.alternatives import FileLiterals
from languages.controls import ControlSites
from languages.registry import find_parsed_language, parse_source

TOKEN = re.compile(r"\w+")
_FUNCTIONS = frozenset(
    {
        "function_definition",
        "function_declaration",
        "function_item",
        "method_declaration",
        "method",
        "subroutine_declaration_statement",
        "method_definition",
    }
)
_CALLS = frozenset(
    {
        "call_expression",
        "call",
        "function_call",
        "function_call_expression",
        "ambiguous_function_call_expression",
        "method_invocation",
    }
)
_PRECEDING = frozenset({"attribute_item", "comment", "line_comment", "block_comment", "attribute_list"})
_STRINGS = re.compile(r"string|heredoc")
_NAMES = frozenset({"identifier", "name", "constant", "simple_identifier", "bareword", "property_identifier"})


def count_tokens(contents: Iterable[bytes]) -> Counter[str]:
    """Return token -> number of its places in texts."""
    counts: Counter[str] = Counter()
    for content in contents:
        counts.update(TOKEN.findall(content.decode(errors="replace")))
    return counts


def count_trigrams(contents: Iterable[bytes]) -> Counter[str]:
    """Return three characters in a row -> number of their places in texts."""
    counts: Counter[str] = Counter()
    for content in contents:
        text = content.decode(errors="replace")
        counts.update(map("".join, zip(text, text[1:], text[2:], strict=False)))
    return counts


@dataclass(frozen=True, kw_only=True)
class TestBlock:
    """A test of a file, decorators included. Positions count bytes; `name_span` is None where it has no name."""

    __test__ = False
    node: Node
    start: int
    end: int
    name_span: tuple[int, int] | None

    def contains(self, inner: TestBlock) -> bool:
        """Return whether another function is defined within this one."""
        return self.start <= inner.start and inner.end <= self.end and self.node != inner.node


@dataclass(frozen=True, kw_only=True)
class TestFile:
    """A parsed test file."""

    __test__ = False
    path: str
    source: bytes
    sites: ControlSites
    root: Node

    @cached_property
    def literals(self) -> FileLiterals:
        """The literals of the file."""
        return FileLiterals.read(self.root)

    @cached_property
    def tokens(self) -> Counter[str]:
        """Token -> number of its places in the file."""
        return count_tokens([self.source])

    @cached_property
    def functions(self) -> list[tuple[str, TestBlock]]:
        """Name and function of the file, for each that is no test."""
        functions: list[tuple[str, TestBlock]] = []
        todo = [self.root]
        while todo:
            node = todo.pop()
            todo += node.named_children
            name = _find_function_name(self, node) if node.type in _FUNCTIONS else None
            if name is not None and not _is_test_function(self, node, self.read(name)):
                block = _cover(self, node, (name.start_byte, name.end_byte))
                functions.append((self.read(name), replace(block, node=node)))
        return functions

    @cached_property
    def helpers(self) -> dict[str, TestBlock]:
        """Name -> function that is no test and that no test defines for itself."""
        tests = find_blocks(self)
        helpers: dict[str, TestBlock] = {}
        for name, function in self.functions:
            if not any(test.name_span and test.contains(function) for test in tests):
                helpers.setdefault(name, function)
        return helpers

    def find_helper(self, name: str, block: TestBlock) -> TestBlock | None:
        """Return the function that a test calls by a name: its own one, or a helper of the file."""
        own = (function for other, function in self.functions if other == name and block.contains(function))
        return next(own, self.helpers.get(name))

    @cached_property
    def trigrams(self) -> Counter[str]:
        """Three characters in a row -> number of their places in the file."""
        return count_trigrams([self.source])

    def count_rest(self, start: int, end: int) -> tuple[Counter[str], Counter[str]]:
        """Return tokens and trigrams of the file without a test, with the numbers of their places.

        Args:
            start: first byte of the test.
            end: its end.
        """
        if (start, end) not in self._rests:
            tokens = self.tokens - count_tokens([self.source[start:end]])
            # Also those that begin before the test or end after it.
            trigrams = self.trigrams - count_trigrams([self.source[max(0, start - 2) : end + 2]])
            self._rests[start, end] = tokens, trigrams
        return self._rests[start, end]

    @cached_property
    def _rests(self) -> dict[tuple[int, int], tuple[Counter[str], Counter[str]]]:
        return {}

    def read(self, node: Node) -> str:
        """Return the text of a node."""
        return self.source[node.start_byte : node.end_byte].decode(errors="replace")


def parse_test_file(path: str, source: bytes) -> TestFile | None:
    """Return a parsed test file; None for languages without a grammar and for content that is not UTF-8."""
    if (parsed := parse_source(path, source)) is None:
        return None
    language, root = parsed
    return TestFile(path=path, source=source, sites=language.controls, root=root)


def drop_plan(path: str, source: bytes) -> bytes:
    """Return a test file in which there may be any number of tests, and so instances of them."""
    language, _ = find_parsed_language(path)
    pattern, text = language.controls.plan if language is not None else ("", "")
    return re.sub(pattern.encode(), text.encode(), source) if pattern else source


def find_blocks(file: TestFile) -> list[TestBlock]:
    """Return the tests of a file, none inside another; the whole file where none is recognized."""
    blocks = list(_walk(file))
    root = file.root
    return blocks or [TestBlock(node=root, start=root.start_byte, end=root.end_byte, name_span=None)]


def _walk(file: TestFile) -> Iterator[TestBlock]:
    todo = [file.root]
    while todo:
        node = todo.pop()
        block = _make_block(file, node)
        if block is None:
            todo += reversed(node.named_children)
        else:
            yield block


def _make_block(file: TestFile, node: Node) -> TestBlock | None:
    if node.type in _FUNCTIONS and (name := _find_function_name(file, node)) is not None:
        if not _is_test_function(file, node, file.read(name)):
            return None
        # Names of Kotlin functions may be quoted; the quotes are not part of the test's name.
        quoted = int(file.read(name).startswith("`"))
        return _cover(file, node, (name.start_byte + quoted, name.end_byte - quoted))
    if node.type in _CALLS:
        callee = _find_callee(file, node)
        is_group = callee in file.sites.group_calls and _has_computed(file, node)
        if (callee in file.sites.test_calls or is_group) and (title := _find_title(node)) is not None:
            return _cover(file, node, (title.start_byte, title.end_byte))
        if callee == "TEST_CASE" and (title := _find_title(node, with_body=False)) is not None:
            return _cover_with_body(node, title)
        if callee in file.sites.checks:
            title = _find_check_title(node, file.sites.checks[callee])
            return _cover(file, node, (title.start_byte, title.end_byte) if title else None)
    return None


def _find_check_title(check: Node, before: int | None) -> Node | None:
    """Return the content of the plain string that is the last argument of a check. `before`: number of those before."""
    arguments = next((child.named_children for child in check.named_children if child.type == "list_expression"), [])
    if before is None or len(arguments) != before + 1 or not _STRINGS.search(arguments[-1].type):
        return None
    content = arguments[-1].named_children
    return content[0] if len(content) == 1 and not content[0].named_children else None


def _has_computed(file: TestFile, group: Node) -> bool:
    """Return whether the titles of all tests of a group are computed, as by a loop over cases."""
    titles: list[Node | None] = []
    todo = list(group.named_children)
    while todo:
        node = todo.pop()
        todo += node.named_children
        if node.type in _CALLS and _find_callee(file, node) in file.sites.test_calls and len(node.named_children) > 1:
            titles.append(_find_title(node))
    return bool(titles) and not any(titles)


def _find_function_name(file: TestFile, node: Node) -> Node | None:
    name = node.child_by_field_name("name")
    declarator = node.child_by_field_name("declarator")
    while name is None and declarator is not None:
        name, declarator = (declarator, None) if declarator.type in _NAMES else (None, _step_into(declarator))
    if name is None:
        name = next((child for child in node.named_children if child.type in _NAMES), None)
    if name is not None and re.search(
        file.sites.test_macros, file.read(name)
    ):  # TEST(Suite, Name), BOOST_AUTO_TEST_CASE(name)
        parameters = name.next_named_sibling
        last = parameters.named_children[-1] if parameters is not None and parameters.named_children else None
        return last or name
    return name


def _step_into(declarator: Node) -> Node | None:
    return declarator.child_by_field_name("declarator")


def _is_test_function(file: TestFile, node: Node, name: str) -> bool:
    if re.search(file.sites.test_names, name.strip("`")):
        return True
    body = node.child_by_field_name("body")
    head = file.source[_extend_start(node).start_byte : body.start_byte if body else node.end_byte].decode()
    return bool(re.search(file.sites.test_marks, head) or re.search(file.sites.test_macros, head.partition("(")[0]))


def _find_callee(file: TestFile, node: Node) -> str:
    """Return the name that a call calls: `it` for `it.each([...])("...", ...)`."""
    callee: Node | None = node
    while callee is not None and callee.type in _CALLS:
        callee = callee.child_by_field_name("function") or callee.child_by_field_name("method") or _get_first(callee)
    text = file.read(callee) if callee is not None else ""
    return re.split(r"[.(\s]", text, maxsplit=1)[0]


def _get_first(node: Node) -> Node | None:
    return node.named_children[0] if node.named_children else None


def _find_title(node: Node, *, with_body: bool = True) -> Node | None:
    """Return the content of the string that is the first argument of a call which also has a block or function."""
    children = [child for child in node.named_children if child.type.endswith(("arguments", "argument_list"))]
    listed = children[-1] if children else next((c for c in node.named_children if c.type == "list_expression"), None)
    first = _get_first(listed) if listed is not None else None
    if first is not None and first.type == "argument":
        first = _get_first(first)
    if first is None or not _STRINGS.search(first.type) or len(first.named_children) != 1:
        return None
    has_body = node.named_children[-1].type in ("do_block", "block") or any(
        "function" in child.type or "subroutine" in child.type or "closure" in child.type
        for argument in (listed.named_children if listed is not None else ())
        for child in (argument, *argument.named_children)
    )
    return first.named_children[0] if has_body or not with_body else None


def _cover_with_body(node: Node, title: Node) -> TestBlock | None:
    """Return the block of a macro call that a compound statement follows."""
    statement = node.parent if node.parent is not None and node.parent.type == "expression_statement" else node
    body = statement.next_named_sibling
    if body is None or body.type != "compound_statement":
        return None
    return TestBlock(
        node=body, start=statement.start_byte, end=body.end_byte, name_span=(title.start_byte, title.end_byte)
    )


def _cover(file: TestFile, node: Node, name_span: tuple[int, int] | None) -> TestBlock:
    """Return the block of a node, with its decorators, attributes, doc comments and the end of its statement."""
    outer = node
    if node.parent is not None and node.parent.type in ("decorated_definition", "expression_statement"):
        outer = node.parent
    end = outer.end_byte
    if file.source[end : end + 1] == b";":
        end += 1
    return TestBlock(node=outer, start=_extend_start(outer).start_byte, end=end, name_span=name_span)


def _extend_start(node: Node) -> Node:
    """Return the first of the attributes and comments that stand directly before a node."""
    first = node
    while (before := first.prev_named_sibling) is not None and before.type in _PRECEDING:
        if before.end_point.row + 1 < first.start_point.row:
            break
        first = before
    return first
