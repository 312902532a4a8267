"""Archives whose bytes depend on the files only."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping


def pack_files(content: Mapping[str, bytes]) -> bytes:
    """Return a .tar.gz of name -> content; names that end in `.sh` are executable."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(content):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content[name]), 0o700 if name.endswith(".sh") else 0o600
            tar.addfile(info, io.BytesIO(content[name]))
    return raw.getvalue()
