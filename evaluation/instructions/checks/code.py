"""Checks of code: functions that a submission adds or changes, by the grammar of their language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checks.base import FileCheck, Pattern
from evaluation.instructions.evidence import INACTIVE, CheckVerdict, RolloutEvidence, make_failed, make_passed
from languages.habits import Habits
from languages.parsing import create_parser
from languages.registry import LANGUAGES, detect_file_language
from mutation.definitions import get_function, iterate_definition_nodes
from mutation.grammars import find_grammar

_COMMENT_LINE = re.compile(rb"\s*(#|//|/\*|\*|--|;)")
_ATTRIBUTE_LINE = re.compile(rb"\s*(@\w|#!?\[)")
_UNTYPED = frozenset(("self", "cls", "this"))
_PARAMETER_TYPES = frozenset(("identifier", "default_parameter", "list_splat_pattern", "dictionary_splat_pattern"))
"""Nodes of parameters of Python without a type."""


@dataclass(frozen=True)
class _Function:
    """A function of a changed file."""

    path: str
    name: str
    node: Node
    source: bytes
    is_new: bool

    @property
    def shown(self) -> str:
        """Name and place for people."""
        return f"{self.path}:{self.node.start_point[0] + 1}: {self.name}"

    @property
    def n_lines(self) -> int:
        """Number of its lines."""
        return self.node.end_point[0] - self.node.start_point[0] + 1

    @property
    def is_documented(self) -> bool:
        """Whether it has a documentation string, or a comment right above it."""
        if _get_habits(self.path).documentation_strings and self._begins_with_string:
            return True
        parent = self.node.parent
        outer = parent if parent is not None and parent.type == "decorated_definition" else self.node
        before = self.source.split(b"\n")[: outer.start_point[0]]
        # Decorators and attributes stand between a comment and its function.
        while before and _ATTRIBUTE_LINE.match(before[-1]):
            before.pop()
        return bool(before) and _COMMENT_LINE.match(before[-1]) is not None

    @property
    def _begins_with_string(self) -> bool:
        body = self.node.child_by_field_name("body")
        first = body.named_children[0] if body is not None and body.named_children else None
        if first is not None and first.type == "expression_statement" and first.named_children:
            first = first.named_children[0]
        return first is not None and first.type == "string"

    @property
    def is_typed(self) -> bool:
        """Whether all parameters and the result have types, as in Python."""
        parameters = self.node.child_by_field_name("parameters")
        names = [
            (child.text or b"").decode(errors="replace").lstrip("*").partition("=")[0].strip()
            for child in (parameters.named_children if parameters is not None else ())
            if child.type in _PARAMETER_TYPES
        ]
        has_result = self.node.child_by_field_name("return_type") is not None or self.name.endswith("__init__")
        return has_result and not any(name not in _UNTYPED for name in names)


def _iterate_functions(change: ChangedFile) -> Iterator[_Function]:
    """Yield the named functions of a changed file that the submission adds or changes."""
    grammar = find_grammar(change.path)
    if grammar is None or change.after is None:
        return
    parser = create_parser(grammar.syntax)
    old = dict[str, set[bytes]]()
    for name, node in iterate_definition_nodes(parser.parse(change.before or b"").root_node):
        if get_function(node) is not None:
            old.setdefault(name, set()).add(node.text or b"")
    for name, node in iterate_definition_nodes(parser.parse(change.after).root_node):
        function = get_function(node)
        if function is not None and (node.text or b"") not in old.get(name, ()):
            yield _Function(change.path, name, function, change.after, is_new=name not in old)


def _list_functions(evidence: RolloutEvidence, *, only_new: bool) -> list[_Function]:
    functions = [
        function
        for change in evidence.changes
        if evidence.is_source(change.path)
        for function in _iterate_functions(change)
    ]
    return [function for function in functions if function.is_new or not only_new]


class NewFunctionsDocumented(FileCheck):
    """New functions have a documentation string or a comment above them."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each has."""
        functions = _list_functions(evidence, only_new=True)
        return _decide(functions, [function for function in functions if not function.is_documented])


class NewFunctionsTyped(FileCheck):
    """New functions have type hints for all parameters and the result."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each has."""
        functions = [
            function
            for function in _list_functions(evidence, only_new=True)
            if _get_habits(function.path).optional_types
        ]
        return _decide(functions, [function for function in functions if not function.is_typed])


class NewFunctionsNamed(FileCheck):
    """Names of new functions match a pattern as a whole."""

    pattern: Pattern

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each does; the name without those of its classes."""
        functions = _list_functions(evidence, only_new=True)
        wrong = [function for function in functions if not re.fullmatch(self.pattern, function.name.rpartition(".")[2])]
        return _decide(functions, wrong)


class FunctionsAtMost(FileCheck):
    """Length of functions that are new or changed, in lines."""

    lines: int

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none is longer."""
        functions = _list_functions(evidence, only_new=False)
        return _decide(functions, [function for function in functions if function.n_lines > self.lines])


def _get_habits(path: str) -> Habits:
    language = LANGUAGES.get(detect_file_language(path))
    return language.habits if language is not None else Habits()


def _decide(functions: list[_Function], wrong: list[_Function]) -> CheckVerdict:
    if not functions:
        return INACTIVE
    return make_failed(quote=wrong[0].shown) if wrong else make_passed()
