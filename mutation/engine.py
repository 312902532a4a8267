"""Generation of mutants and variants of a file, in every language that has a grammar."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from mutation.grammars import find_grammar
from mutation.mutation import Mutation, TextEdit, build_mutations
from mutation.operators import MUTANT_OPERATORS, VARIANT_OPERATORS
from mutation.source_file import SourceFile, SyntaxOperator
from mutation.syntax import is_comment, is_docstring


def generate_mutants(path: str, source: bytes, lines: Collection[int] | None = None) -> Iterator[Mutation]:
    """Yield the file with a fault, each time another: by line, then by position, then by operator.

    Args:
        path: path of the file; its suffix selects the language. Files of other languages have no mutants.
        source: the content of the file.
        lines: lines (1-based) of which a mutant must change any; None for all.
    """
    yield from _generate(path, source, lines, MUTANT_OPERATORS)


def generate_variants(path: str, source: bytes, lines: Collection[int] | None = None) -> Iterator[Mutation]:
    """Yield the file rewritten without a change of behaviour; arguments and order as `generate_mutants`."""
    yield from _generate(path, source, lines, VARIANT_OPERATORS)


def is_program(path: str, before: bytes, after: bytes) -> bool:
    """Return whether a new text of a file parses as well as the file does; False for languages without a grammar."""
    grammar = find_grammar(path)
    if grammar is None:
        return False
    return SourceFile(before, grammar).parses(after, (TextEdit(0, len(before), after),))


def has_same_code(path: str, before: bytes, after: bytes) -> bool:
    """Return whether two texts of a file differ at most in comments, docstrings and white space.

    Where there is no grammar for the file, they must be equal.
    """
    grammar = find_grammar(path)
    if grammar is None:
        return before == after
    return _outline(SourceFile(before, grammar)) == _outline(SourceFile(after, grammar))


def _outline(file: SourceFile) -> list[tuple[int, str, bytes]]:
    """Return depth, type and, for leaves, text of the nodes that are code, in the order of the text."""
    outline: list[tuple[int, str, bytes]] = []
    todo = [(0, file.root)]
    while todo:
        depth, node = todo.pop()
        if is_comment(node) or is_docstring(node):
            continue
        outline.append((depth, node.type, b"" if node.children else file.get_bytes(node)))
        todo += [(depth + 1, child) for child in reversed(node.children)]
    return outline


def _generate(
    path: str, source: bytes, lines: Collection[int] | None, operators: Iterable[SyntaxOperator]
) -> Iterator[Mutation]:
    grammar = find_grammar(path)
    if grammar is None:
        return
    file = SourceFile(source, grammar)
    sites = (
        (operator.name, site)
        for node in file.iterate_mutable_nodes()
        for operator in operators
        for site in operator.find(file, node)
    )
    yield from build_mutations(path, source, sites, lines, file.parses)
