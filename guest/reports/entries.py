"""Lists that the evaluation script writes to its report folder."""

from typing import List


def split_entries(content: bytes) -> List[str]:
    """Return the entries of a list, which are separated by NULs or, in a text without any, by line feeds.

    Paths are UTF-8, as in reports: the locale of a container does not change them.
    """
    text = content.decode("utf-8", "surrogateescape")
    return [entry for entry in text.split("\0" if "\0" in text else "\n") if entry]
