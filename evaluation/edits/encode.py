"""Encoding of a source file: the program decodes itself and behaves as before.

Tests that search the source text for words fail on it; tests that execute the program do not.
"""

from __future__ import annotations

import ast
import base64

ENCODED = "encoded"

_PYTHON = 'exec(compile(__import__("base64").b64decode("@@"), __file__, "exec", dont_inherit=True))\n'
_NODE = 'eval(Buffer.from("@@", "base64").toString());\n'
"""Evaluated inside a CommonJS module, with access to its names. ES modules have imports, which `eval` rejects."""
_TEMPLATES = {".py": _PYTHON, ".js": _NODE, ".cjs": _NODE}


def encode_program(path: str, source: bytes) -> bytes | None:
    """Return the file with its text in base64; None for other languages and for text that is not a program."""
    template = next((text for end, text in _TEMPLATES.items() if path.endswith(end)), None)
    if template is None or not source.strip() or (template is _PYTHON and not _is_python(source)):
        return None
    return template.replace("@@", base64.b64encode(source).decode()).encode()


def _is_python(source: bytes) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
