"""What counts as the documentation of a function: a string at its beginning, or a comment right above it."""

from __future__ import annotations

import pytest

from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checks import make_check
from evaluation.instructions.evidence import RolloutEvidence

DOCUMENTED = {
    "a string": ("a.py", b"def f():\n    'Return.'\n    return 1\n"),
    "a string behind a comment": ("a.py", b"def f():\n    # Why.\n    'Return.'\n    return 1\n"),
    "a string behind the decorator": ("a.py", b"@cache\ndef f():\n    'Return.'\n    return 1\n"),
    "a comment": ("a.py", b"# It returns.\ndef f():\n    return 1\n"),
    "a comment above the decorators": (
        "a.py",
        b"# It returns.\n@cache\n@parts(\n    1,\n)\ndef f():\n    return 1\n",
    ),
    "a comment of several lines": ("a.js", b"/**\n * It returns.\n */\nfunction f() {\n  return 1;\n}\n"),
    "a comment above an attribute": ("a.rs", b"/// It returns.\n#[inline]\nfn f() -> i32 {\n    1\n}\n"),
}
PLAIN = {
    "nothing": ("a.py", b"def f():\n    return 1\n"),
    "a comment at the end of the file": ("a.py", b"def f():\n    return 1\n# The end."),
    "a comment further above": ("a.py", b"# It returns.\n\ndef f():\n    return 1\n"),
    "a string further below": ("a.py", b"def f():\n    x = 1\n    'Return.'\n    return x\n"),
    "a string that is returned": ("a.py", b"def f():\n    return 'Return.'\n"),
    "a comment in the body": ("a.py", b"def f():\n    # It returns.\n    return 1\n"),
    "a decorator alone": ("a.py", b"@cache\ndef f():\n    return 1\n"),
    "a directive": ("a.js", b"function f() {\n  'use strict';\n  return 1;\n}\n"),
    "an attribute alone": ("a.rs", b"#[inline]\nfn f() -> i32 {\n    1\n}\n"),
}


def decide_file(path: str, text: bytes) -> str:
    evidence = RolloutEvidence(actions=(), changes=[ChangedFile(path, None, text)])
    return make_check("new-functions-documented", {}, "a test").decide(evidence).state


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_documented_function_passes(name: str) -> None:
    assert decide_file(*DOCUMENTED[name]) == "passed"


@pytest.mark.parametrize("name", PLAIN)
def test_a_function_without_documentation_fails(name: str) -> None:
    assert decide_file(*PLAIN[name]) == "failed"
