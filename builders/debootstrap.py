"""Debian root file systems made by debootstrap, finished and slimmed, as a tar stream.

debootstrap runs in a mount namespace of its own, so that nothing stays mounted when it fails.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from backends.sandbox.container_names import make_folder_prefix
from core.errors import MachineError, Transient

log = logging.getLogger(__name__)

INSTALL_COMMAND = "apt-get install -y --no-install-recommends debootstrap"
NETWORK_WORDS = (
    "failed getting release",
    "couldn't download",
    "failed to fetch",
    "could not resolve",
    "invalid release",
)
EXCLUDED_PATHS = ("./dev/*", "./proc/*", "./sys/*", "./run/*", "./tmp/*", "./debootstrap")
CLEAN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class FinishScript:
    """A shell script that runs in the new root, and its arguments."""

    script: str
    arguments: tuple[str, ...]


def find_missing_requirement() -> str | None:
    """Return the tools that this machine lacks to run debootstrap, or None."""
    if shutil.which("debootstrap", path=CLEAN_PATH) is None:
        return f"debootstrap is not installed ({INSTALL_COMMAND})"
    return None if os.geteuid() == 0 else "debootstrap needs root"


@contextlib.contextmanager
def open_root_file_system(suite: str, packages: Sequence[str], uv: str, finishing: FinishScript) -> Iterator[IO[bytes]]:
    """Yield an uncompressed tar of the suite with `packages` and the `uv` binary, after the finishing script ran.

    Takes about a minute. Proxy variables of this process apply.

    Raises:
        MachineError: debootstrap or root permission is missing, or debootstrap fails on this machine.
        Transient: the mirror is unreachable.
    """
    if missing := find_missing_requirement():
        raise MachineError(f"Debian {suite} cannot be made: {missing}", advice=INSTALL_COMMAND)
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("base"), ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "root"
        log.info("debootstrap %s: about a minute", suite)
        _run_command(["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, str(root)], suite)
        shutil.copy2(uv, root / "usr/local/bin/uv")
        (root / "usr/local/bin/uv").chmod(0o755)
        (root / "finish.sh").write_text(finishing.script, encoding="utf-8")
        _run_command(["chroot", str(root), "/bin/sh", "/finish.sh", *finishing.arguments], suite)
        (root / "finish.sh").unlink()
        with _open_tar(root) as stream:
            yield stream


def _run_command(command: Sequence[str], suite: str) -> None:
    environment = os.environ | {"PATH": CLEAN_PATH, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    process = subprocess.run(
        ["unshare", "--mount", *command], env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if process.returncode == 0:
        return
    detail = " | ".join((process.stdout + process.stderr).strip().splitlines()[-3:])
    if any(words in detail.lower() for words in NETWORK_WORDS):
        raise Transient(f"Debian {suite} cannot be fetched: {detail}", advice="check the network and proxy settings")
    raise MachineError(f"Debian {suite} cannot be made: {detail}", advice="mergemill doctor")


@contextlib.contextmanager
def _open_tar(root: Path) -> Iterator[IO[bytes]]:
    excluded = [f"--exclude={path}" for path in EXCLUDED_PATHS]
    command = ["tar", "--numeric-owner", "-C", str(root), "-c", *excluded, "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdout is None or process.stderr is None:
            raise AssertionError("the process has no pipes")
        yield process.stdout
        process.stdout.close()
        detail = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise Transient(f"the root file system could not be read: {detail}")
