"""Names, strings and numbers of any language; patches whole and broken."""

from __future__ import annotations

import pytest

from verifiers.judge.diffs import files_of
from verifiers.judge.tokens import tokens_of

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
def test_names_and_strings_are_told_from_comments_in_every_language(path: str) -> None:
    text, names, strings = CASES[path]
    found = tokens_of(text, path)
    assert [token.text for token in found if token.sort == "name"] == [name for name in names if name != "n0"]
    assert [token.text for token in found if token.sort == "string"] == strings


def test_numbers_keep_their_digits() -> None:
    found = tokens_of("assert f(0x1F, 3.25, 1_000, 2e-3) == a1", "a.py")
    assert [token.text for token in found if token.sort == "number"] == ["0x1F", "3.25", "1_000", "2e-3"]


def test_what_is_left_open_ends_with_its_line_or_the_text() -> None:
    assert [t.text for t in tokens_of("don't\nx", "notes.py") if t.sort == "name"] == ["don", "x"]
    assert [t.text for t in tokens_of('"""begins\nand goes on', "a.py") if t.sort == "string"] == [
        "begins\nand goes on"
    ]


def test_tokens_know_their_lines() -> None:
    found = tokens_of("a\n'''x\ny'''\nb", "a.py")
    assert [(token.text, token.line) for token in found] == [("a", 0), ("x\ny", 1), ("b", 3)]


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
    renamed, made = files_of(PATCH)
    assert (renamed.path, renamed.is_new, renamed.hunks[0].heading) == ("new.py", False, "def f():")
    assert (renamed.side("+"), renamed.side("-"), renamed.side(" ")) == (["++ b"], ["-- b"], ["a", "c"])
    assert (made.path, made.is_new, made.side("+")) == ("made.py", True, ["x"])


@pytest.mark.parametrize("text", ["", "no patch", PATCH[:130], "diff --git a/x b/x\n@@ -1,9 +1,9 @@\n+a"])
def test_a_broken_patch_is_read_as_far_as_it_goes(text: str) -> None:
    assert len(files_of(text)) <= 1
