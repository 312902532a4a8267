"""The change of a file as a patch that `git apply` accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mutation.lines import build_matcher, count_common_ends, split_lines

CONTEXT = 3
"""Context lines around a change."""
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def build_patch(path: str, before: bytes, after: bytes) -> bytes:
    """Return a git patch that turns a text of a file into another; empty when they are equal.

    Args:
        path: path of the file, posix, from the repository's root; it exists before and after.
        before: its content.
        after: its new content.
    """
    old, new = split_lines(before), split_lines(after)
    if old == new:
        return b""
    names = [_quote_name(f"{side}/{path}") for side in "ab"]
    tab = b"\t" if " " in path else b""
    head = b"diff --git %b %b\n--- %b%b\n+++ %b%b\n" % (*names, names[0], tab, names[1], tab)
    return head + b"".join(_render_hunks(old, new))


def _quote_name(path: str) -> bytes:
    """Return a file name, quoted as git does where it contains special characters."""
    raw = path.encode(errors="surrogateescape")
    if all(32 <= byte < 127 and byte not in _ESCAPES for byte in raw):
        return raw
    name = "".join(_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in raw)
    return f'"{name}"'.encode()


def _render_hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the hunks; only the lines between the first and the last difference are compared in full."""
    head, tail = (max(0, same - CONTEXT) for same in count_common_ends(old, new))
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    for group in build_matcher(a, b).get_grouped_opcodes(CONTEXT):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield b"@@ -%b +%b @@\n" % (_format_range(head + i1, i2 - i1), _format_range(head + j1, j2 - j1))
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                yield from (_format_line(b" ", line) for line in a[a1:a2])
            else:
                yield from (_format_line(b"-", line) for line in a[a1:a2])
                yield from (_format_line(b"+", line) for line in b[b1:b2])


def _format_range(start: int, length: int) -> bytes:
    first = start + 1 if length else start
    return b"%d,%d" % (first, length)


def _format_line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"
