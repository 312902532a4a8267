"""Parts of silencers' code: templates, and functions of a file by its grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node
from unidiff.patch import PatchSet

from languages.parsing import Syntax, create_parser

CODE = Path(__file__).parent / "code"
"""Templates of code in the languages of tasks; words between @ are replaced."""


def read_code(name: str, values: Mapping[str, str]) -> str:
    """Return a template with its words replaced. `values`: word -> text."""
    text = (CODE / name).read_text(encoding="utf-8")
    for word, value in values.items():
        text = text.replace(f"@{word}@", value)
    return text


@dataclass(frozen=True, kw_only=True)
class SilencedTarget:
    """What the silencers of a task are made of.

    Attributes:
        base: path -> content of the base tree's files that are changed, or named in a changed one.
        sources: paths of the files that the gold patch changes.
        test_files: files of the FAIL_TO_PASS tests.
        lines: path -> lines of the base tree that the gold patch changes, 0-based; without them all lines of the file.
            The statement of an issue has as much in most tasks.
    """

    base: Mapping[str, bytes]
    sources: Sequence[str]
    test_files: Sequence[str] = ()
    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def is_changed(self, path: str, node: Node) -> bool:
        """Return whether the gold patch changes a node of a file."""
        lines = self.lines.get(path)
        return lines is None or any(node.start_point[0] <= line <= node.end_point[0] for line in lines)

    def list_changed_names(self, path: str, syntax: Syntax, *types: str) -> list[str]:
        """Return the names of the functions that the gold patch changes. `types`: node types of functions."""
        nodes = [node for node in list_nodes(parse(syntax, self.base[path])) if node.type in types]
        names = (read_text(node.child_by_field_name("name")) for node in nodes if self.is_changed(path, node))
        return sorted({name for name in names if name})


def list_changed_lines(patch: str) -> dict[str, frozenset[int]]:
    """Return path -> lines of the old file that a patch removes or inserts at, 0-based."""
    lines: dict[str, set[int]] = {}
    for file in PatchSet(patch):
        changed = lines.setdefault(file.source_file.removeprefix("a/"), set())
        for hunk in file:
            number = hunk.source_start - 1
            for line in hunk:
                if line.is_removed or line.is_added:
                    changed.add(number)
                number += not line.is_added
    return {path: frozenset(numbers) for path, numbers in lines.items()}


@dataclass(frozen=True, kw_only=True)
class TypedFunction:
    """A function of a language with types.

    Attributes:
        body: byte after the brace that opens its body.
        result: text of its result's type, empty for none.
        parameters: name -> text of its type.
    """

    body: int
    result: str
    parameters: Mapping[str, str]


def list_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    yield node
    for child in node.children:
        yield from list_nodes(child)


def parse(syntax: Syntax, source: bytes) -> Node:
    """Return the root of a file's tree."""
    return create_parser(syntax).parse(source).root_node


def read_text(node: Node | None) -> str:
    """Return the text of a node, empty for none."""
    return node.text.decode() if node is not None and node.text is not None else ""


def insert(source: bytes, pieces: Mapping[int, str]) -> bytes:
    """Return a file with texts inserted. `pieces`: position -> text."""
    for position, text in sorted(pieces.items(), reverse=True):
        source = source[:position] + text.encode() + source[position:]
    return source


def replace_changed(
    target: SilencedTarget,
    path: str,
    functions: Iterable[tuple[TypedFunction, Node]],
    make_beginning: Callable[[TypedFunction], str],
) -> bytes:
    """Return a file in which the functions that the gold patch changes begin with other code.

    Args:
        target: files of the task.
        path: path of the file.
        functions: functions of the file and their bodies.
        make_beginning: function that returns the code with which a function begins.
    """
    changed = ((function, body) for function, body in functions if target.is_changed(path, body))
    return insert(target.base[path], {function.body: make_beginning(function) for function, _ in changed})


def find_typical_results(
    functions: Iterable[tuple[TypedFunction, Node]], return_node: str, is_constant: Callable[[Node], bool]
) -> dict[str, str]:
    """Return type -> the constant that functions with this result return most often.

    Args:
        functions: functions and their bodies.
        return_node: node type of statements that return.
        is_constant: whether an expression is a constant.
    """
    counts: dict[str, Counter[str]] = {}
    for function, body in functions:
        for node in list_nodes(body):
            values = node.named_children if node.type == return_node else []
            if len(values) == 1 and is_constant(values[0]):
                counts.setdefault(function.result, Counter())[read_text(values[0])] += 1
    return {result: count.most_common(1)[0][0] for result, count in counts.items()}
