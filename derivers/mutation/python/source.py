"""A Python file as libcst reads it, with the bytes each node stands at."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, ParentNodeProvider

from derivers.mutation.change import Found, Operator, Part

N = TypeVar("N", bound=cst.CSTNode)
Function = cst.FunctionDef

_SKIPPED = (cst.Annotation, cst.Import, cst.ImportFrom, cst.Decorator, cst.TypeAlias, cst.TypeParameters)
"""What has no behaviour of its own, or breaks the whole file."""


class UnreadableError(Exception):
    """The file is no Python that can be changed place by place."""


class Source:
    """One parsed file."""

    def __init__(self, source: bytes) -> None:
        """Parse it.

        Raises:
            UnreadableError: it is no Python, or not in UTF-8.
        """
        self.bytes = source
        try:
            module = cst.parse_module(source)
        except (cst.ParserSyntaxError, UnicodeDecodeError, LookupError, RecursionError) as error:
            raise UnreadableError(str(error)) from error
        if module.code.encode() != source:
            raise UnreadableError("not in UTF-8")
        self.module = module
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)

    def nodes(self) -> Iterator[cst.CSTNode]:
        """All nodes that may be changed, in the order of the text."""
        todo: list[cst.CSTNode] = [self.module]
        while todo:
            node = todo.pop()
            if isinstance(node, _SKIPPED) or _is_text(node) or _is_guard(node):
                continue
            yield node
            todo += reversed(node.children)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Bytes of a node, without parentheses and white space around it."""
        span = self._spans[node]
        return span.start, span.start + span.length

    def text(self, node: cst.CSTNode) -> bytes:
        """The node as it is written."""
        start, end = self.span(node)
        return self.bytes[start:end]

    def operand(self, node: cst.BaseExpression) -> bytes:
        """An expression as it is written, with its own parentheses."""
        return self.bytes[slice(*self.outer(node))]

    def outer(self, node: cst.BaseExpression) -> tuple[int, int]:
        """Bytes of an expression with its own parentheses."""
        start, end = self.span(node)
        if node.lpar:
            start, end = self.span(node.lpar[0])[0], self.span(node.rpar[-1])[1]
        return start, end

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around it; None for the module."""
        return self._parents.get(node)

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around it, from the inside out."""
        around = self.parent(node)
        while around is not None:
            yield around
            around = self.parent(around)

    def function(self, node: cst.CSTNode) -> Function | None:
        """The function in whose body or parameters it stands; None in a lambda and outside."""
        for around in self.above(node):
            if isinstance(around, cst.FunctionDef):
                return around
            if isinstance(around, cst.Lambda | cst.ClassDef):
                return None
        return None

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The line or compound statement in which it stands; itself for the module."""
        around: cst.CSTNode | None = node
        while around is not None and not isinstance(around, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            around = self.parent(around)
        return around or node

    def before(self, start: int) -> bytes:
        """What stands before a byte on its line: its indent, for a statement that begins the line."""
        return self.bytes[self.bytes.rfind(b"\n", 0, start) + 1 : start]

    def line_end(self, end: int) -> int:
        """The start of the next line, or the end of the file."""
        found = self.bytes.find(b"\n", end)
        return len(self.bytes) if found < 0 else found + 1

    @cached_property
    def newline(self) -> bytes:
        """How lines end."""
        return self.module.default_newline.encode()

    def found(self, node: cst.CSTNode, text: bytes, shown: cst.CSTNode | None = None) -> Found:
        """`text` in a node's place, shown to people by a node around it."""
        return self.at(self.span(node), text, shown or node)

    def at(self, span: tuple[int, int], text: bytes, shown: cst.CSTNode) -> Found:
        """`text` in place of some bytes."""
        start, end = self.span(shown)
        return Found(parts=(Part(*span, text),), shown=(min(start, span[0]), max(end, span[1])))


Rule = Operator[Source, cst.CSTNode]


def parser(source: bytes) -> Callable[[bytes, Sequence[Part]], bool]:
    """Whether a text is Python, by the quicker of two parsers that takes the text it is made from."""

    def by_ast(text: bytes, _: Sequence[Part] = ()) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes, and other things that are not our doing
            return _takes(ast.parse, text)

    def by_libcst(text: bytes, _: Sequence[Part] = ()) -> bool:
        return _takes(cst.parse_module, text)

    return by_ast if by_ast(source) else by_libcst


def _takes(parse: Callable[[bytes], object], text: bytes) -> bool:
    try:
        parse(text)
    except (SyntaxError, ValueError, cst.ParserSyntaxError, RecursionError, MemoryError):
        return False
    return True


def everything(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, in the order of the text."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        todo += reversed(one.children)


def descendants(node: cst.CSTNode, kind: type[N]) -> Iterator[N]:
    """The nodes of a kind in and below a node, in the order of the text."""
    return (one for one in everything(node) if isinstance(one, kind))


def _is_text(node: cst.CSTNode) -> bool:
    """Whether a statement is a string and nothing else, as docstrings are."""
    if isinstance(node, cst.SimpleStatementLine):
        return all(_is_text(one) for one in node.body)
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)


def _is_guard(node: cst.CSTNode) -> bool:
    """Whether it is about how the module is used, or of what the module says about itself (`__all__`)."""
    if isinstance(node, cst.If):
        names = {name.value for name in descendants(node.test, cst.Name)}
        return bool(names & {"__name__", "TYPE_CHECKING"})
    if isinstance(node, cst.Assign) and isinstance(name := node.targets[0].target, cst.Name):
        return name.value.startswith("__") and name.value.endswith("__")
    return False
