"""Python interpreters of this machine that can be copied into a base: those of pyenv and of uv.

They are copied to the prefix they were built for. pyenv's are linked to libraries of this machine's Debian release and
run only on a base of that release, which has the libraries because Debian's own Python needs them. uv's are standalone.
"""

from __future__ import annotations

import os
import platform
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PYENV_FOLDER = re.compile(r"^(\d+\.\d+)\.(\d+)$")
UV_FOLDER = re.compile(rf"^cpython-(\d+\.\d+)\.(\d+)-linux-{platform.machine()}-gnu$")
EXCLUDED_PATHS = re.compile(
    r"/bin/(?!python)|/share\b|/lib/(tcl|tk|itcl|thread|tdbc)[\d.]+"
    r"|/lib/python[\d.]+/(site-packages/.|idlelib$|tkinter$|turtledemo$|lib2to3/tests$|test/(?!__init__\.py$|support\b))"
    r"|.*/__pycache__$|.*\.a$"
)
"""Parts of an installation that no test of a package needs, in particular installed packages."""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python interpreter: `version` 3.8, `patch` 18, its prefix, and whether it includes its libraries."""

    version: str
    patch: int
    prefix: Path
    standalone: bool

    @property
    def python(self) -> str:
        """Path of the executable, on this machine and in the container."""
        return str(self.prefix / "bin" / f"python{self.version}")


def find_interpreters() -> dict[str, Interpreter]:
    """Return the newest interpreter by version."""
    newest: dict[str, Interpreter] = {}
    for installation in [
        *_list_installations(_find_pyenv_root() / "versions", PYENV_FOLDER),
        *_list_installations(_find_uv_root(), UV_FOLDER),
    ]:
        if installation.version not in newest or newest[installation.version].patch < installation.patch:
            newest[installation.version] = installation
    return newest


def detect_debian_suite() -> str | None:
    """Return this machine's Debian release (`bookworm`), or None on another system."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return release.get("VERSION_CODENAME") if release.get("ID") == "debian" else None


def _find_pyenv_root() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")


def _find_uv_root() -> Path:
    if own := os.environ.get("UV_PYTHON_INSTALL_DIR"):
        return Path(own)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "uv" / "python"


def _list_installations(folder: Path, names: re.Pattern[str]) -> list[Interpreter]:
    installations = []
    for prefix in sorted(folder.iterdir()) if folder.is_dir() else []:
        match = names.match(prefix.name)
        if match and not prefix.is_symlink() and (prefix / "bin" / f"python{match[1]}").is_file():
            installations.append(
                Interpreter(
                    version=match[1], patch=int(match[2]), prefix=prefix.resolve(), standalone=names is UV_FOLDER
                )
            )
    return installations


def write_tar(interpreter: Interpreter, out: IO[bytes]) -> None:
    """Write the interpreter as a tar of absolute paths, owned by root, without EXCLUDED_PATHS."""
    prefix = interpreter.prefix
    inside = f"{prefix}/".lstrip("/")

    def select_entry(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if EXCLUDED_PATHS.match("/" + entry.name.removeprefix(inside)):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode |= 0o755 if entry.isdir() or entry.mode & 0o100 else 0o444
        return entry

    with tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        # Debian makes /root unreadable to others, but the test user must reach a prefix below it.
        for parent in list(reversed(prefix.parents))[1:]:
            entry = tarfile.TarInfo(str(parent).lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(prefix, arcname=str(prefix).lstrip("/"), filter=select_entry)
