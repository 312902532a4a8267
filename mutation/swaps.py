"""Tokens and names that operators exchange: a fault that people make by taking one for the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def _both_ways(pairs: Iterable[str]) -> dict[str, str]:
    """Return each `one other` as a mapping in both directions."""
    words = [pair.split() for pair in pairs]
    return {word: other for first, two in words for word, other in ((first, two), (two, first))}


BOUNDARIES: Mapping[str, str] = _both_ways(("< <=", "> >="))
OPPOSITES: Mapping[str, str] = _both_ways(("== !=", "=== !==", "< >", "<= >="))
PYTHON_OPPOSITES: Mapping[str, str] = {**OPPOSITES, "is": "is not", "is not": "is", "in": "not in", "not in": "in"}
JUNCTIONS: Mapping[str, str] = _both_ways(("&& ||", "and or"))

ARITHMETIC: Mapping[str, str] = _both_ways(("+ -", "* /", "+= -=", "*= /=", "++ --")) | {"%": "*", "**": "*"}
PYTHON_ARITHMETIC: Mapping[str, str] = {
    **_both_ways(("+ -", "* /", "<< >>", "& |", "+= -=", "*= /=", "&= |=")),
    "//": "/",
    "%": "//",
    "**": "*",
    "^": "&",
    "//=": "/=",
    "%=": "//=",
}

CALLS: Mapping[str, str] = {
    **_both_ways(
        (
            "min max",
            "Min Max",
            "floor ceil",
            "Floor Ceil",
            "startsWith endsWith",
            "HasPrefix HasSuffix",
            "starts_with ends_with",
            "start_with? end_with?",
            "toLowerCase toUpperCase",
            "ToLower ToUpper",
            "to_lowercase to_uppercase",
            "downcase upcase",
            "strtolower strtoupper",
            "trimStart trimEnd",
            "TrimLeft TrimRight",
            "TrimPrefix TrimSuffix",
            "lstrip rstrip",
            "ltrim rtrim",
            "indexOf lastIndexOf",
            "Index LastIndex",
            "some every",
            "any all",
            "any? all?",
            "anyMatch allMatch",
            "push unshift",
            "first last",
            "is_some is_none",
            "is_ok is_err",
            "front back",
            "push_back push_front",
            "keys values",
        )
    ),
    "shift": "pop",
    "keySet": "values",
}
"""Functions and methods that are easily confused."""

PYTHON_CALLS: Mapping[str, str] = {
    **_both_ways(
        (
            "min max",
            "any all",
            "floor ceil",
            "startswith endswith",
            "lower upper",
            "lstrip rstrip",
            "find rfind",
            "split rsplit",
            "partition rpartition",
            "append extend",
            "union intersection",
            "ljust rjust",
            "keys values",
        )
    ),
    "strip": "lstrip",
}
