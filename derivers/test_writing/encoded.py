"""A program whose text cannot be read in its file: it decodes itself and behaves as before.

Tests that look for words in the source, by whatever means, do not find them; tests that run it see no difference.
"""

from __future__ import annotations

import ast
import base64

ENCODED = "encoded"

_PYTHON = 'exec(compile(__import__("base64").b64decode("@@"), __file__, "exec", dont_inherit=True))\n'
_NODE = 'eval(Buffer.from("@@", "base64").toString());\n'
"""Inside a CommonJS module, whose names it sees. A module of the newer sort has imports, which cannot be so run."""
_TEMPLATES = {".py": _PYTHON, ".js": _NODE, ".cjs": _NODE}


def encoded(path: str, source: bytes) -> bytes | None:
    """The file with its text in base64, None where no template is known or the text is no program."""
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
