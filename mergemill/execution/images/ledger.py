"""Last use of each image by the processes of a store: an empty file per image, whose time is that of the last use.

An engine records when an image was made, not when it was used. Many processes can touch files at once, and a lost file
only makes an image appear older than it is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from pathlib import Path
from urllib.parse import quote, unquote

log = logging.getLogger(__name__)

FOLDER = "images"


class UsageLedger:
    """Ledger of the store in a folder. Times are seconds since 1970."""

    def __init__(self, store: Path) -> None:
        self.folder = store / FOLDER

    def touch(self, name: str, when: float | None = None) -> None:
        """Record a use now, or at `when` if that is later than the recorded use. A disk error is logged, not raised."""
        if name.startswith("sha256:"):
            return
        file = self._file(name)
        if when is not None and (self.get_last_use(name) or 0.0) >= when:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            if when is not None:
                os.utime(file, (when, when))
        except OSError as error:
            log.info("the use of %s is not recorded: %s", name, error)

    def get_last_use(self, name: str) -> float | None:
        """Return the time of the last use, or None when this store never used the image."""
        try:
            return self._file(name).stat().st_mtime
        except OSError:
            return None

    def remove(self, name: str) -> None:
        """Remove the record of an image that no longer exists."""
        with contextlib.suppress(OSError):
            self._file(name).unlink()

    def read_all(self) -> dict[str, float]:
        """Return name -> last use for every image that this store ever used."""
        uses: dict[str, float] = {}
        if self.folder.is_dir():
            for entry in os.scandir(self.folder):
                with contextlib.suppress(OSError):
                    uses[unquote(entry.name)] = entry.stat().st_mtime
        return uses

    def _file(self, name: str) -> Path:
        return self.folder / quote(name, safe="")


def format_timestamp(when: float | None) -> str | None:
    """Return a time in ISO 8601, UTC."""
    return None if when is None else time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(when))
