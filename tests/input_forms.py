"""Forms of files of predictions, and of test lists in rows of task sets: a case per form, and the tables of the pages.

An example is a template: ID is a task's name, OTHER another one's, PATCH and TEST are the content.
"""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

PATCH = 'diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+"b"\n'
TESTS = ("tests/test_a.py::test_a", 'tests/test_a.py::test_b[it\'s "b"]')


class PredictionForm(NamedTuple):
    """Form of a file. `expected`: (task, patch) of each row; a text for the problem that refuses it."""

    name: str
    example: str
    expected: tuple[tuple[str, bytes | None], ...] | str = (("ID", PATCH.encode()), ("OTHER", None))
    encode: Callable[[str], bytes] = str.encode

    @property
    def content(self) -> bytes:
        """Content of a file of the form."""
        return self.encode(self.example.replace("PATCH", json.dumps(PATCH)))


ROW, OTHER_ROW = '{"instance_id": "ID", "model_patch": PATCH}', '{"instance_id": "OTHER", "model_patch": ""}'
ONE = (("ID", PATCH.encode()),)
NOTHING = (("ID", None),)
NEEDS_ONE = "it needs exactly one of model_patch, patch, tests, review and rollout"
OTHER_KEY = "its key is 'OTHER', but it has another instance_id"
HOLDS_NULL = "field FAIL_TO_PASS is not a list of texts: it holds null"
NO_LIST = "field FAIL_TO_PASS is neither JSON nor a list in Python's spelling"
PREDICTION_FORMS = (
    PredictionForm("JSON lines", f"{ROW}\n{OTHER_ROW}\n"),
    PredictionForm("the other names", '{"task": "ID", "patch": PATCH}\n{"task": "OTHER", "patch": ""}'),
    PredictionForm("list", f"[\n  {ROW},\n  {OTHER_ROW}\n]"),
    PredictionForm("list in a line", f"[{ROW}, {OTHER_ROW}]\n"),
    PredictionForm(
        "rows by instance id",
        f'{{\n  "ID": {{\n    {ROW[1:-1]}\n  }},\n  "OTHER": {{\n    {OTHER_ROW[1:-1]}\n  }}\n}}\n',
    ),
    PredictionForm("rows by instance id, in a line", f'{{"ID": {ROW}, "OTHER": {OTHER_ROW}}}'),
    PredictionForm("rows without their name", '{"ID": {"model_patch": PATCH}, "OTHER": {"patch": null}}'),
    PredictionForm("rows by instance id, a row per line", f'{{"ID": {ROW}}}\n{{"OTHER": {OTHER_ROW}}}\n'),
    PredictionForm("patches by instance id", '{"ID": PATCH, "OTHER": ""}'),
    PredictionForm("null by instance id", '{"ID": PATCH, "OTHER": null}'),
    PredictionForm("row over several lines", '{\n  "instance_id": "ID",\n  "model_patch": PATCH\n}\n', ONE),
    PredictionForm(
        "rows over several lines",
        '{\n  "instance_id": "ID",\n  "model_patch": PATCH\n}\n{\n  "instance_id": "OTHER",\n  "model_patch": ""\n}\n',
    ),
    PredictionForm("empty patch", '{"instance_id": "ID", "model_patch": ""}', NOTHING),
    PredictionForm("null as the patch", '{"instance_id": "ID", "model_patch": null}', NOTHING),
    PredictionForm("both names of a field", '{"instance_id": "ID", "model_patch": null, "patch": PATCH}', ONE),
    PredictionForm("byte order mark", ROW, ONE, lambda text: codecs.BOM_UTF8 + text.encode()),
    PredictionForm(
        "UTF-16 and UTF-32 with a byte order mark",
        f"[\n{ROW},\n{OTHER_ROW}]",
        encode=lambda text: text.encode("utf-16"),
    ),
    PredictionForm("gzip", f"{ROW}\n{OTHER_ROW}\n", encode=lambda text: gzip.compress(text.encode())),
    PredictionForm("no patch", '{"instance_id": "ID"}', NEEDS_ONE),
    PredictionForm("two patches", '{"instance_id": "ID", "model_patch": PATCH, "patch": ""}', NEEDS_ONE),
    PredictionForm("no name", '{"model_patch": PATCH}', "it has no text instance_id or task"),
    PredictionForm("patch that is no text", '{"ID": {"model_patch": 7}}', "the patch is not a text"),
    PredictionForm(
        "another name than the key", f'{{"OTHER": {ROW}}}', "its key is 'OTHER', but it has another instance_id"
    ),
    PredictionForm("value that is neither row nor patch", '{"ID": 7}', "the value of 'ID' is not a JSON object"),
    PredictionForm("list of lists", '[["ID", PATCH]]', "it is not a JSON object"),
    PredictionForm("empty list", "[]\n", "it is an empty list"),
    PredictionForm("cut off", '{\n  "ID": {\n    "instance_id": "ID",\n    "model_patch": "di', "it is not JSON"),
    PredictionForm("not JSON", "ID: PATCH", "it is not JSON"),
)


