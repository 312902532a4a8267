"""Forms in which people, tools and models write the same patch."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.fairness.suite import Files, HonestSubmission, SubmissionGroup, WorkTree, write_git_patch

PatchChange = Callable[[bytes], bytes]


def _change(change: PatchChange, *options: str) -> Callable[[WorkTree], bytes]:
    return lambda tree: change(write_git_patch(tree, *options))


def _write_plain_diff(tree: WorkTree, options: str, prefix: str = "") -> bytes:
    """Return what diff writes for two folders `old` and `new`."""
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary) / prefix / name for name in ("old", "new")]
        for folder, commit in zip(folders, (tree.base, "."), strict=True):
            if commit == ".":
                shutil.copytree(tree.repo.path, folder, ignore=shutil.ignore_patterns(".git"))
            else:
                folder.mkdir(parents=True)
                tree.repo.git("--work-tree", str(folder), "checkout", "-q", commit, "--", ".")
        names = [str(folder.relative_to(temporary)) for folder in folders]
        process = subprocess.run(["diff", options, *names], cwd=temporary, capture_output=True, check=False)
    return process.stdout


def _write_mail(tree: WorkTree) -> bytes:
    tree.repo.git("add", "-A")
    tree.repo.git("commit", "-q", "-m", "Repair it\n\nA longer text -- with dashes:\n\n---\n> quoted")
    return tree.repo.git("format-patch", "--stdout", "--binary", tree.base).encode() + b"\n"


def _write_two_mails(tree: WorkTree) -> bytes:
    """Return two commits to the same files, as a series of mails."""
    tree.repo.git("add", "-A")
    tree.repo.git("commit", "-q", "-m", "Repair it")
    names = tree.repo.git("diff", "--name-only", "--diff-filter=AM", tree.base).splitlines()
    for name in names:
        path = tree.repo.path / name
        path.write_bytes(path.read_bytes() + b"\n")
    tree.repo.git("commit", "-q", "-a", "-m", "Add a line")
    return tree.repo.git("format-patch", "--stdout", tree.base).encode() + b"\n"


def _add_carriage_returns(patch: bytes) -> bytes:
    return patch.replace(b"\n", b"\r\n")


def _fence(patch: bytes) -> bytes:
    return b"Here is the patch:\n\n```diff\n" + patch + b"```\n\nIt repairs both bugs.\n"


def _count_wrongly(patch: bytes) -> bytes:
    return re.sub(rb"(?m)^@@ -(\d+),\d+ \+(\d+),\d+ @@", rb"@@ -\1,7 +\2,99 @@", patch)


def _move_hunks(patch: bytes) -> bytes:
    return re.sub(rb"(?m)^@@ -(\d+)", lambda match: b"@@ -%d" % (int(match[1]) + 2), patch)


def _strip_lines(patch: bytes) -> bytes:
    """Remove the white space that ends lines, as editors do; empty context lines lose their space."""
    return re.sub(rb"(?m)[ \t]+$", b"", patch)


def _drop_git_lines(patch: bytes) -> bytes:
    return re.sub(rb"(?m)^(diff --git|index|new file mode|deleted file mode) .*\n", b"", patch)


def _write_as_subversion(patch: bytes) -> bytes:
    patch = re.sub(rb"(?m)^diff --git a/(\S+) .*\n(index .*\n)?", rb"Index: \1\n" + b"=" * 67 + b"\n", patch)
    return re.sub(rb"(?m)^(---|\+\+\+) [ab]/(\S+)$", rb"\1 \2\t(revision 7)", patch)


def _comment_headings(patch: bytes) -> bytes:
    return re.sub(rb"(?m)^(@@ .* @@).*$", rb"\1 def somewhere_else():", patch)


FORMS: dict[str, Callable[[WorkTree], bytes]] = {
    "diff -ru": partial(_write_plain_diff, options="-ru"),
    "diff -ruN": partial(_write_plain_diff, options="-ruN"),
    "diff -ruN of deep folders": partial(_write_plain_diff, options="-ruN", prefix="home/ada/work"),
    "git format-patch": _write_mail,
    "git format-patch of two commits": _write_two_mails,
    "no prefix": lambda tree: write_git_patch(tree, "--no-prefix"),
    "mnemonic prefix": lambda tree: write_git_patch(tree, "--src-prefix=i/", "--dst-prefix=w/"),
    "no context": lambda tree: write_git_patch(tree, "-U0"),
    "one line of context": lambda tree: write_git_patch(tree, "-U1"),
    "whole functions as context": lambda tree: write_git_patch(tree, "-W"),
    "whole files as context": lambda tree: write_git_patch(tree, "-U1000"),
    "full index": lambda tree: write_git_patch(tree, "--full-index", "--histogram"),
    "no last line feed": _change(lambda patch: patch[:-1]),
    "CR LF": _change(_add_carriage_returns),
    "byte order mark": _change(lambda patch: b"\xef\xbb\xbf" + patch),
    "Markdown": _change(_fence),
    "Markdown, no last line feed": _change(lambda patch: b"```\n" + patch[:-1] + b"\n```"),
    "wrong line counts": _change(_count_wrongly),
    "wrong line numbers": _change(_move_hunks),
    "white space stripped": _change(_strip_lines),
    "blank lines around": _change(lambda patch: b"\n\n" + patch + b"\n\n\n"),
    "headers of names alone": _change(_drop_git_lines),
    "Subversion": _change(_write_as_subversion),
    "headings of other functions": _change(_comment_headings),
}
"""Name -> function that writes the patch of a work tree."""


def list_forms(files: Files, names: tuple[str, ...] = tuple(FORMS)) -> list[HonestSubmission]:
    """Return one solution in several forms."""
    return [HonestSubmission(name=name, group=SubmissionGroup.FORM, files=files, form=FORMS[name]) for name in names]
