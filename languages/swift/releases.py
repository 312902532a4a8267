"""Swift releases: that of a Debian release, the others as official images."""

from __future__ import annotations

from datetime import date

from languages import apt
from languages.base import Release
from languages.scripting.releases import DebianReleases

_UNUSED = (
    "bin/clangd bin/docc bin/lldb-server bin/sourcekit-lsp lib/liblldb.so* lib/libLTO.so* lib/libsourcekitdInProc.so"
    " lib/swift/embedded"
)
"""A gigabyte of editors' tools, debuggers and libraries for microcontrollers, which no build needs."""
_DEBIAN = DebianReleases(
    toolchain=f"{apt.render_install(('swiftlang',))} && cd /usr/libexec/swift && rm -rf {_UNUSED}",
    probe="swift --version > /dev/null",
)


def _make_release(version: str, system: str, released: date, suite: str | None = None) -> Release:
    return _DEBIAN.make(version, f"swift:{version}-{system}", released, suite)


RELEASES = (
    _make_release("5.7", "jammy", date(2022, 9, 12)),
    _make_release("5.8", "jammy", date(2023, 3, 30)),
    _make_release("5.9", "jammy", date(2023, 9, 18)),
    _make_release("5.10", "jammy", date(2024, 3, 5)),
    _make_release("6.0", "bookworm", date(2024, 9, 17), "trixie"),
    _make_release("6.1", "bookworm", date(2025, 3, 31)),
    _make_release("6.2", "bookworm", date(2025, 9, 15)),
)
"""Images of releases before 5.7 have a Python that is too old for the readers of reports."""
DEFAULT = "6.0"