class ListForm(NamedTuple):
    """Form of a list of tests in a row. `expected`: the tests; a text for the problem that refuses the row."""

    name: str
    example: str
    """Fields of a row, each followed by a comma; TESTS is the list of the tests."""
    expected: tuple[str, ...] | str = TESTS

    @property
    def fields(self) -> str:
        """The fields as they stand in a row."""
        texts = {
            "PYTHON": json.dumps(repr(list(TESTS))),
            "TUPLE": json.dumps(repr(TESTS)),
            "TWICE": json.dumps(json.dumps(json.dumps(TESTS))),
            "TEXT": json.dumps(json.dumps(TESTS)),
            "TESTS": json.dumps(TESTS),
        }
        fields = self.example
        for word, text in texts.items():
            fields = fields.replace(word, text)
        return fields


LIST_FORMS = (
    ListForm("list", '"FAIL_TO_PASS": TESTS'),
    ListForm("JSON as text", '"FAIL_TO_PASS": TEXT'),
    ListForm("the same, twice", '"FAIL_TO_PASS": TWICE'),
    ListForm("Python's spelling", '"FAIL_TO_PASS": PYTHON'),
    ListForm("a tuple of Python", '"FAIL_TO_PASS": TUPLE'),
    ListForm("lower-case name", '"fail_to_pass": PYTHON'),
    ListForm("short name", '"f2p": TEXT'),
    ListForm("two names, one of them null", '"FAIL_TO_PASS": null, "fail_to_pass": TESTS'),
    ListForm("null", '"FAIL_TO_PASS": null', ()),
    ListForm("NaN", '"FAIL_TO_PASS": NaN', ()),
    ListForm("empty text", '"FAIL_TO_PASS": ""', ()),
    ListForm("null as text", '"FAIL_TO_PASS": "null"', ()),
    ListForm("None as text", '"FAIL_TO_PASS": "None"', ()),
    ListForm("empty list as text", '"FAIL_TO_PASS": "[]"', ()),
    ListForm("absent", '"other": 1', ()),
    ListForm("number", '"FAIL_TO_PASS": 3', "field FAIL_TO_PASS is not a list of tests, but a number"),
    ListForm("object", '"FAIL_TO_PASS": {"a": 1}', "field FAIL_TO_PASS is not a list of tests, but an object"),
    ListForm("other text", '"FAIL_TO_PASS": "t.py::a"', NO_LIST),
    ListForm("expression", '"FAIL_TO_PASS": "list(\'a\')"', NO_LIST),
    ListForm("array of NumPy", "\"FAIL_TO_PASS\": \"['a' 'b']\"", "field FAIL_TO_PASS lacks a comma between two texts"),
    ListForm("null in a list", '"FAIL_TO_PASS": ["a", null]', HOLDS_NULL),
    ListForm("two lists", '"FAIL_TO_PASS": ["a"], "f2p": ["b"]', "fields FAIL_TO_PASS and f2p differ"),
)


def render_predictions() -> str:
    """Return the table of the forms of predictions."""
    return _render("file", ((form.name, form.example, form.expected) for form in PREDICTION_FORMS))


def render_lists() -> str:
    """Return the table of the forms of lists."""
    examples = ((form.name, form.example, form.expected) for form in LIST_FORMS)
    return _render("fields of a row", ((name, _show_words(text), expected) for name, text, expected in examples))


def _show_words(example: str) -> str:
    """Return an example with short lists in place of its words."""
    shown = {"PYTHON": "\"['A', 'B']\"", "TUPLE": "\"('A', 'B')\"", "TWICE": r'"\"[\\\"A\\\", ...]\""'}
    for word, text in {**shown, "TEXT": r'"[\"A\", \"B\"]"', "TESTS": '["A", "B"]'}.items():
        example = example.replace(word, text)
    return example


def _render(column: str, forms: Iterable[tuple[str, str, tuple[object, ...] | str]]) -> str:
    lines = [f"| form | {column} | read |", "|---|---|---|"]
    for name, example, expected in forms:
        shown = " ".join(example.split()).replace("|", r"\|")
        result = f"no: {expected}" if isinstance(expected, str) else "yes" if expected else "an empty list"
        lines.append(f"| {name} | `{shown}` | {result} |")
    return "\n".join(lines) + "\n"
