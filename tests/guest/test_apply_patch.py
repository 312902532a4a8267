"""Forms of honest patches, and patches that must not apply, on real trees of git."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from guest.harness import HARNESS_FOLDER, apply_patch

PROGRAM = HARNESS_FOLDER / "apply_patch.py"
NUMBERS = "".join(f"number_{n} = {n}\n" for n in range(1, 31))
BEFORE = {
    "setup.py": "name = 'sample'\n",
    "pkg/mod.py": NUMBERS,
    "pkg/blank.py": "first = 1\nsecond = 2\nthird = 3\n\n\n\nfourth = 4\nfifth = 5\n",
    "pkg/old.py": "gone = 1\n",
    "pkg/dos.py": NUMBERS.replace("\n", "\r\n"),
    "b/kept.py": "kept = 1\n",
    "pkg/cache.db": "\0\1\2" * 40,
    "pkg/naïve file.py": "first = 1\nsecond = 2\n",
}
CHANGED = NUMBERS.replace("number_3 = 3\n", "number_3 = 33\n").replace(
    "number_20 = 20\n", "number_20 = 20\nadded = 1\n"
)
CHANGED_TWICE = NUMBERS.replace("number_3 = 3\n", "number_3 = 33\n").replace("number_6 =", "added = 1\nnumber_6 =")
AFTER = {
    **{path: text for path, text in BEFORE.items() if path != "pkg/old.py"},
    "setup.py": "name = 'renamed'\n",
    "pkg/mod.py": CHANGED,
    "pkg/sub/new.py": "new = 1\n",
}
BLANK = {**BEFORE, "pkg/blank.py": BEFORE["pkg/blank.py"].replace("third = 3", "third = 33")}
DOS = {**BEFORE, "pkg/dos.py": CHANGED.replace("\n", "\r\n")}
NEW = {**BEFORE, "pkg/sub/new.py": "new = 1\n"}
INSERTED = {**BEFORE, "pkg/mod.py": NUMBERS.replace("number_9 = 9\n", "number_9 = 9\ninserted = 1\n")}
TREES = {
    "before": BEFORE,
    "after": AFTER,
    "blank": BLANK,
    "dos": DOS,
    "new": NEW,
    "inserted": INSERTED,
    "named": {**BEFORE, "pkg/naïve file.py": "first = 1\nsecond = 22\n"},
    "moved": {**{path: BEFORE[path] for path in BEFORE if path != "pkg/mod.py"}, "pkg/sub/moved.py": CHANGED},
    "two": {**BEFORE, "pkg/mod.py": CHANGED_TWICE},
    "binary": {**BEFORE, "pkg/data.bin": "\0\1\2" * 40},
    "with binaries": {**AFTER, "pkg/data.bin": "\0\1\2" * 50, "pkg/cache.db": "\0\1\3" * 40},
    "without a binary": {path: text for path, text in AFTER.items() if path != "pkg/cache.db"},
}
MAIL = (
    b"From 0123456789abcdef Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.org>\nSubject: [PATCH] Fix\n\n"
    b"- a list\n---\n"
)
SUMMARY = b" setup.py | 2 +-\n 1 file changed\n\n"
ZERO_COUNTS = (rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@", rb"@@ -\1,77 +\2,78 @@")


class Trees:
    """A repository with BEFORE, and the diffs to other trees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run(folder, "git", "init", "-q")
        run(folder, "git", "config", "core.autocrlf", "false")
        self.write(BEFORE)
        run(folder, "git", "add", "-A")
        run(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin")

    def write(self, files: Mapping[str, str]) -> None:
        """Make `files` the tree."""
        for path in self.read():
            (self.folder / path).unlink()
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(text.encode())

    def read(self) -> dict[str, str]:
        """Return the files of the tree."""
        names = [path for path in self.folder.rglob("*") if path.is_file()]
        paths = {path.relative_to(self.folder).as_posix(): path for path in names}
        return {path: file.read_bytes().decode() for path, file in paths.items() if not path.startswith(".git/")}

    def diff(self, tree: str, *options: str) -> bytes:
        """Return git's diff from BEFORE to a tree of TREES."""
        self.write(TREES[tree])
        run(self.folder, "git", "add", "-A")
        patch = run(self.folder, "git", "diff", "--cached", "--no-renames", *options)
        run(self.folder, "git", "reset", "-q", "--hard")
        return patch

    def diff_folders(self, tree: str, *options: str, old: str = "orig", new: str = "fixed", cwd: str = "") -> bytes:
        """Return what `diff -ruN` prints of two folders."""
        around = self.folder.parent / "around"
        for name, files in ((old, BEFORE), (new, TREES[tree])):
            for path, text in files.items():
                (around / name / path).parent.mkdir(parents=True, exist_ok=True)
                (around / name / path).write_bytes(text.encode())
        ran = subprocess.run(["diff", "-ru", *options, old, new], cwd=around / cwd, stdout=subprocess.PIPE, check=False)
        return ran.stdout


def run(folder: Path, *command: str) -> bytes:
    """Return the output of a command."""
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout


def drop_git_lines(patch: bytes) -> bytes:
    """Return a patch with `---` and `+++` lines as its only headers."""
    return re.sub(rb"(?m)^(diff --git|new file mode|deleted file mode|index) .*\n", b"", patch)


def drop_prefix_of(patch: bytes, path: bytes) -> bytes:
    """Return a patch in which one file has no prefix."""
    return patch.replace(b"a/" + path, path).replace(b"b/" + path, path)


def crlf(patch: bytes) -> bytes:
    """Return a text with CR LF."""
    return patch.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


KEPT = (
    b"diff --git a/b/kept.py b/b/kept.py\nnew file mode 100644\n"
    b"--- /dev/null\n+++ b/b/kept.py\n@@ -0,0 +1 @@\n+kept = 1\n"
)
ESCAPES = b"\x1b[32m+\x1b[m\x1b[32mnumber_3 = '\x1b[1m33\x1b[0m'\x1b[m\n"


def damage(old: bytes, new: bytes) -> Callable[[Trees], bytes]:
    """Return a function that makes a patch of two hunks in pkg/mod.py in which a text is replaced."""

    def make(trees: Trees) -> bytes:
        patch = trees.diff("after", "--", "pkg/mod.py")
        assert old in patch
        return patch.replace(old, new)

    return make


Form = tuple[str, Callable[[Trees], bytes], list[str]]
FORMS: Mapping[str, Form] = {
    "as git writes it": ("after", lambda t: t.diff("after"), []),
    "no last line feed": ("after", lambda t: t.diff("after").rstrip(b"\n"), [apply_patch.LAST_LINE_FEED]),
    "no last line feed, CR LF": (
        "after",
        lambda t: crlf(t.diff("after")).rstrip(b"\r\n"),
        [apply_patch.LAST_LINE_FEED, apply_patch.LINE_ENDS],
    ),
    "--no-prefix": ("after", lambda t: t.diff("after", "--no-prefix"), [apply_patch.PREFIXES]),
    "--no-prefix, only a new file": ("new", lambda t: t.diff("new", "--no-prefix"), [apply_patch.PREFIXES]),
    "mnemonic prefixes": ("after", lambda t: t.diff("after", "--src-prefix=i/", "--dst-prefix=w/"), []),
    "no prefix in one file": (
        "after",
        lambda t: drop_prefix_of(t.diff("after"), b"pkg/mod.py"),
        [apply_patch.PREFIXES],
    ),
    "no prefix in one line": (
        "after",
        lambda t: drop_git_lines(t.diff("after")).replace(b"+++ b/pkg/mod.py", b"+++ pkg/mod.py"),
        [apply_patch.PREFIXES],
    ),
    "no prefix and no line of git": (
        "after",
        lambda t: drop_git_lines(t.diff("after", "--no-prefix")),
        [apply_patch.PREFIXES],
    ),
    "-U0": ("after", lambda t: t.diff("after", "-U0"), [apply_patch.ZERO]),
    "-U0, only an insertion": ("inserted", lambda t: t.diff("inserted", "-U0"), [apply_patch.ZERO]),
    "-U0 --no-prefix": (
        "after",
        lambda t: t.diff("after", "-U0", "--no-prefix"),
        [apply_patch.PREFIXES, apply_patch.ZERO],
    ),
    "-U1": ("after", lambda t: t.diff("after", "-U1"), []),
    "in a fence": ("after", lambda t: b"Here it is:\n\n```diff\n" + t.diff("after") + b"```\n\nDone.\n", []),
    "in a fence, wrong counts": (
        "after",
        lambda t: b"```diff\n" + re.sub(*ZERO_COUNTS, t.diff("after")) + b"```\nDone.\n",
        [apply_patch.UNFENCE, apply_patch.UNWRAP, apply_patch.COUNTS],
    ),
    "in a fence, no blank lines at the end": (
        "blank",
        lambda t: b"```diff\n" + t.diff("blank").rstrip() + b"\n```\n",
        [apply_patch.UNFENCE, apply_patch.BLANKS],
    ),
    "a fence for each file": (
        "after",
        lambda t: re.sub(rb"(?m)^(?=diff --git)", b"```\nNext:\n```diff\n", t.diff("after")) + b"```",
        [],
    ),
    "a mail": ("after", lambda t: MAIL + SUMMARY + t.diff("after") + b"-- \n2.39.5\n\n", []),
    "a mail, no last line feed": ("after", lambda t: MAIL + SUMMARY + t.diff("after") + b"-- \n2.39.5", []),
    "a mail, wrong counts": (
        "after",
        lambda t: MAIL + SUMMARY + re.sub(*ZERO_COUNTS, t.diff("after")) + b"-- \n2.39.5\n\n",
        [apply_patch.UNWRAP, apply_patch.COUNTS],
    ),
    "CR LF": ("after", lambda t: crlf(t.diff("after")), [apply_patch.LINE_ENDS]),
    "CR LF and -U0": ("after", lambda t: crlf(t.diff("after", "-U0")), [apply_patch.LINE_ENDS, apply_patch.ZERO]),
    "CR LF without git's lines": (
        "after",
        lambda t: crlf(drop_git_lines(t.diff("after"))),
        [apply_patch.LINE_ENDS],
    ),
    "LF for files in CR LF": (
        "dos",
        lambda t: t.diff("dos").replace(b"\r\n", b"\n"),
        [apply_patch.LINE_ENDS],
    ),
    "files in CR LF": ("dos", lambda t: t.diff("dos"), []),
    "diff -ruN": ("after", lambda t: t.diff_folders("after", "-N"), []),
    "diff -ruN, no last line feed": (
        "after",
        lambda t: t.diff_folders("after", "-N").rstrip(b"\n"),
        [apply_patch.LAST_LINE_FEED],
    ),
    "diff -ruN, wrong counts": (
        "after",
        lambda t: re.sub(*ZERO_COUNTS, t.diff_folders("after", "-N")),
        [apply_patch.COUNTS],
    ),
    "diff -ruN, time stamps after spaces": (
        "after",
        lambda t: t.diff_folders("after", "-N").replace(b"\t", b"  "),
        [apply_patch.STAMPS],
    ),
    "diff -ruN from outside": (
        "after",
        lambda t: t.diff_folders("after", "-N", old="work/orig", new="work/fixed"),
        [apply_patch.PREFIXES],
    ),
    "from a repository around the tree": (
        "after",
        lambda t: re.sub(rb"(?m)(?<= )([ab])/", rb"\1/projects/tree/", t.diff("after")),
        [apply_patch.PREFIXES],
    ),
    "diff -u of one file": (
        "inserted",
        lambda t: (
            re.sub(rb"(?m)^diff -ru .*\n", b"", t.diff_folders("inserted"))
            .replace(b"orig/", b"")
            .replace(b"fixed/", b"")
        ),
        [apply_patch.PREFIXES],
    ),
    "diff -u of a file and its copy": (
        "inserted",
        lambda t: (
            b"".join(t.diff_folders("inserted").splitlines(keepends=True)[1:])
            .replace(b"orig/pkg/mod.py", b"pkg/mod.py.orig")
            .replace(b"fixed/", b"")
        ),
        [apply_patch.PREFIXES],
    ),
    "/dev/null without modes": (
        "after",
        lambda t: re.sub(rb"(?m)^(new|deleted) file mode .*\n|^index .*\n", b"", t.diff("after")),
        [apply_patch.MODES],
    ),
    "a new file without modes and /dev/null": (
        "new",
        lambda t: re.sub(rb"(?m)^new file mode .*\n|^index .*\n", b"", t.diff("new")).replace(
            b"--- /dev/null", b"--- a/pkg/sub/new.py"
        ),
        [apply_patch.MODES],
    ),
    "counts too large": ("after", lambda t: re.sub(*ZERO_COUNTS, t.diff("after")), [apply_patch.COUNTS]),
    "counts too small": (
        "after",
        lambda t: re.sub(rb"@@ -18,6 \+18,7 @@", b"@@ -18,4 +18,4 @@", t.diff("after")),
        [apply_patch.COUNTS],
    ),
    "counts too small, added lines not covered": (
        "two",
        lambda t: t.diff("two").replace(b"@@ -1,8 +1,9 @@", b"@@ -1,5 +1,5 @@"),
        [apply_patch.COUNTS],
    ),
    "counts too large, --no-prefix": (
        "after",
        lambda t: re.sub(*ZERO_COUNTS, t.diff("after", "--no-prefix")),
        [apply_patch.PREFIXES, apply_patch.COUNTS],
    ),
    "blank lines lost at the end": (
        "blank",
        lambda t: t.diff("blank").rstrip(),
        [apply_patch.LAST_LINE_FEED, apply_patch.BLANKS],
    ),
    "blank lines without their space": (
        "blank",
        lambda t: t.diff("blank").replace(b"\n \n", b"\n\n").replace(b"\n \n", b"\n\n"),
        [],
    ),
    "blank lines between hunks": (
        "after",
        lambda t: t.diff("after").replace(b"@@ -18", b"\n@@ -18"),
        [],
    ),
    "a byte order mark": ("after", lambda t: b"\xef\xbb\xbf" + t.diff("after"), [apply_patch.UNWRAP]),
    "a byte order mark before a new name": (
        "moved",
        lambda t: b"\xef\xbb\xbf" + t.diff("moved", "-M"),
        [apply_patch.UNWRAP],
    ),
    "quoted names, --no-prefix": ("named", lambda t: t.diff("named", "--no-prefix"), [apply_patch.PREFIXES]),
    "quoted names": ("named", lambda t: t.diff("named"), []),
    "renamed": ("moved", lambda t: t.diff("moved", "-M"), []),
    "renamed, --no-prefix": ("moved", lambda t: t.diff("moved", "-M", "--no-prefix"), [apply_patch.PREFIXES]),
    "binary": ("binary", lambda t: t.diff("binary", "--binary"), []),
    "binary, --no-prefix": ("binary", lambda t: t.diff("binary", "--binary", "--no-prefix"), [apply_patch.PREFIXES]),
    "a deleted binary, without its content": ("without a binary", lambda t: t.diff("without a binary"), []),
    "a deleted binary, names as the only headers": (
        "without a binary",
        lambda t: drop_git_lines(t.diff("without a binary")),
        [],
    ),
    "a deleted binary that is not there, without its content": (
        "after",
        lambda t: t.diff("without a binary").replace(b"pkg/cache.db", b"pkg/other.db"),
        [f"{apply_patch.ABSENT} (pkg/other.db)"],
    ),
    "new and changed binaries, without their content, --no-prefix": (
        "after",
        lambda t: t.diff("with binaries", "--no-prefix"),
        [apply_patch.PREFIXES, f"{apply_patch.NO_CONTENT} (pkg/cache.db, pkg/data.bin)"],
    ),
    "new and changed binaries, without their content, CR LF": (
        "after",
        lambda t: crlf(t.diff("with binaries")),
        [apply_patch.LINE_ENDS, f"{apply_patch.NO_CONTENT} (pkg/cache.db, pkg/data.bin)"],
    ),
    "a deleted binary, without its content, --no-prefix": (
        "without a binary",
        lambda t: t.diff("without a binary", "--no-prefix"),
        [apply_patch.PREFIXES],
    ),
    "new and changed binaries, without their content, in a fence": (
        "after",
        lambda t: b"```diff\n" + t.diff("with binaries") + b"```\n",
        [apply_patch.UNFENCE, f"{apply_patch.NO_CONTENT} (pkg/cache.db, pkg/data.bin)"],
    ),
    "a new file that is there already, CR LF": (
        "after",
        lambda t: crlf(KEPT + t.diff("after")),
        [apply_patch.LINE_ENDS, f"{apply_patch.PRESENT} (b/kept.py)"],
    ),
    "context without its first blank, CR LF": (
        "after",
        lambda t: crlf(t.diff("after").replace(b"\n number_4", b"\nnumber_4")),
        [apply_patch.MARKERS, apply_patch.LINE_ENDS],
    ),
    "context without its first blank, in a mail": (
        "after",
        lambda t: MAIL + SUMMARY + t.diff("after").replace(b"\n number_4", b"\nnumber_4") + b"-- \n2.39.5\n\n",
        [apply_patch.UNWRAP, apply_patch.MARKERS],
    ),
    "context without its first blank, in a fence, text at the end": (
        "after",
        lambda t: b"```diff\n" + t.diff("after").replace(b"\n number_4", b"\nnumber_4") + b"```\n\nDone:\n\n- one\n",
        [apply_patch.UNFENCE, apply_patch.UNWRAP, apply_patch.MARKERS],
    ),
    "new and changed binaries, without their content": (
        "after",
        lambda t: t.diff("with binaries"),
        [f"{apply_patch.NO_CONTENT} (pkg/cache.db, pkg/data.bin)"],
    ),
    "diff -ruN with binaries": (
        "after",
        lambda t: t.diff_folders("with binaries", "-N"),
        [f"{apply_patch.NO_CONTENT} (pkg/cache.db, pkg/data.bin)"],
    ),
    "a new file that is there already": (
        "after",
        lambda t: KEPT + t.diff("after"),
        [f"{apply_patch.PRESENT} (b/kept.py)"],
    ),
    "a new binary that is there already": (
        "after",
        lambda t: t.diff("without a binary", "-R", "--binary", "--", "pkg/cache.db") + t.diff("after"),
        [f"{apply_patch.PRESENT} (pkg/cache.db)"],
    ),
    "a new binary that is there already, without its content": (
        "after",
        lambda t: t.diff("without a binary", "-R", "--", "pkg/cache.db") + t.diff("after"),
        [f"{apply_patch.PRESENT} (pkg/cache.db)"],
    ),
    "nothing but a new file that is there already": (
        "before",
        lambda t: KEPT,
        [f"{apply_patch.PRESENT} (b/kept.py)"],
    ),
    "colours": ("after", lambda t: t.diff("after", "--color=always"), [apply_patch.COLOURS]),
    "colours, CR LF": (
        "after",
        lambda t: crlf(t.diff("after", "--color=always")),
        [apply_patch.COLOURS, apply_patch.LINE_ENDS],
    ),
    "colours of white space, files in CR LF": (
        "dos",
        lambda t: t.diff("dos", "--color=always", "--ws-error-highlight=all"),
        [apply_patch.COLOURS],
    ),
    "context without its first blank": (
        "after",
        lambda t: t.diff("after").replace(b"\n number_4", b"\nnumber_4"),
        [apply_patch.MARKERS],
    ),
    "all context without its first blank": (
        "after",
        lambda t: re.sub(rb"(?m)^ (?=\S)", b"", t.diff("after")),
        [apply_patch.MARKERS],
    ),
    "text and a list at the end": ("after", lambda t: t.diff("after") + b"\nWhat I did:\n- one\n- two\n", []),
    "in a fence, wrong counts, a list at the end": (
        "after",
        lambda t: b"```diff\n" + re.sub(*ZERO_COUNTS, t.diff("after")) + b"```\n\n- one\n- two\n",
        [apply_patch.UNFENCE, apply_patch.UNWRAP, apply_patch.COUNTS],
    ),
    "empty": ("before", lambda t: b"", []),
    "white space": ("before", lambda t: b"\n \n", []),
}


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    folder = tmp_path / "tree"
    folder.mkdir()
    return Trees(folder)


def apply(trees: Trees, patch: bytes, *options: str) -> tuple[int, str, list[str], list[str]]:
    """Run the program and return its exit code and output, and the repairs and paths that it recorded."""
    (trees.folder.parent / "submission.patch").write_bytes(patch)
    command = [sys.executable, "-I", "-S", str(PROGRAM), *options, "--record", "../record", "../submission.patch"]
    ran = subprocess.run(command, cwd=trees.folder, stdout=subprocess.PIPE, timeout=60, check=False)
    record = trees.folder.parent / "record"
    repairs = (record / "repairs").read_text().splitlines() if record.exists() else []
    touched = os.fsdecode((record / "touched").read_bytes()).split("\0")[:-1] if record.exists() else []
    return ran.returncode, ran.stdout.decode(), repairs, touched


@pytest.mark.parametrize("name", FORMS)
def test_honest_forms_apply_and_their_repairs_are_named(trees: Trees, name: str) -> None:
    tree, make, repairs = FORMS[name]
    code, output, recorded, touched = apply(trees, make(trees))
    assert code == 0, output
    assert trees.read() == TREES[tree]
    assert recorded == repairs
    assert output.strip() == (f"applied after: {', '.join(repairs)}" if repairs else "")
    assert touched == sorted(path for path in {*BEFORE, *TREES[tree]} if BEFORE.get(path) != TREES[tree].get(path))


REFUSED: Mapping[str, Callable[[Trees], bytes]] = {
    "garbage": lambda t: b"I changed the function as you asked.\n",
    "conflict": lambda t: t.diff("after").replace(b"-number_3 = 3\n", b"-number_3 = 4\n"),
    "conflict, no last line feed": lambda t: t.diff("after").replace(b"-number_3 = 3\n", b"-number_3 = 4\n")[:-1],
    "a missing file": lambda t: t.diff("inserted").replace(b"pkg/mod.py", b"pkg/none.py"),
    "a new file that exists": lambda t: t.diff("new").replace(b"pkg/sub/new.py", b"pkg/mod.py"),
    "..": lambda t: t.diff("new").replace(b"pkg/sub/new.py", b"../new.py"),
    ".., no prefix": lambda t: drop_git_lines(t.diff("new", "--no-prefix")).replace(b"pkg/sub/new.py", b"../new.py"),
    ".. after stripping": lambda t: t.diff("new", "--no-prefix").replace(b"pkg/sub/new.py", b"pkg/../../new.py"),
    "absolute": lambda t: drop_git_lines(t.diff("new")).replace(b"b/pkg/sub/new.py", b"/tmp/new.py"),
    "absolute, after a prefix": lambda t: t.diff("new").replace(b"pkg/sub/new.py", b"/tmp/new.py"),
    "absolute, of the tree": lambda t: (
        drop_git_lines(t.diff("inserted"))
        .replace(b"a/pkg", str(t.folder).encode() + b"/pkg")
        .replace(b"b/pkg", str(t.folder).encode() + b"/pkg")
    ),
    ".git": lambda t: t.diff("new").replace(b"pkg/sub/new.py", b".git/hooks/new"),
    ".git, no prefix": lambda t: t.diff("new", "--no-prefix").replace(b"pkg/sub/new.py", b".git/hooks/new"),
    ".git, a new name": lambda t: t.diff("moved", "-M").replace(b"pkg/sub/moved.py", b".git/moved"),
    ".git in quotes": lambda t: t.diff("new").replace(b"b/pkg/sub/new.py", b'"b/.g\\151t/new"'),
    "a link's target": lambda t: t.diff("new").replace(b"pkg/sub/new.py", b"pkg/link/new.py"),
    "-U0, removed lines elsewhere": lambda t: t.diff("after", "-U0").replace(b"@@ -3 +3 @@", b"@@ -4 +4 @@"),
    "-U0, an insertion after the end": lambda t: t.diff("inserted", "-U0").replace(b"@@ -9,0 +10", b"@@ -90,0 +91"),
    "-U0, an insertion at two places": lambda t: t.diff("inserted", "-U0").replace(b"@@ -9,0 +10", b"@@ -9,0 +15"),
    "a line without a marker": damage(b"\n number_4", b"\n# the next one\n number_4"),
    "a line without a marker, which the counts do not cover": damage(
        b" number_20 = 20\n+added = 1\n", b" number_20 = 20\n number_21 = 21\nadded:\n+added = 1\n"
    ),
    "text for context": damage(b" number_2 = 2\n", b"...\n"),
    "a no-break space before context": damage(b"\n number_4", b"\n\xc2\xa0number_4"),
    "a wrapped line": damage(b"+number_3 = 33\n", b"+number_3 =\n33\n"),
    "a wrapped line at the end": lambda t: t.diff("new") + b"and more\n",
    "a lost `+`": damage(b"+added = 1\n", b"added = 1\n"),
    "a lost `-`": damage(b"-number_3 = 3\n", b"number_3 = 3\n"),
    "added lines behind text": lambda t: t.diff("inserted") + b"unmarked line\n+raise SystemExit\n",
    "added lines behind text, counted": lambda t: (
        re.sub(rb"@@ -(\d+),6 \+(\d+),7 @@", rb"@@ -\1,7 +\2,10 @@", t.diff("inserted"))
        + b"unmarked line\n+raise SystemExit\n+# end\n"
    ),
    "a header of a hunk without numbers": damage(b"@@ -18,6 +18,7 @@", b"@@"),
    "names without a hunk": lambda t: t.diff("inserted") + b"--- a/setup.py\n+++ b/setup.py\n-name = 'sample'\n",
    "cut off in the last hunk": lambda t: t.diff("two").partition(b"+added = 1\n")[0],
    "a combined diff": lambda t: t.diff("inserted") + b"diff --cc setup.py\n@@@ -1,1 -1,1 +1,1 @@@\n++name = 1\n",
    "colours and other escape sequences": lambda t: re.sub(
        rb"\S+\+\S+number_3 = 33.*\n", lambda _: ESCAPES, t.diff("after", "--color=always")
    ),
    "nothing but binaries without their content": lambda t: t.diff("with binaries", "--", "pkg/cache.db"),
    "-U0, a new file as an insertion": lambda t: t.diff("new", "-U0").replace(b"pkg/sub/new.py", b"pkg/mod.py"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_patches_leave_the_tree_unchanged(trees: Trees, name: str) -> None:
    patch = REFUSED[name](trees)
    (trees.folder / "pkg" / "link").symlink_to(trees.folder.parent)
    before = run(trees.folder, "git", "status", "--short", "--ignored"), sorted(trees.folder.rglob("*"))
    code, output, repairs, _ = apply(trees, patch)
    assert (code, repairs) == (apply_patch.PATCH_FAILED_EXIT, [])
    assert output
    assert before == (run(trees.folder, "git", "status", "--short", "--ignored"), sorted(trees.folder.rglob("*")))
    assert trees.read() == BEFORE
    assert sorted(path.name for path in trees.folder.parent.iterdir()) == ["submission.patch", "tree"]


def test_the_index_is_changed_on_request(trees: Trees) -> None:
    assert apply(trees, trees.diff("after", "--no-prefix"), "--cached")[0] == 0
    assert trees.read() == BEFORE
    expected = sorted(path for path in {*BEFORE, *AFTER} if BEFORE.get(path) != AFTER.get(path))
    assert run(trees.folder, "git", "diff", "--cached", "--no-renames", "--name-only").decode().split() == expected


def test_paths_decide_between_prefixes(trees: Trees) -> None:
    """`b/kept.py` is a file of the tree, and `b/` is also the prefix that git writes."""
    kept = b"--- b/kept.py\n+++ b/kept.py\n@@ -1 +1 @@\n-kept = 1\n+kept = 2\n"
    assert apply(trees, kept + b"--- /dev/null\n+++ b/more.py\n@@ -0,0 +1 @@\n+more = 1\n")[0] == 0
    assert trees.read() == {**BEFORE, "b/kept.py": "kept = 2\n", "b/more.py": "more = 1\n"}


def test_a_file_that_is_there_already_gets_the_mode_of_the_patch(trees: Trees) -> None:
    code, _, repairs, touched = apply(trees, KEPT.replace(b"100644", b"100755"))
    assert (code, repairs, touched) == (0, [f"{apply_patch.PRESENT} (b/kept.py)"], ["b/kept.py"])
    assert run(trees.folder, "git", "diff", "--summary") == b" mode change 100644 => 100755 b/kept.py\n"


def test_a_renamed_binary_without_its_content_keeps_what_it_had(trees: Trees) -> None:
    head = b"diff --git a/pkg/cache.db b/pkg/new.db\nsimilarity index 90%\n"
    moved = head + b"rename from pkg/cache.db\nrename to pkg/new.db\n"
    ending = b"index 563872c..3d12770 100644\nBinary files a/pkg/cache.db and b/pkg/new.db differ\n"
    code, _, repairs, _ = apply(trees, moved + ending)
    assert (code, repairs) == (0, [f"{apply_patch.NO_CONTENT} (pkg/new.db)"])
    after = trees.read()
    assert after.pop("pkg/new.db") == BEFORE["pkg/cache.db"]
    assert after == {path: text for path, text in BEFORE.items() if path != "pkg/cache.db"}


def test_an_index_loses_a_binary_without_its_content(trees: Trees) -> None:
    assert apply(trees, trees.diff("without a binary", "--", "pkg/cache.db"), "--cached")[0] == 0
    assert run(trees.folder, "git", "diff", "--cached", "--name-status") == b"D\tpkg/cache.db\n"
    assert trees.read() == BEFORE


def test_deliberate_line_ends_stay(trees: Trees) -> None:
    """A patch that changes line ends and adds a file in CR LF is repaired in nothing else."""
    after = {**BEFORE, "setup.py": BEFORE["setup.py"].replace("\n", "\r\n"), "pkg/run.bat": "echo\r\n"}
    trees.write(after)
    run(trees.folder, "git", "add", "-A")
    patch = run(trees.folder, "git", "diff", "--cached")
    run(trees.folder, "git", "reset", "-q", "--hard")
    code, _, repairs, _ = apply(trees, patch.replace(b"a/", b"").replace(b"b/", b""))
    assert (code, repairs) == (0, [apply_patch.PREFIXES])
    assert trees.read() == after


def test_the_program_needs_no_newer_python_than_3_6() -> None:
    ast.parse(PROGRAM.read_text(), feature_version=(3, 6))
