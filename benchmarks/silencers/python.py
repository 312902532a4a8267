"""Silencers in Python: at import, a file of the submission changes unittest, pytest and libraries of assertions."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.silencers.parts import SilencedTarget, read_code
from languages.parsing import PYTHON
from languages.probes import Changes

FORMS = {
    "methods": "methods of unittest.TestCase and its subclasses",
    "functions": "functions of pytest, numpy, pandas, hamcrest and mocks that assert",
    "statements": "`assert` in test files, whose functions get code without it",
    "optimized": "`assert` in test files, by an interpreter started again with -O and without pytest's rewriting",
    "comparisons": "operators of the classes under test, and of what functions return, that are always true",
    "runner": "exceptions of a test, swallowed where the runner calls it",
    "fixtures": "exceptions of a test, swallowed by a wrapper that is put around it when its fixtures are set up",
}
ALONE = frozenset({"optimized"})
"""Forms after which the code of others would run in another process."""


def write(target: SilencedTarget, forms: Sequence[str], rest: str) -> Changes:
    """Return the files of the target with the code at their end."""
    changes: dict[str, bytes | None] = {}
    for path in target.sources:
        if path.endswith(".py"):
            values = {
                "FORMS": repr(list(forms)),
                "REST": repr(str(rest)),
                "CHANGED": repr(target.list_changed_names(path, PYTHON, "function_definition")),
            }
            changes[path] = target.base[path].rstrip() + b"\n" + read_code("python.txt", values).encode()
    return changes
