"""Python interpreters of this machine that a base can take in: those of pyenv and of uv.

They are copied to the prefix they were built for. pyenv's are linked to libraries of this machine's Debian release and
run on a base of that release only; it has the libraries, since Debian's own Python needs the same. uv's bring theirs.
"""

from __future__ import annotations

import os
import platform
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PYENV = re.compile(r"^(\d+\.\d+)\.(\d+)$")
UV = re.compile(rf"^cpython-(\d+\.\d+)\.(\d+)-linux-{platform.machine()}-gnu$")
LEFT_OUT = re.compile(
    r"/bin/(?!python)|/share\b|/lib/(tcl|tk|itcl|thread|tdbc)[\d.]+"
    r"|/lib/python[\d.]+/(site-packages/.|idlelib$|tkinter$|turtledemo$|lib2to3/tests$|test/(?!__init__\.py$|support\b))"
    r"|.*/__pycache__$|.*\.a$"
)
"""Parts of an installation that no test of a package needs, foreign packages above all."""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """An interpreter: `version` 3.8, `patch` 18, its prefix, and whether it brings its libraries along."""

    version: str
    patch: int
    prefix: Path
    standalone: bool

    @property
    def python(self) -> str:
        """Path of the executable, here and in the box."""
        return str(self.prefix / "bin" / f"python{self.version}")


def found() -> dict[str, Interpreter]:
    """Version -> its newest interpreter."""
    newest: dict[str, Interpreter] = {}
    for one in [*_installed(_pyenv_root() / "versions", PYENV), *_installed(_uv_root(), UV)]:
        if one.version not in newest or newest[one.version].patch < one.patch:
            newest[one.version] = one
    return newest


def debian_suite() -> str | None:
    """This machine's Debian release (`bookworm`), or None on another system."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return release.get("VERSION_CODENAME") if release.get("ID") == "debian" else None


def _pyenv_root() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")


def _uv_root() -> Path:
    if own := os.environ.get("UV_PYTHON_INSTALL_DIR"):
        return Path(own)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "uv" / "python"


def _installed(folder: Path, names: re.Pattern[str]) -> list[Interpreter]:
    found = []
    for prefix in sorted(folder.iterdir()) if folder.is_dir() else []:
        match = names.match(prefix.name)
        if match and not prefix.is_symlink() and (prefix / "bin" / f"python{match[1]}").is_file():
            found.append(
                Interpreter(version=match[1], patch=int(match[2]), prefix=prefix.resolve(), standalone=names is UV)
            )
    return found


def write_tar(interpreter: Interpreter, out: IO[bytes]) -> None:
    """The interpreter as a tar of its absolute paths, owner root, without what LEFT_OUT names."""
    prefix = interpreter.prefix
    inside = f"{prefix}/".lstrip("/")

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if LEFT_OUT.match("/" + entry.name.removeprefix(inside)):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode |= 0o755 if entry.isdir() or entry.mode & 0o100 else 0o444
        return entry

    with tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        # The test user must reach a prefix below /root, whose folder Debian closes to others.
        for parent in list(reversed(prefix.parents))[1:]:
            entry = tarfile.TarInfo(str(parent).lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(prefix, arcname=str(prefix).lstrip("/"), filter=kept)
