"""What tests of a fix are tried on: patches that git takes, of programs that still are some."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from backends.git import Repository
from backends.index import ScratchIndex
from backends.testing.written import FAULT, LEFT_OUT
from derivers.test_writing.edits import Draft, Fixed, fault_again, fixed_files, otherwise, spans, wrong
from derivers.test_writing.respaced import respaced
from tests.helpers import TinyRepo

BEFORE = """\
'Clips.'
from __future__ import annotations

import os


def clip(value, low, high):
    if value < low:
        return low
    return value


def name(path):
    return os.path.basename(path).split('.')[0]
"""
AFTER = BEFORE.replace("    return value\n", "    if value > high:\n        return high\n    return value\n").replace(
    "split('.')[0]", "rsplit('.', 1)[0]"
)


def ran(text: str) -> tuple[object, ...]:
    """What the module of a text does."""
    module: dict[str, Any] = {"__file__": "clip.py", "__name__": "clip"}
    exec(compile(text, "clip.py", "exec", dont_inherit=True), module)  # noqa: S102 - our own
    return module["clip"](11, 0, 9), module["name"]("x/a.tar.gz"), module["__doc__"]


class Change:
    """A fix of one file in a real repository."""

    def __init__(self, folder: Path) -> None:
        self.repo = TinyRepo(folder)
        self.base = self.repo.commit("Start", {"pkg/clip.py": BEFORE, "README.md": "# clip\n"})
        self.repo.commit("Mend", {"pkg/clip.py": AFTER, "README.md": "# Clip\n"})
        self.git = Repository(folder)
        self.gold = self.git.git("diff-tree", "-p", "--binary", self.base, "HEAD")
        with ScratchIndex(self.git, self.base) as index:
            self.files = fixed_files(index, ["pkg/clip.py", "README.md"], self.gold)

    def with_edit(self, draft: Draft) -> str:
        """The file after the fix and an edit, by git."""
        with ScratchIndex(self.git, self.base) as index:
            index.apply(self.gold + draft.patch)
            return (index.read("pkg/clip.py") or b"").decode()


@pytest.fixture
def change(tmp_path: Path) -> Change:
    return Change(tmp_path / "repo")


def test_only_sources_count_and_their_lines_are_those_the_fix_added(change: Change) -> None:
    assert [one.path for one in change.files] == ["pkg/clip.py"]
    assert [(span.first_line, span.last_line) for span in spans(change.files)] == [(10, 11), (16, 16)]
    assert change.files[0].lines == [10, 11, 16]


def test_each_hunk_is_left_out_in_turn_and_the_rest_has_one_thing_wrong(change: Change) -> None:
    drafts = wrong(change.files, 10)
    texts = [change.with_edit(draft) for draft in drafts]
    left_out = [text for draft, text in zip(drafts, texts, strict=True) if draft.operator == LEFT_OUT]
    assert ["value > high" in text for text in left_out] == [False, True]
    assert ["rsplit" in text for text in left_out] == [True, False]
    assert 5 <= len(drafts) <= 10
    assert len({ast.dump(ast.parse(text)) for text in [AFTER, *texts]}) == len(texts) + 1


def test_a_fix_of_one_line_is_made_wrong_beside_it_too() -> None:
    before = "def f(a, b):\n    a += 1\n    c = a\n    if b > 2:\n        c = c - b\n    return c\n"
    one = Fixed(path="f.py", before=before.encode(), after=before.replace("c = a\n", "c = b\n").encode())
    drafts = wrong([one], 8)
    assert len(drafts) == 8
    assert drafts[0].line == 3
    assert {draft.line for draft in drafts} > {3, 4}


def test_variants_are_other_texts_of_which_the_first_is_the_same_program(change: Change) -> None:
    drafts = otherwise(change.files, 4)
    texts = [change.with_edit(draft) for draft in drafts]
    assert len({AFTER, *texts}) == len(texts) + 1
    assert "rsplit" not in texts[0]
    assert ran(texts[0]) == ran(AFTER) == (9, "a.tar", "Clips.")
    assert ast.dump(ast.parse(texts[1])) == ast.dump(ast.parse(AFTER))
    assert "rsplit('.', 1)" not in texts[1]


def test_the_fault_comes_back_in_other_words(change: Change) -> None:
    drafts = fault_again(change.files, 3)
    assert {draft.operator for draft in drafts} == {FAULT}
    assert len(drafts) == 3
    for draft in drafts:
        text = change.with_edit(draft)
        assert ran(text) == (11, "a", "Clips.")
        assert "value > high" not in text.replace(" ", "  ")
        assert "split('.')" not in text
        assert "rsplit" not in text


def test_a_fix_that_only_takes_away_is_made_wrong_beside_what_it_took(tmp_path: Path) -> None:
    text = "def f(a):\n    a = a + 1\n    a = a + 2\n    return a\n"
    one = Fixed(path="f.py", before=text.encode(), after=text.replace("    a = a + 2\n", "").encode())
    assert one.lines == [2, 3]
    assert spans([one]) == []
    assert wrong([one], 5)


@pytest.mark.parametrize(
    "source",
    [
        "x = f(a.b, 'c(d)')[1:2]  # e(f)\n",
        "@a.b(c)\ndef f(*args, k=1, **kw) -> list[int]: return lambda: -args[0]\n",
        'f"{a.b!r:>{w}}" + "x" "y"\nx = (1,\n     2)\n',
        "if (n := 10) > 5:\n\tprint(n, end='')\n",
        "é = 'ü'.encode()\r\ny = é[0]\r\n",
    ],
)
def test_other_white_space_is_the_same_program(source: str) -> None:
    after = respaced("a.py", source.encode())
    assert after is not None
    assert after != source.encode()
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(source))
    assert after.count(b"\n") == source.count("\n")


@pytest.mark.parametrize("source", [b"def f(:\n", b"\xff", b"x = 1\n", b"", b"x\0"])
def test_what_cannot_be_spaced_otherwise_is_left_alone(source: bytes) -> None:
    assert respaced("a.py", source) is None


@pytest.mark.parametrize(
    ("path", "source", "wanted"),
    [
        ("a.go", 'package a\n\nfunc f(x []int) int { return g(x[0], "a.b(c)") }\n', 'g ( x [ 0 ] , "a.b(c)" ) '),
        (
            "a.js",
            "const f = (a) => a.b(`x(${a.c})`, /a.b(c)/, 'd.e');\n",
            "a . b ( `x(${a . c})` , /a.b(c)/ , 'd.e' ) ",
        ),
        ("a.ts", "function f(a: number[]): string { return a.map(g).join('.'); }\n", "a . map ( g ) . join ( '.' ) "),
        ("A.java", 'class A { int f(int a) { return this.g(a, "a.b"); } }\n', 'this . g ( a , "a.b" ) '),
    ],
)
def test_other_languages_have_blanks_beside_their_signs_and_none_in_their_texts(
    path: str, source: str, wanted: str
) -> None:
    after = respaced(path, source.encode())
    assert after is not None
    assert wanted in after.decode()
