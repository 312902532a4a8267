"""YAML with the line of everything: values that can be asked for what may not be there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml


@dataclass(frozen=True)
class Marked:
    """A value of a YAML document: scalar, list or mapping; the empty one stands for what is not there."""

    line: int = 0
    """1-based."""
    text: str = ""
    """Of a scalar; empty for all others."""
    is_scalar: bool = False
    is_block: bool = False
    """Whether the scalar's text begins in the line below (`|` and `>`)."""
    pairs: tuple[tuple[Marked, Marked], ...] = ()
    """Of a mapping, with merged keys (`<<`)."""
    rows: tuple[Marked, ...] = field(default=())
    """Of a list."""

    def __bool__(self) -> bool:
        return bool(self.text or self.pairs or self.rows)

    def __getitem__(self, key: str) -> Marked:
        """The value of a mapping's key; the empty one when there is none."""
        return next((value for name, value in self.pairs if name.text == key), NOTHING)

    def items(self) -> tuple[tuple[Marked, Marked], ...]:
        """Keys and values of a mapping; nothing of all others."""
        return self.pairs

    def values(self) -> tuple[Marked, ...]:
        """Entries of a list; nothing of all others."""
        return self.rows

    def lines(self) -> Iterator[tuple[int, str]]:
        """(1-based line, text) of a scalar's lines."""
        for number, text in enumerate(self.text.splitlines(), self.line + self.is_block):
            yield number, text.rstrip()


NOTHING = Marked()

_LARGEST = 50_000
"""Nodes beyond which a document is no configuration; aliases may multiply."""


def load(text: str) -> Marked:
    """A document; the empty value when it is no YAML, or endless. Aliases stand for what they name."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return _Reader().read(node) if node is not None else NOTHING
    except (yaml.YAMLError, RecursionError, ValueError):
        return NOTHING


class _Reader:
    """Turns nodes into values and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def read(self, node: yaml.Node) -> Marked:
        self.count += 1
        if self.count > _LARGEST:
            raise ValueError("the document is too large")
        line = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            return Marked(line=line, rows=tuple(self.read(one) for one in node.value))
        if isinstance(node, yaml.MappingNode):
            pairs = [(self.read(key), self.read(value)) for key, value in node.value]
            merged = [pair for key, value in pairs if key.text == "<<" for pair in _merged(value)]
            return Marked(line=line, pairs=(*(pair for pair in pairs if pair[0].text != "<<"), *merged))
        return Marked(line=line, text=str(node.value), is_scalar=True, is_block=_style(node) in ("|", ">"))


def _merged(value: Marked) -> list[tuple[Marked, Marked]]:
    return [*value.pairs, *(pair for row in value.rows for pair in row.pairs)]


def _style(node: yaml.Node) -> str:
    return str(node.style or "") if isinstance(node, yaml.ScalarNode) else ""
