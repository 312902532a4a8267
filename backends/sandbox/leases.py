"""Which images are in use: whoever works with one holds a lease on its name, and it is not removed meanwhile.

The engine keeps an image while a container of it is there, but work on an image has pauses between containers. A lease
is a shared lock of the machine: many hold one, in threads and processes, and who wants to remove the image needs it
alone. A dead process holds nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator

from backends.sandbox.locks import lock_file


class Leases:
    """Leases on images of the engine `scope`. `used` is told the name of every image when work on it ends."""

    def __init__(self, scope: str, used: Callable[[str], None]) -> None:
        self._scope = scope
        self._used = used
        self._local = threading.local()

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """What this thread holds from here on it keeps to the end of the block; a block within a block joins it."""
        if self._held is not None:
            yield
            return
        held: dict[str, int] = {}
        self._local.held = held
        try:
            yield
        finally:
            self._local.held = None
            for name, handle in held.items():
                self._used(name)
                os.close(handle)

    @property
    def _held(self) -> dict[str, int] | None:
        """Name -> descriptor of its lock file; None outside of `holding`."""
        held: dict[str, int] | None = getattr(self._local, "held", None)
        return held

    def hold(self, name: str) -> None:
        """Hold a lease until the end of the block; outside of one this does nothing. Waits for who removes the image.

        Raises:
            Transient: the lock's file cannot be made.
        """
        held = self._held
        if held is None or name in held:
            return
        handle = lock_file(self._scope, f"lease-{name}")
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
        except BaseException:
            os.close(handle)
            raise
        held[name] = handle

    def drop(self, name: str) -> None:
        """Give a lease of this thread back, if it holds one."""
        if (handle := (self._held or {}).pop(name, None)) is not None:
            os.close(handle)

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Whether nobody holds a lease on the name; then nobody gets one before the end of the block.

        Raises:
            Transient: the lock's file cannot be made.
        """
        handle = lock_file(self._scope, f"lease-{name}")
        with os.fdopen(handle, "rb"):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
