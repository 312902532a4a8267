"""Rewrites of a source file that keep its behaviour: another encoding, and blanks between tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _accept_all(_source: bytes) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Rewrites:
    """Rewrites of a language's files. The defaults have none."""

    decoders: Mapping[str, str] = field(default_factory=dict)
    """End of a path -> program that decodes itself and runs as the file did; `@@` stands for the file in base64."""
    is_program: Callable[[bytes], bool] = _accept_all
    """Returns whether a text is a program that can be encoded. Pure."""
    signs: frozenset[str] = frozenset()
    """Node types of the grammar, brackets and dots, next to which a blank is insignificant; empty for none."""
    respace: Callable[[bytes], bytes | None] | None = None
    """Returns a file of the grammar with a blank between all adjacent tokens, or None where that is impossible; in
    place of `signs`. Pure."""


SIGNS = frozenset({"(", ")", "[", "]", ".", ","})
