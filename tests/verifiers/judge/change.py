"""A change that makes a greeting loud and adds a message that its statement does not contain."""

from __future__ import annotations

import json
from typing import Any

from verifiers.judge.case import JudgeCase

STATEMENT = """\
greet() cannot shout

I would like to call `greet("Ada", loud=True)` and get the greeting in capital
letters. A name that is empty should be refused with a ValueError.
"""
GOLD = '''\
diff --git a/greet.py b/greet.py
--- a/greet.py
+++ b/greet.py
@@ -1,3 +1,14 @@
-def greet(name):
+EMPTY = "whom shall I greet?"
+
+
+def greet(name, loud=False):
     """A greeting."""
-    return "Hello, " + name
+    if not name.strip():
+        raise ValueError(EMPTY)
+    said = f"Hello, {name}"
+    return said.upper() if loud else said
+
+
+def shout_all(names: list[str], *, end: str = "!") -> list[str]:
+    """Everybody's greeting."""
+    return [greet(name, loud=True) + end for name in names]
'''
TESTS = """\
diff --git a/tests/test_greet.py b/tests/test_greet.py
--- a/tests/test_greet.py
+++ b/tests/test_greet.py
@@ -1,5 +1,20 @@
-from greet import greet
+import pytest
+
+from greet import greet, shout_all


 def test_greet():
     assert greet("Ada") == "Hello, Ada"
+
+
+@pytest.mark.parametrize("name", ["Ada", "Bo"])
+def test_loud(name):
+    assert greet(name, loud=True) == f"HELLO, {name.upper()}"
+
+
+def test_empty():
+    with pytest.raises(ValueError, match="whom shall I greet"):
+        greet(" ")
+    assert shout_all(["Bo"], end="?") == ["HELLO, BO?"]
"""
LOUD = 'I would like to call `greet("Ada", loud=True)`'
DEMANDED = 'with pytest.raises(ValueError, match="whom shall I greet"):'
CASE = JudgeCase(
    name="ada__greet-1",
    repo="ada/greet",
    statement=STATEMENT,
    gold_patch=GOLD,
    test_patch=TESTS,
    fail_to_pass=(
        "tests/test_greet.py::test_loud[Ada]",
        "tests/test_greet.py::test_loud[Bo]",
        "tests/test_greet.py::test_empty",
    ),
)


def make_answer(**changes: Any) -> dict[str, Any]:
    """Return a valid answer about CASE."""
    tests = [
        {"number": 1, "asserts": "a loud greeting is in capitals", "stated": "yes", "quote": LOUD},
        {"number": 2, "asserts": "an empty name is refused", "stated": "partly", "quote": "refused with a ValueError"},
    ]
    missing = [{"what": "the words of the error", "test_line": DEMANDED}]
    return {"tests": tests, "leaks": [], "missing": missing, "underspecified": 1, "unfair_tests": 2, **changes}


def make_answer_json(**changes: Any) -> str:
    """Return a valid answer as JSON text."""
    return json.dumps(make_answer(**changes))


def make_test_answers(number: int, **changes: Any) -> list[dict[str, Any]]:
    """Return the tests of a valid answer, one of them changed."""
    return [test | changes if test["number"] == number else test for test in make_answer()["tests"]]
