"""Which rules a file is changed by: those of the language its name tells."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from derivers.mutation import python
from derivers.mutation.change import Change, changes
from languages.registry import language_of_file


def mutants(path: str, source: bytes, lines: Collection[int] | None = None) -> Iterator[Change]:
    """The file with one thing wrong in it, each time another: by line, then by place, then by operator.

    Args:
        path: of the file; the end of its name tells the language. Files of other languages have none.
        source: its text.
        lines: lines (1-based) of which a mutant must change one; None for all.
    """
    yield from _changes(path, source, lines, python.MUTANTS)


def variants(path: str, source: bytes, lines: Collection[int] | None = None) -> Iterator[Change]:
    """The file written otherwise, with the behaviour it had; arguments and order as `mutants`."""
    yield from _changes(path, source, lines, python.VARIANTS)


def _changes(
    path: str, source: bytes, lines: Collection[int] | None, rules: tuple[python.Rule, ...]
) -> Iterator[Change]:
    if language_of_file(path) != "python" or not path.endswith(".py"):
        return
    try:
        at = python.Source(source)
    except python.UnreadableError:
        return
    found = ((rule.name, one) for node in at.nodes() for rule in rules for one in rule.find(at, node))
    yield from changes(path, source, found, lines, python.parser(source))
