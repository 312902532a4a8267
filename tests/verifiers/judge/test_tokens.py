"""Tokens of program texts in any language; valid and broken patches."""

from __future__ import annotations

import pytest

from verifiers.judge.diffs import parse_patch
from verifiers.judge.tokens import tokenize

CASES = {
    "a.py": ("x = f'it\\'s {n}' + r\"\\d\"  # a 'comment'", ["x", "n0"], ["it\\'s {n}", "\\d"]),
    "a.js": ('expect(a.b).toBe(`two\nlines`); // it\'s "no" string', ["expect", "a", "b", "toBe"], ["two\nlines"]),
    "a.go": ('s := `raw "s"` + "x\\"y" /* \'c\' */', ["s"], ['raw "s"', 'x\\"y']),
    "a.rs": ("fn f<'a>(s: &'a str) { r#\"a \"b\" c\"#; 'x' }", ["fn", "f", "a", "s", "a", "str"], ['a "b" c', "x"]),
    "a.cpp": ('auto s = R"(a "b")"; // no', ["auto", "s"], ['a "b"']),
    "A.java": ('String s = """\n  two "x"\n  """ + "y";', ["String", "s"], ['\n  two "x"\n  ', "y"]),
    "a.rb": ("raise Oops, 'no # comment' # comment", ["raise", "Oops"], ["no # comment"]),
    "a.php": ("$x = 'a // b'; # c\n// d\n", ["x"], ["a // b"]),
}


@pytest.mark.parametrize("path", CASES)
def test_names_and_strings_are_separated_from_comments_in_every_language(path: str) -> None:
    text, names, strings = CASES[path]
    tokens = tokenize(text, path)
    assert [token.text for token in tokens if token.category == "name"] == [name for name in names if name != "n0"]
    assert [token.text for token in tokens if token.category == "string"] == strings


def test_numbers_keep_their_digits() -> None:
    tokens = tokenize("assert f(0x1F, 3.25, 1_000, 2e-3) == a1", "a.py")
    assert [token.text for token in tokens if token.category == "number"] == ["0x1F", "3.25", "1_000", "2e-3"]


def test_an_open_string_ends_with_its_line_or_the_text() -> None:
    assert [t.text for t in tokenize("don't\nx", "notes.py") if t.category == "name"] == ["don", "x"]
    assert [t.text for t in tokenize('"""begins\nand goes on', "a.py") if t.category == "string"] == [
        "begins\nand goes on"
    ]


def test_tokens_have_line_numbers() -> None:
    tokens = tokenize("a\n'''x\ny'''\nb", "a.py")
    assert [(token.text, token.line) for token in tokens] == [("a", 0), ("x\ny", 1), ("b", 3)]


PATCH = """\
diff --git a/old.py b/new.py
similarity index 90%
rename from old.py
rename to new.py
--- a/old.py
+++ b/new.py
@@ -1,3 +1,3 @@ def f():
 a
--- b
+++ b
 c
diff --git a/made.py b/made.py
new file mode 100644
--- /dev/null
+++ b/made.py
@@ -0,0 +1 @@
+x
\\ No newline at end of file
"""


def test_a_patch_is_read_by_its_counts() -> None:
    renamed, made = parse_patch(PATCH)
    assert (renamed.path, renamed.is_new, renamed.hunks[0].heading) == ("new.py", False, "def f():")
    assert (renamed.get_lines("+"), renamed.get_lines("-"), renamed.get_lines(" ")) == (["++ b"], ["-- b"], ["a", "c"])
    assert (made.path, made.is_new, made.get_lines("+")) == ("made.py", True, ["x"])


@pytest.mark.parametrize("text", ["", "no patch", PATCH[:130], "diff --git a/x b/x\n@@ -1,9 +1,9 @@\n+a"])
def test_a_broken_patch_is_parsed_as_far_as_possible(text: str) -> None:
    assert len(parse_patch(text)) <= 1
