"""Leases on images: an image is not removed while a thread or process holds a lease on its name.

The engine keeps an image while any of its containers exists, but work on an image has pauses between containers. A
lease is a shared `flock` of this machine; removing an image needs it exclusively. A dead process holds no lease.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator

from backends.sandbox.locks import open_lock_file


class ImageLeases:
    """Leases on images of the engine `scope`. `record_use` is called with each image's name when its lease ends."""

    def __init__(self, scope: str, record_use: Callable[[str], None]) -> None:
        self._scope = scope
        self._record_use = record_use
        self._local = threading.local()

    @contextlib.contextmanager
    def hold_leases(self) -> Iterator[None]:
        """Keep the leases that this thread acquires until the end of the block; a nested block joins the outer."""
        if self._thread_leases is not None:
            yield
            return
        held: dict[str, int] = {}
        self._local.held = held
        try:
            yield
        finally:
            self._local.held = None
            for name, handle in held.items():
                self._record_use(name)
                os.close(handle)

    @property
    def _thread_leases(self) -> dict[str, int] | None:
        """Image name -> descriptor of its lock file; None outside of `hold_leases`."""
        held: dict[str, int] | None = getattr(self._local, "held", None)
        return held

    def acquire(self, name: str) -> None:
        """Acquire a lease until the end of the `hold_leases` block; outside of a this does nothing.

        Waits while the image is being removed.

        Raises:
            Transient: the lock file cannot be created.
        """
        held = self._thread_leases
        if held is None or name in held:
            return
        handle = open_lock_file(self._scope, f"lease-{name}")
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
        except BaseException:
            os.close(handle)
            raise
        held[name] = handle

    def release(self, name: str) -> None:
        """Release this thread's lease, if it holds a lease."""
        if (handle := (self._thread_leases or {}).pop(name, None)) is not None:
            os.close(handle)

    @contextlib.contextmanager
    def try_exclusive(self, name: str) -> Iterator[bool]:
        """Yield whether nobody holds a lease on the name; if so, nobody can acquire one before the end of the block.

        Raises:
            Transient: the lock file cannot be created.
        """
        handle = open_lock_file(self._scope, f"lease-{name}")
        with os.fdopen(handle, "rb"):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
