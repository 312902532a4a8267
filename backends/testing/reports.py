"""The converter of test reports as one file that the box's python3 runs: `harness/reports/`, zipped."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

from backends.testing.harness.reports.main import FORMATS as _FORMATS

FORMATS = tuple(_FORMATS)
"""What `reports.pyz FORMAT OUT_DIR WORKDIR` reads; `harness/reports/__init__.py` says how each is made."""

_MAIN = b"import sys\n\nfrom reports.main import main\n\nsys.exit(main(sys.argv))\n"
_ROOT = Path(__file__).parent / "harness" / "reports"


@cache
def archive() -> bytes:
    """A zip that Python >= 3.9 runs: `python3 -I -S reports.pyz`. The same sources give the same bytes."""
    buffer = io.BytesIO()
    paths = sorted(path for path in _ROOT.rglob("*") if path.is_file() and path.suffix != ".pyc")
    with zipfile.ZipFile(buffer, "w") as packed:
        _put(packed, "__main__.py", _MAIN)
        for path in paths:
            _put(packed, f"reports/{path.relative_to(_ROOT).as_posix()}", path.read_bytes())
    return buffer.getvalue()


def _put(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    packed.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)


@cache
def asset(name: str) -> str:
    """A reporter that a framework loads, such as `node_reporter.mjs`.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    return (_ROOT / "assets" / name).read_text(encoding="utf-8")
