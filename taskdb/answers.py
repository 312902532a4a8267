"""What was answered to a question, kept by the question: who asks the same again is told the same, for nothing.

Beside the artifacts in the store, `answers/AB/CDEF....zst`, where ABCDEF... is the sha256 of the question. Removing the
folder loses money, never a result: records hold what they need of an answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import zstandard

from taskdb.artifacts import keep


class Answers:
    """A folder of answers. Safe for many writers, also of different processes; the last word counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, question: Sequence[str]) -> str | None:
        """The answer kept for this question; None when there is none, or it is damaged."""
        try:
            content = self._path(question).read_bytes()
            return zstandard.ZstdDecompressor().decompress(content).decode()
        except (OSError, zstandard.ZstdError, UnicodeDecodeError):
            return None

    def put(self, question: Sequence[str], answer: str) -> None:
        """Keep an answer.

        Raises:
            Transient: the disk is full or not writable.
        """
        content = zstandard.ZstdCompressor(level=6, write_checksum=True).compress(answer.encode())
        keep(self._path(question), content, self.folder)

    def _path(self, question: Sequence[str]) -> Path:
        digest = hashlib.sha256(json.dumps(list(question)).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.zst"
