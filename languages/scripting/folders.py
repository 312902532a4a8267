"""The folder of the project that a change is about, in a tree with several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def find_common_folder(folders: Iterable[str], paths: Sequence[str]) -> str | None:
    """Return the deepest of some folders that contains all paths; None if none does, or there are no paths.

    Args:
        folders: relative to the root of the tree, which is the empty string.
        paths: relative to the root of the tree.
    """
    containing = [
        folder for folder in folders if paths and all(not folder or path.startswith(f"{folder}/") for path in paths)
    ]
    return max(containing, key=len, default=None)
