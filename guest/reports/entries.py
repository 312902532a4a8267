"""Lists that the evaluation script writes to its report folder."""

from typing import Collection, List

MAX_LIST_BYTES = 16 * 1024 * 1024
"""Bytes of the list of the tree's files, the longest one."""
MAX_SHOWN_FILES = 10
"""Files that a line names."""


def split_entries(content: bytes) -> List[str]:
    """Return the entries of a list, which are separated by NULs or, in a text without any, by line feeds.

    Paths are UTF-8, as in reports: the locale of a container does not change them.
    """
    text = content.decode("utf-8", "surrogateescape")
    return [entry for entry in text.split("\0" if "\0" in text else "\n") if entry]


def name_restored_files(paths: Collection[str]) -> str:
    """Return which files were put back or removed before the tests, in a line of ASCII; empty for no files."""
    if not paths:
        return ""
    shown = [ascii(path)[1:-1] for path in sorted(paths)[:MAX_SHOWN_FILES]]
    more = f" and {len(paths) - len(shown)} more" if len(paths) > len(shown) else ""
    return f"put back or removed, as protected: {', '.join(shown)}{more}"
