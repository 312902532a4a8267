"""Patches that git applies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mutation import build_patch

LONG = b"".join(b"def f%d():\n    return %d\n\n" % (n, n) for n in range(400))
LINES = b"".join(b"line %d\n" % n for n in range(40))


@pytest.mark.parametrize("path", ["a.py", "with space/ä.py", 'quo"te.py', "tab\there.py"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\nc\n", b"a\nx\nc\n"),
        (b"a\nb", b"a\nb\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"a\rb\n", b"a\rc\n"),
        (b"a\n", b""),
        (b"", b"a"),
        (LINES, LINES.replace(b"line 3\n", b"").replace(b"line 30\n", b"line 30\nmore\n")),
        (LINES, LINES + b"end"),
        (LONG, LONG.replace(b"return", b"return  ")),
        (LONG, LONG.replace(b"f3()", b"g()")),
        (b"\xff\n" + LINES, b"\xfe\n" + LINES),
    ],
)
def test_git_applies_the_patch_to_the_old_text(path: str, before: bytes, after: bytes, tmp_path: Path) -> None:
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    patch = build_patch(path, before, after)
    for arguments, text in (([], after), (["-R"], before)):
        subprocess.run(["git", "apply", "-p1", *arguments], cwd=tmp_path, input=patch, check=True)
        assert file.read_bytes() == text


def test_equal_texts_give_an_empty_patch() -> None:
    assert build_patch("a.py", b"a\n", b"a\n") == b""
