"""Cache of model answers by prompt, so that the same prompt is not sent and paid for twice.

Beside the artifacts in the store, `answers/AB/CDEF....zst`, where ABCDEF... is the sha256 of the prompt. Removing the
folder costs money, never a result: records contain the facts that they need of an answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import zstandard

from taskdb.artifacts import write_atomically


class AnswerCache:
    """A folder of answers. Safe for many writers, also of different processes; the newest answer is used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, prompt: Sequence[str]) -> str | None:
        """Return the cached answer to a prompt; None when there is none or it is damaged."""
        try:
            content = self._path(prompt).read_bytes()
            return zstandard.ZstdDecompressor().decompress(content).decode()
        except (OSError, zstandard.ZstdError, UnicodeDecodeError):
            return None

    def put(self, prompt: Sequence[str], answer: str) -> None:
        """Cache an answer.

        Raises:
            Transient: the disk is full or not writable.
        """
        content = zstandard.ZstdCompressor(level=6, write_checksum=True).compress(answer.encode())
        write_atomically(self._path(prompt), content, self.folder)

    def _path(self, prompt: Sequence[str]) -> Path:
        digest = hashlib.sha256(json.dumps(list(prompt)).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.zst"
