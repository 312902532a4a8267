"""Rules on the text of programs: what is refused, under which reason, and what is not."""

from __future__ import annotations

import pytest

from worlds.program.rules import find_violations
from worlds.reasons import Reason


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import numpy", Reason.IMPORT_REFUSED),
        ("from . import secrets", Reason.IMPORT_REFUSED),
        ("import os.path", Reason.OPENS_FILE),
        ("open('x')", Reason.OPENS_FILE),
        ("f = open", Reason.OPENS_FILE),
        ("from urllib.request import urlopen", Reason.OPENS_SOCKET),
        ("import subprocess as s", Reason.STARTS_PROCESS),
        ("import threading", Reason.STARTS_PROCESS),
        ("exec('x')", Reason.EVALUATES_CODE),
        ("import importlib", Reason.EVALUATES_CODE),
        ("x.__class__", Reason.DUNDER_ACCESS),
        ("__builtins__", Reason.DUNDER_ACCESS),
        ("x['__globals__']", Reason.DUNDER_ACCESS),
        ("'{0.__class__}'.format(1)", Reason.DUNDER_ACCESS),
        ("class A:\n    def __eq__(self, other): return True", Reason.DUNDER_ACCESS),
        ("getattr(x, 'a' + 'b')", Reason.INTROSPECTION),
        ("globals()", Reason.INTROSPECTION),
        ("id(x)", Reason.INTROSPECTION),
        ("(x for x in y).gi_frame", Reason.INTROSPECTION),
        ("import random\nrandom._os.system('ls')", Reason.INTROSPECTION),
        ("from random import _os", Reason.INTROSPECTION),
        ("import uuid\nuuid.os", Reason.INTROSPECTION),
        ("import json\nx = json", Reason.INTROSPECTION),
        ("import json as j\nf(j)", Reason.INTROSPECTION),
        ("import operator\noperator.attrgetter('a')", Reason.INTROSPECTION),
        ("from string import Formatter", Reason.INTROSPECTION),
        ("import time", Reason.READS_CLOCK),
        ("import datetime\ndatetime.datetime.now()", Reason.READS_CLOCK),
        ("from datetime import date\ndate.today()", Reason.READS_CLOCK),
        ("def f(:", Reason.SYNTAX_ERROR),
        ("x = 1\0", Reason.SYNTAX_ERROR),
    ],
)
def test_a_violation_has_its_reason(source: str, reason: Reason) -> None:
    assert reason in {violation.reason for violation in find_violations(source)}


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations",
        "import collections.abc\nimport datetime as dt\nx = dt.date.fromisoformat('2025-01-01')",
        "import random\nimport uuid\nx = [random.random(), str(uuid.uuid4())]",
        'def f(self):\n    """Uses __init__ of its parent."""\n    return self.today, self.now',
        "def f(id, hash):\n    return id + hash",
        "class A:\n    def __init__(self): self.x = 1",
        "from typing import Any, TypedDict\nprint('x', type(1), isinstance(1, int))",
    ],
)
def test_ordinary_programs_break_no_rule(source: str) -> None:
    assert find_violations(source) == ()


def test_a_violation_names_its_line() -> None:
    assert str(find_violations("x = 1\neval(x)")[0]) == "evaluates-code: line 2: names eval"
