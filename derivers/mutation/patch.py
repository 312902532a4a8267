"""The change of one file as a patch that `git apply` takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from derivers.mutation.lines import alike, by_line_feed, matcher

CONTEXT = 3
"""Lines around a change."""
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def patch_of(path: str, before: bytes, after: bytes) -> bytes:
    """A git-style patch that turns one text of a file into another; empty when they are the same.

    Args:
        path: of the file, posix, from the repository's root; it exists before and after.
        before: its whole text.
        after: its whole new text.
    """
    old, new = by_line_feed(before), by_line_feed(after)
    if old == new:
        return b""
    names = [_name(f"{side}/{path}") for side in "ab"]
    tab = b"\t" if " " in path else b""
    head = b"diff --git %b %b\n--- %b%b\n+++ %b%b\n" % (*names, names[0], tab, names[1], tab)
    return head + b"".join(_hunks(old, new))


def _name(path: str) -> bytes:
    """As git quotes names of files."""
    raw = path.encode(errors="surrogateescape")
    if all(32 <= byte < 127 and byte not in _ESCAPES for byte in raw):
        return raw
    word = "".join(_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in raw)
    return f'"{word}"'.encode()


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    """The hunks; only what lies between the first and the last difference is compared in full."""
    head, tail = (max(0, same - CONTEXT) for same in alike(old, new))
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    for group in matcher(a, b).get_grouped_opcodes(CONTEXT):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield b"@@ -%b +%b @@\n" % (_range(head + i1, i2 - i1), _range(head + j1, j2 - j1))
        for word, a1, a2, b1, b2 in group:
            if word == "equal":
                yield from (_line(b" ", line) for line in a[a1:a2])
            else:
                yield from (_line(b"-", line) for line in a[a1:a2])
                yield from (_line(b"+", line) for line in b[b1:b2])


def _range(start: int, length: int) -> bytes:
    first = start + 1 if length else start
    return b"%d,%d" % (first, length)


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"
