"""Encoding of a source file: the program decodes itself and behaves as before.

Tests that search the source text for words fail on it; tests that execute the program do not.
"""

from __future__ import annotations

import base64

from languages.registry import find_language

ENCODED = "encoded"


def encode_program(path: str, source: bytes) -> bytes | None:
    """Return the file with its text in base64; None for other languages and for text that is no program."""
    language = find_language(path)
    if language is None:
        return None
    rewrites = language.rewrites
    template = next((text for end, text in rewrites.decoders.items() if path.endswith(end)), None)
    if template is None or not source.strip() or not rewrites.is_program(source):
        return None
    return template.replace("@@", base64.b64encode(source).decode()).encode()
