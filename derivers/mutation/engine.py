"""Which rules a file is changed by: those of the language its name tells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from derivers.mutation import python, trees
from derivers.mutation.change import Change, Part, changes


def mutants(path: str, source: bytes, lines: Collection[int] | None = None) -> Iterator[Change]:
    """The file with one thing wrong in it, each time another: by line, then by place, then by operator.

    Args:
        path: of the file; the end of its name tells the language. Files of other languages have none.
        source: its text.
        lines: lines (1-based) of which a mutant must change one; None for all.
    """
    yield from _changes(path, source, lines, python.MUTANTS, trees.MUTANTS)


def variants(path: str, source: bytes, lines: Collection[int] | None = None) -> Iterator[Change]:
    """The file written otherwise, with the behaviour it had; arguments and order as `mutants`."""
    yield from _changes(path, source, lines, python.VARIANTS, trees.VARIANTS)


def is_program(path: str, before: bytes, after: bytes) -> bool:
    """Whether a text made of a file can be read as well as the file; False for languages that are not known here."""
    if path.endswith(".py"):
        return python.parser(before)(after, ())
    if (grammar := trees.grammar_of(path)) is None:
        return False
    return trees.Source(before, grammar).parses(after, (Part(0, len(before), after),))


def _changes(
    path: str,
    source: bytes,
    lines: Collection[int] | None,
    of_python: Iterable[python.Rule],
    of_others: Iterable[trees.Rule],
) -> Iterator[Change]:
    if path.endswith(".py"):
        try:
            module = python.Source(source)
        except python.UnreadableError:
            return
        in_module = (
            (rule.name, one) for node in module.nodes() for rule in of_python for one in rule.find(module, node)
        )
        yield from changes(path, source, in_module, lines, python.parser(source))
    elif (grammar := trees.grammar_of(path)) is not None:
        at = trees.Source(source, grammar)
        in_tree = ((rule.name, one) for node in at.nodes() for rule in of_others for one in rule.find(at, node))
        yield from changes(path, source, in_tree, lines, at.parses)
