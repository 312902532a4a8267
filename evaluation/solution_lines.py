"""Solution lines: lines of patches that the base tree lacks, so that a text which holds one gives the solution away.

Images are searched for them by hashes of lines (`verifiers.audit`), texts of a simulator by the lines themselves,
whatever the white space between their characters and the marks before them.
"""

from __future__ import annotations

import base64
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

MIN_LINE = 12
"""Minimum length of a distinctive line, in bytes."""
_ENCODED_LINE = 76
"""Length of a full line of base64 text."""
_SPACE = b" \t\r\f\v"
_MARK = re.compile(r"(?m)^(?:[ \t]*(?:[+\-><|#*$%:;]+|E(?=[ \t])|\d+(?=[\s:|.)-])))+")
"""Marks that tools put before a line.

Marks of a diff, of pytest and of a prompt, comment signs, and numbers of lines.
"""
_NOT_SPACE = re.compile(r"\s+")


def hash_lines(text: bytes) -> array[int]:
    """Return hashes of the lines that are long enough; the `+` mark of a patch's added line is removed."""
    lines = {line.strip() for line in text.split(b"\n")}
    lines |= {line[1:].strip() for line in lines if line.startswith(b"+")}
    return array("q", [hash(line) for line in lines if len(line) >= MIN_LINE])


def extract_added_lines(patch: bytes) -> bytes:
    """Return the lines that a patch adds, without their marks."""
    return b"\n".join(line[1:] for line in patch.split(b"\n") if line.startswith(b"+") and not line.startswith(b"+++ "))


def encode_lines(patch: bytes) -> list[bytes]:
    """Return the full lines of a patch's base64 encoding, as it occurs in scripts."""
    return [line for line in base64.encodebytes(patch).split(b"\n") if len(line) >= _ENCODED_LINE]


@dataclass(frozen=True, kw_only=True)
class SolutionLines:
    """Lines that a text for an agent must not hold.

    Attributes:
        lines: distinctive lines without their white space, by their first form.
        names: names of tests that the base tree lacks.
    """

    lines: Mapping[str, str]
    names: frozenset[str] = frozenset()

    def find(self, text: str, known: str = "") -> str:
        """Return a line or name that a text holds, empty for none.

        A line is found whatever its indentation, also where it is broken over several lines and where each has a mark
        before it, as in a diff, a listing with numbers or an excerpt of a test runner.

        Args:
            text: text for the agent.
            known: the text that the agent wrote itself, which may be the solution by now.
        """
        forms = [text, _MARK.sub("", text)]
        packed, packed_known = [_pack(form) for form in forms], _pack(known)
        for needle, line in self.lines.items():
            if needle in packed_known:
                continue
            bare = _pack(_MARK.sub("", line))
            for form, content, wanted in zip(forms, packed, (needle, bare), strict=True):
                if len(wanted) >= MIN_LINE // 2 and wanted in content and _compile(wanted).search(form):
                    return line
        for name in self.names:
            pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
            if name in text and pattern.search(text) and not pattern.search(known):
                return name
        return ""


def make_solution_lines(patches: Iterable[bytes], base: Iterable[bytes], names: Iterable[str] = ()) -> SolutionLines:
    """Return the solution lines of patches.

    Args:
        patches: patches in the format of `git diff`.
        base: contents of the files that the agent is given.
        names: names of tests that they lack.
    """
    lines: dict[str, str] = {}
    for patch in patches:
        lines |= {_pack(line): line for line in _list_distinctive(patch)}
    missing = {needle.encode(errors="surrogateescape"): needle for needle in lines}
    for content in base:
        for line in missing.keys() & set(content.translate(None, _SPACE).split(b"\n")):
            del missing[line]
        if not missing:
            break
    return SolutionLines(lines={needle: lines[needle] for needle in missing.values()}, names=frozenset(names))


def _list_distinctive(patch: bytes) -> Iterator[str]:
    for raw in (*extract_added_lines(patch).split(b"\n"), *encode_lines(patch)):
        line = raw.strip()
        if len(line) >= MIN_LINE:
            yield line.decode(errors="surrogateescape")


def _pack(text: str) -> str:
    return _NOT_SPACE.sub("", text)


def _compile(needle: str) -> re.Pattern[str]:
    """Return the pattern of a needle with any white space within it, and no further word at either end."""
    start, end = (r"(?<!\w)" if needle[0].isalnum() else ""), (r"(?!\w)" if needle[-1].isalnum() else "")
    return re.compile(start + r"\s*".join(map(re.escape, needle)) + end)
