"""Memory of a process that forks often, in huge pages.

A fork copies the page tables of all memory that the process has written: 40 ms of CPU for 800 MB. A huge page has one
entry for 512.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

SIZE = 2 << 20
COLLAPSE = 25
"""MADV_COLLAPSE of Linux 6.1: collect what is there into huge pages, whatever the system's setting for them."""


def collapse_memory() -> None:
    """Move the memory of this process into huge pages, as far as the system can do so."""
    library = ctypes.CDLL(None)
    for start, end in list(_iterate_regions()):
        first, last = (start + SIZE - 1) // SIZE * SIZE, end // SIZE * SIZE
        if first < last:
            library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), COLLAPSE)


def _iterate_regions() -> Iterator[tuple[int, int]]:
    """Yield start and end of the regions of memory that belong to no file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, _, end = addresses.partition("-")
            yield int(start, 16), int(end, 16)
