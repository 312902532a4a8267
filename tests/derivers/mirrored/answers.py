"""Changes of other projects, and answers of a model that mirrors them in the project `cart`, good and bad."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taskdb.records import Candidate
from tests import records
from tests.backends.llm.server import ScriptedAnswer

STATEMENT = """Receipts that are one sign too wide are not cut

`receipt("abcde", 4)` of till prints all five signs, it should print `abcd`: a line is never wider than the printer.
"""
GOLD = b"""diff --git a/till/receipt.py b/till/receipt.py
--- a/till/receipt.py
+++ b/till/receipt.py
@@ -4,4 +4,4 @@ def receipt(line, columns):
     \"\"\"The line as the printer gets it.\"\"\"
-    if len(line) - 1 > columns:
+    if len(line) > columns:
         return line[:columns]
     return line
"""
TESTS = b"""diff --git a/tests/test_receipt.py b/tests/test_receipt.py
--- a/tests/test_receipt.py
+++ b/tests/test_receipt.py
@@ -3,0 +4,3 @@
+
+def test_one_sign_too_wide():
+    assert receipt("abcde", 4) == "abcd"
"""
RIGHT = "    if len(text) > width:\n"
TITLE = "Labels that are one character too long are not cut"
TEXT = """`label("abcde", 4)` returns all five characters. A label is never longer than its width, so this should be
`abcd`. With two characters too many it works: `label("abcdef", 4)` is `abcd`."""
TEST = """from cart.label import label


def test_one_character_too_long_is_cut():
    assert label("abcde", 4) == "abcd"
    assert label("ab", 1) == "a"


def test_labels_that_fit_stay():
    assert label("abcd", 4) == "abcd"
    assert label("abc", 4) == "abc "
"""
GOOD: dict[str, Any] = {
    "edits": [{"path": "cart/label.py", "search": RIGHT, "replace": "    if len(text) > width + 1:\n"}],
    "title": TITLE,
    "text": TEXT,
    "files": [{"path": "tests/test_label_width.py", "content": TEST}],
}


def edit(search: str = RIGHT, replace: str = "    if len(text) >= width + 2:\n", path: str = "cart/label.py") -> Any:
    """Return fields of an answer with another bug."""
    return {"edits": [{"path": path, "search": search, "replace": replace}]}


def write_test(body: str, path: str = "tests/test_label_width.py") -> Any:
    """Return fields of an answer with another test."""
    content = f"from cart.label import label\n\n\ndef test_it():\n    {body}\n"
    return {"files": [{"path": path, "content": content}]}


UNREAD: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "no counterpart": ("no-counterpart", {"edits": [], "title": "", "text": "", "files": []}),
    "a text that does not occur": ("bug-does-not-apply", edit(search="    if len(label) > width:\n")),
    "a text that occurs twice": ("bug-does-not-apply", edit(search="width")),
    "a test": ("bug-outside-source", edit(path="tests/test_label.py")),
    "a file that does not exist": ("bug-outside-source", edit(path="cart/labels.py")),
    "a path above the root": ("bug-outside-source", edit(path="../cart/label.py")),
    "a syntax error": ("bug-does-not-parse", edit(replace="    if len(text) > (width:\n")),
    "a comment": ("bug-does-nothing", edit(replace=f"    # cut\n{RIGHT}")),
    "no test": ("tests-outside-tests", {"files": []}),
    "a test that exists": ("tests-outside-tests", write_test("assert label('a', 1)", path="tests/test_label.py")),
    "a test outside of tests": ("tests-outside-tests", write_test("assert label('a', 1)", path="cart/width.py")),
    "a test that asserts nothing": ("tests-assert-nothing", write_test("assert True")),
    "a test that reads the source": (
        "tests-read-source",
        write_test("label('a', 1)\n    assert 'width + 1' not in open('cart/label.py').read()"),
    ),
    "a short statement": ("statement-length", {"text": "Labels are too long."}),
    "no title": ("statement-length", {"title": " "}),
    "a line of the fix": ("statement-leaks", {"text": f"{TEXT}\nIt was `if len(text) > width:` before."}),
    "a line of the bug": ("statement-leaks", {"text": f"{TEXT}\nSee `if len(text) >  width + 1:` there."}),
    "the other project": ("names-other-project", {"text": f"{TEXT}\nIt is as in eve/till."}),
    "the other project's name": ("names-other-project", {"text": f"{TEXT}\nThe same was wrong in Till."}),
}
"""What is wrong -> the reason, and the fields of the answer that differ: faults that are seen without a run."""
FAILED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "tests pass with the bug": ("tests-pass-with-bug", write_test("assert label('abc', 4) == 'abc '")),
    "tests fail without the bug": ("tests-fail-without-bug", write_test("assert label('abcde', 4) == 'abcde'")),
    "everything is broken": (
        "all-tests-fail",
        edit("def label(text, width):\n", "def label(text, width, more):\n")
        | {
            "edits": [
                {
                    "path": "cart/label.py",
                    "search": "def label(text, width):\n",
                    "replace": "def label(text, width, more):\n",
                },
                {"path": "cart/cart.py", "search": "    result = 0\n", "replace": "    result = None\n"},
                {"path": "cart/cart.py", "search": "    return result - discount\n", "replace": "    return None\n"},
            ]
        },
    ),
    "a module is missing": ("build-breaks", edit('"""Labels."""\n', '"""Labels."""\n\nimport no_such_module\n')),
    "tests never end": (
        "times-out",
        edit(replace="    while len(text) > width:\n        pass\n    if len(text) > width:\n"),
    ),
}
"""The same, of faults that runs in the base tree show."""


def make_donor(artifacts: Any, number: int = 7, *, topic: str = "", **fields: Any) -> Candidate:
    """Return a change of the project eve/till; `topic` is appended to its title."""
    pull = records.make_pull_request(number, source="git:till", repo="eve/till", name=f"eve__till-{number}")
    title, _, text = STATEMENT.partition("\n")
    patches = {"gold_patch": artifacts.put(GOLD), "test_patch": artifacts.put(TESTS)}
    statement = f"{title}{f' ({topic})' if topic else ''}\n{text}"
    files = {"gold_files": ("till/receipt.py",), "test_files": ("tests/test_receipt.py",)}
    return records.make_candidate(pull, problem_statement=statement, **patches, **files, **fields)


def answer(**fields: Any) -> ScriptedAnswer:
    """Return the good answer with other fields."""
    return ScriptedAnswer(text=json.dumps(GOOD | fields))
