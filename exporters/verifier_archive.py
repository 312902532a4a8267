"""The archive `verifier.pyz`: the modules that score submissions in a container, packed into a single file."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib.resources import files

_MAIN = b"import sys\n\nfrom guest.verifier.main import main\n\nsys.exit(main())\n"
_MODULES = {
    "guest": ("reports", "scoring", "verifier"),
    "guest.controls": ("blind.py", "choices.py", "texts.py"),
}
"""Package -> its modules, and subpackages as a whole, that are packed; of its own `__init__.py` only the name."""


@cache
def pack_verifier() -> bytes:
    """Return a zip file for `python3 -I -S -B verifier.pyz` (Python >= 3.9). Equal sources give equal bytes."""
    entries = {"__main__.py": _MAIN}
    for package, parts in _MODULES.items():
        folder = package.replace(".", "/")
        entries[f"{folder}/__init__.py"] = b""
        for part in parts:
            source = files(package).joinpath(part)
            modules = source.iterdir() if source.is_dir() else [source]
            below = f"{folder}/{part}" if source.is_dir() else folder
            entries |= {
                f"{below}/{module.name}": module.read_bytes() for module in modules if module.name.endswith(".py")
            }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, entries[name], zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()
