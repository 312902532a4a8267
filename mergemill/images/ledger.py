"""When each image was last used, by whoever works with one store: an empty file an image, its time is that of last use.

An engine knows when an image was made and not when it was used. Files can be touched by many processes at once, and a
lost one costs no more than an image that seems older than it is.
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


class Ledger:
    """The ledger of the store at `store`. Times are seconds since 1970."""

    def __init__(self, store: Path) -> None:
        self.folder = store / FOLDER

    def touch(self, name: str, when: float | None = None) -> None:
        """The image was used now, or at `when` if that is later than what is known. Never fails for the disk's sake."""
        if name.startswith("sha256:"):
            return
        file = self._file(name)
        if when is not None and (self.last(name) or 0.0) >= when:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            if when is not None:
                os.utime(file, (when, when))
        except OSError as error:
            log.info("the use of %s is not written down: %s", name, error)

    def last(self, name: str) -> float | None:
        """When the image was last used, None when this store never used it."""
        try:
            return self._file(name).stat().st_mtime
        except OSError:
            return None

    def forget(self, name: str) -> None:
        """The image is gone."""
        with contextlib.suppress(OSError):
            self._file(name).unlink()

    def all(self) -> dict[str, float]:
        """Name -> last use, of every image this store ever used."""
        found: dict[str, float] = {}
        if self.folder.is_dir():
            for entry in os.scandir(self.folder):
                with contextlib.suppress(OSError):
                    found[unquote(entry.name)] = entry.stat().st_mtime
        return found

    def _file(self, name: str) -> Path:
        return self.folder / quote(name, safe="")


def told(when: float | None) -> str | None:
    """A time as people and programs read it: ISO 8601, UTC."""
    return None if when is None else time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(when))
