"""Edits of the gold tree on which submitted tests are run."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from backends.git import GitRepository
from backends.index import ScratchIndex
from derivers.test_writing.oracle_builder import select_edits
from evaluation.edits.drafts import EditDraft, draft_faults, draft_mutants, draft_variants
from evaluation.edits.fixed_files import FixedFile, list_fix_spans, read_fixed_files
from evaluation.edits.whitespace import respace
from guest.scoring.submitted_tests import OMITTED_HUNK, REWRITTEN_FAULT
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


def run_module(text: str) -> tuple[object, ...]:
    """Return results of the module's functions."""
    module: dict[str, Any] = {"__file__": "clip.py", "__name__": "clip"}
    exec(compile(text, "clip.py", "exec", dont_inherit=True), module)  # noqa: S102 - our own
    return module["clip"](11, 0, 9), module["name"]("x/a.tar.gz"), module["__doc__"]


class SingleFileFix:
    """A fix of one file in a real repository."""

    def __init__(self, folder: Path) -> None:
        self.repo = TinyRepo(folder)
        self.base = self.repo.commit("Start", {"pkg/clip.py": BEFORE, "README.md": "# clip\n"})
        self.repo.commit("Fix", {"pkg/clip.py": AFTER, "README.md": "# Clip\n"})
        self.git = GitRepository(folder)
        self.gold = self.git.run_git("diff-tree", "-p", "--binary", self.base, "HEAD")
        with ScratchIndex(self.git, self.base) as index:
            self.files = read_fixed_files(index, ["pkg/clip.py", "README.md"], self.gold)

    def with_edit(self, draft: EditDraft) -> str:
        """Return the file after the fix and an edit, applied by git."""
        with ScratchIndex(self.git, self.base) as index:
            index.apply(self.gold + draft.patch)
            return (index.read_file("pkg/clip.py") or b"").decode()


@pytest.fixture
def change(tmp_path: Path) -> SingleFileFix:
    return SingleFileFix(tmp_path / "repo")


def test_only_source_files_and_the_lines_of_the_fix_are_used(change: SingleFileFix) -> None:
    assert [file.path for file in change.files] == ["pkg/clip.py"]
    assert [(span.first_line, span.last_line) for span in list_fix_spans(change.files)] == [(10, 11), (16, 16)]
    assert change.files[0].lines == [10, 11, 16]


def test_each_hunk_is_omitted_in_turn_and_other_mutants_follow(change: SingleFileFix) -> None:
    drafts = draft_mutants(change.files, 10)
    texts = [change.with_edit(draft) for draft in drafts]
    left_out = [text for draft, text in zip(drafts, texts, strict=True) if draft.operator == OMITTED_HUNK]
    assert ["value > high" in text for text in left_out] == [False, True]
    assert ["rsplit" in text for text in left_out] == [True, False]
    assert 5 <= len(drafts) <= 10
    assert len({ast.dump(ast.parse(text)) for text in [AFTER, *texts]}) == len(texts) + 1


def test_a_fix_of_one_line_is_mutated_near_it_too() -> None:
    before = "def f(a, b):\n    a += 1\n    c = a\n    if b > 2:\n        c = c - b\n    return c\n"
    fixed_file = FixedFile(path="f.py", before=before.encode(), after=before.replace("c = a\n", "c = b\n").encode())
    drafts = draft_mutants([fixed_file], 8)
    assert len(drafts) == 8
    assert drafts[0].line == 3
    assert {draft.line for draft in drafts} > {3, 4}


def test_variants_differ_and_the_encoded_one_behaves_the_same(change: SingleFileFix) -> None:
    drafts = draft_variants(change.files, 4)
    texts = [change.with_edit(draft) for draft in drafts]
    assert len({AFTER, *texts}) == len(texts) + 1
    assert "rsplit" not in texts[0]
    assert run_module(texts[0]) == run_module(AFTER) == (9, "a.tar", "Clips.")
    assert ast.dump(ast.parse(texts[1])) == ast.dump(ast.parse(AFTER))
    assert "rsplit('.', 1)" not in texts[1]


def test_the_fault_is_restored_in_another_form(change: SingleFileFix) -> None:
    drafts = draft_faults(change.files, 3)
    assert {draft.operator for draft in drafts} == {REWRITTEN_FAULT}
    assert len(drafts) == 3
    for draft in drafts:
        text = change.with_edit(draft)
        assert run_module(text) == (11, "a", "Clips.")
        assert "value > high" not in text.replace(" ", "  ")
        assert "split('.')" not in text
        assert "rsplit" not in text


def test_a_fix_that_only_removes_lines_is_mutated_near_them(tmp_path: Path) -> None:
    text = "def f(a):\n    a = a + 1\n    a = a + 2\n    return a\n"
    fixed_file = FixedFile(path="f.py", before=text.encode(), after=text.replace("    a = a + 2\n", "").encode())
    assert fixed_file.lines == [2, 3]
    assert list_fix_spans([fixed_file]) == []
    assert draft_mutants([fixed_file], 5)


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
def test_respacing_python_keeps_the_syntax_tree(source: str) -> None:
    after = respace("a.py", source.encode())
    assert after is not None
    assert after != source.encode()
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(source))
    assert after.count(b"\n") == source.count("\n")


@pytest.mark.parametrize("source", [b"def f(:\n", b"\xff", b"x = 1\n", b"", b"x\0"])
def test_invalid_or_unchangeable_files_are_not_respaced(source: bytes) -> None:
    assert respace("a.py", source) is None


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
def test_respacing_other_languages_keeps_strings(path: str, source: str, wanted: str) -> None:
    after = respace(path, source.encode())
    assert after is not None
    assert wanted in after.decode()


@pytest.mark.parametrize(
    ("kept", "limit", "chosen", "runs"),
    [("11111", 3, "012", "012"), ("10101", 3, "024", "01234"), ("01000", 2, "1", "01234"), ("0110", 1, "1", "01")],
)
def test_no_edit_is_run_once_enough_are_kept(kept: str, limit: int, chosen: str, runs: str) -> None:
    drafts = [
        EditDraft(operator="", path="a.py", line=at, last_line=at, detail="", patch=b"%d" % at)
        for at in range(len(kept))
    ]
    ran: list[bytes] = []

    def run(patches: list[bytes]) -> list[bytes]:
        ran.extend(patches)
        return patches

    edits = select_edits(drafts, limit, run, lambda patch: kept[int(patch)] == "1")
    assert "".join(str(draft.line) for draft in edits) == chosen
    assert b"".join(ran).decode() == runs
