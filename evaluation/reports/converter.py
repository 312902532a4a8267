"""The report converter (`harness/reports/`) packed into a single file for the container's python3."""

from __future__ import annotations

import io
import zipfile
from functools import cache

from guest.harness import HARNESS_FOLDER
from guest.harness.reports.main import FORMATS as _FORMATS

FORMATS = tuple(_FORMATS)
"""Formats that `reports.pyz FORMAT OUT_DIR WORKDIR` reads; see `harness/reports/__init__.py` for each."""

_MAIN = b"import sys\n\nfrom reports.main import main\n\nsys.exit(main(sys.argv))\n"
_ROOT = HARNESS_FOLDER / "reports"


@cache
def pack_converter() -> bytes:
    """Return a zip file for `python3 -I -S reports.pyz` (Python >= 3.9). Equal sources give equal bytes."""
    buffer = io.BytesIO()
    paths = sorted(path for path in _ROOT.rglob("*") if path.is_file() and path.suffix != ".pyc")
    with zipfile.ZipFile(buffer, "w") as packed:
        _write_entry(packed, "__main__.py", _MAIN)
        for path in paths:
            _write_entry(packed, f"reports/{path.relative_to(_ROOT).as_posix()}", path.read_bytes())
    return buffer.getvalue()


def _write_entry(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    packed.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)


@cache
def read_asset(name: str) -> str:
    """Return the text of a reporter that a framework loads, such as `node_reporter.mjs`.

    Raises:
        FileNotFoundError: there is no reporter of that name.
    """
    return (_ROOT / "assets" / name).read_text(encoding="utf-8")
