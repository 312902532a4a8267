"""Edits of test files, and names of the instances of a test.

Both `mergemill grade` and the graders in bundles use this module: Python 3.6 or later, with the standard library only.
"""

import re
from random import Random
from typing import Any, Iterable, List, Optional

Edit = List[Any]
"""First byte, end, and the text that replaces the bytes that are between them."""
WORD_LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD_LENGTH = 6
DRAWN_WORD = re.compile("(?<=[_ ])[a-z]{6}(?![A-Za-z])")
"""The word at the end of a drawn name, in the id of a test."""


def apply_edits(text: bytes, edits: Iterable[Edit]) -> bytes:
    """Return the text with all edits made. They must not overlap; insertions at a single place come in any order."""
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + new.encode("utf-8") + text[end:]
    return text


def draw_name(name: str, random: Random) -> str:
    """Return a name of which nobody knows the last letters."""
    word = "".join(random.choice(WORD_LETTERS) for _ in range(WORD_LENGTH))
    return name + (" " if " " in name else "_") + word


def rename_test(test: str, old: str, new: str) -> str:
    """Return the id of a renamed test: the last occurrence of its name after the file is replaced."""
    file, separator, rest = test.partition("::")
    before, matched, after = rest.rpartition(old)
    return file + separator + (before + new + after if matched else rest)


def restore_test_id(test: str, old: str, new: str) -> Optional[str]:
    """Return the id that a renamed test had before, the inverse of `rename_test`; None for other tests."""
    file, separator, rest = test.partition("::")
    before, matched, after = rest.rpartition(new)
    return file + separator + before + old + after if matched else None


def copy_block(text: bytes, span: List[int], name_span: List[int], name: str, edits: Iterable[Edit]) -> str:
    """Return an instance of a block: its text under another name and with edits, whose positions are of the file."""
    start, end = span
    inner = [[first - start, last - start, new] for first, last, new in edits]
    inner.append([name_span[0] - start, name_span[1] - start, name])
    return apply_edits(text[start:end], inner).decode("utf-8")


def join_instances(text: bytes, start: int, instances: Iterable[str]) -> str:
    """Return instances of the block that begins at `start`, each on lines of its own and indented as the block is."""
    line = text.rfind(b"\n", 0, start) + 1
    return ("\n\n" + text[line:start].decode("utf-8")).join(instances)
