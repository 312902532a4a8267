"""File systems of their own, in files, which can be filled. Needs root on Linux."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BLOCK_BYTES = 4096


@contextmanager
def mount_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount a file system of so many bytes at a new folder, until the end of the block."""
    image = folder.with_suffix(".img")
    folder.mkdir(parents=True)
    with image.open("wb") as out:
        out.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)
        image.unlink()


@contextmanager
def fill_disk(disk: Path) -> Iterator[None]:
    """Leave no space on a file system until the end of the block."""
    file = disk / "full"
    try:
        with file.open("wb") as full:
            end, size = 0, shutil.disk_usage(disk).free
            while size > BLOCK_BYTES:
                try:
                    os.posix_fallocate(full.fileno(), end, size)
                    end += size
                except OSError:  # others write, too
                    size //= 2
        yield
    finally:
        file.unlink()
