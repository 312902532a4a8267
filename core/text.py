"""Phrases of messages."""

from __future__ import annotations

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters by which text of a repository could rewrite the text that a terminal shows."""

_FOREIGN_SURROGATES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
SMALLEST_DECIMAL = 0.0001
"""Probability below which a fraction, `1 in 30,000`, is easier to read than a decimal."""
SMALLEST_FRACTION = 1e-9
"""Probability below which no exact fraction is shown."""


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 repository`, `2 repositories`; `plural` is for irregular nouns."""
    if count == 1:
        return f"1 {noun}"
    if not plural:
        ends_in_y = noun.endswith("y") and noun[-2:-1] not in tuple("aeiou")
        plural = f"{noun[:-1]}ies" if ends_in_y else f"{noun}s"
    return f"{count} {plural}"


def format_probability(probability: float) -> str:
    """Return a probability with two significant digits: `0.56`, `0.0003`, `1 in 30,000`.

    Only 0 is shown as 0 and only 1 as 1. A fraction never states less than the probability, as many are upper bounds.
    """
    if probability in (0, 1):
        return f"{probability:.0f}"
    if probability > 0.99:
        return "over 0.99"
    if probability >= SMALLEST_DECIMAL:
        return f"{probability:.2g}"
    if probability < SMALLEST_FRACTION:
        return f"under 1 in {1 / SMALLEST_FRACTION:,.0f}"
    # The quotient of a decimal, such as 1 / 0.00001, may be a little below the whole number that it stands for.
    denominator = int(1 / probability * (1 + 1e-9))
    unit = 10 ** (len(str(denominator)) - 2)
    return f"1 in {denominator // unit * unit:,}"


def replace_surrogates(content: str) -> str:
    """Return a text that can be encoded, with `?` for bytes that were not UTF-8."""
    return content.encode(errors="replace").decode()


def encode_json_text(content: str) -> bytes:
    """Return the bytes of a text out of JSON, which can hold any surrogate.

    Those that stand for bytes that were not UTF-8 (U+DC80 to U+DCFF) become these bytes, others `?`.
    """
    return _FOREIGN_SURROGATES.sub("?", content).encode(errors="surrogateescape")


def escape_controls(content: str) -> str:
    """Return a text in which characters that move the cursor or turn the direction are shown as escapes."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], replace_surrogates(content))


def escape_line(content: str) -> str:
    """Return a text as a line: a name in it can neither move the cursor nor begin a line of its own."""
    return escape_controls(content).replace("\n", "\\n")
