"""YAML documents with line numbers; a missing key evaluates to an empty node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml


@dataclass(frozen=True)
class YamlNode:
    """A node of a YAML document: scalar, list or mapping. `EMPTY_NODE` represents a missing value."""

    line: int = 0
    """1-based."""
    text: str = ""
    """Text of a scalar; empty for lists and mappings."""
    is_scalar: bool = False
    is_block: bool = False
    """Whether the scalar's text starts on the following line (`|` and `>`)."""
    pairs: tuple[tuple[YamlNode, YamlNode], ...] = ()
    """Entries of a mapping, merge keys (`<<`) expanded."""
    rows: tuple[YamlNode, ...] = field(default=())
    """Entries of a list."""

    def __bool__(self) -> bool:
        return bool(self.text or self.pairs or self.rows)

    def __getitem__(self, key: str) -> YamlNode:
        """Return the value of a mapping's key; the empty node if it is missing."""
        return next((value for name, value in self.pairs if name.text == key), EMPTY_NODE)

    def items(self) -> tuple[tuple[YamlNode, YamlNode], ...]:
        """Return keys and values of a mapping; empty for other nodes."""
        return self.pairs

    def values(self) -> tuple[YamlNode, ...]:
        """Return the entries of a list; empty for other nodes."""
        return self.rows

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield (1-based line, text) for each line of a scalar."""
        for number, text in enumerate(self.text.splitlines(), self.line + self.is_block):
            yield number, text.rstrip()


EMPTY_NODE = YamlNode()

_MAX_NODES = 50_000
"""Maximum number of nodes; aliases may expand exponentially."""


def load_yaml(text: str) -> YamlNode:
    """Parse a document, aliases expanded; return the empty node if it is invalid or too large."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return _YamlReader().read(node) if node is not None else EMPTY_NODE
    except (yaml.YAMLError, RecursionError, ValueError):
        return EMPTY_NODE


class _YamlReader:
    """Converts PyYAML nodes and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def read(self, node: yaml.Node) -> YamlNode:
        self.count += 1
        if self.count > _MAX_NODES:
            raise ValueError("the document is too large")
        line = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            return YamlNode(line=line, rows=tuple(self.read(child) for child in node.value))
        if isinstance(node, yaml.MappingNode):
            pairs = [(self.read(key), self.read(value)) for key, value in node.value]
            merged = [pair for key, value in pairs if key.text == "<<" for pair in _expand_merge_key(value)]
            return YamlNode(line=line, pairs=(*(pair for pair in pairs if pair[0].text != "<<"), *merged))
        return YamlNode(line=line, text=str(node.value), is_scalar=True, is_block=_scalar_style(node) in ("|", ">"))


def _expand_merge_key(value: YamlNode) -> list[tuple[YamlNode, YamlNode]]:
    return [*value.pairs, *(pair for row in value.rows for pair in row.pairs)]


def _scalar_style(node: yaml.Node) -> str:
    return str(node.style or "") if isinstance(node, yaml.ScalarNode) else ""
