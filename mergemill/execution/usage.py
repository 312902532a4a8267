"""Use of a machine: the disk of a folder, and the disk, images and containers of a Docker engine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mergemill.execution.images.inventory import IMAGE_PREFIX

if TYPE_CHECKING:
    from backends.sandbox.docker import DockerSandbox


def describe_disk(folder: Path) -> dict[str, Any]:
    """Return the disk of a folder that need not exist yet: folder, free and total bytes."""
    absolute = folder.absolute()
    there = next(parent for parent in (absolute, *absolute.parents) if parent.is_dir())
    usage = shutil.disk_usage(there)
    return {"folder": str(there), "free_bytes": usage.free, "total_bytes": usage.total}


def measure_engine(sandbox: DockerSandbox) -> dict[str, Any]:
    """Return `disk`, `image_bytes`, `containers` and `leftovers`, the number of containers of dead processes.

    `disk` is None where the engine's folder is on another machine.

    Raises:
        Transient: the engine does not answer.
    """
    root = Path(sandbox.images.get_engine_info().root)
    return {
        "disk": describe_disk(root) if root.is_dir() else None,
        "image_bytes": sandbox.images.estimate_size(IMAGE_PREFIX),
        "containers": sandbox.count_containers(),
        "leftovers": len(sandbox.find_orphans()),
    }
