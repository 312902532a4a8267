"""A Debian root file system by debootstrap, with its packages, finished and slimmed, as one tar stream.

debootstrap runs in a mount namespace of its own, so that nothing stays mounted whatever happens to it.
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

from mergemill.errors import MachineError, Transient

log = logging.getLogger(__name__)

INSTALL = "apt-get install -y --no-install-recommends debootstrap"
NETWORK_WORDS = (
    "failed getting release",
    "couldn't download",
    "failed to fetch",
    "could not resolve",
    "invalid release",
)
NOT_TAKEN = ("./dev/*", "./proc/*", "./sys/*", "./run/*", "./tmp/*", "./debootstrap")
CLEAN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class Finishing:
    """A shell script that is run in the new root, and its arguments."""

    script: str
    arguments: tuple[str, ...]


def can_debootstrap() -> str | None:
    """None, or what is missing for the Debian way."""
    if shutil.which("debootstrap", path=CLEAN_PATH) is None:
        return f"debootstrap is not installed ({INSTALL})"
    return None if os.geteuid() == 0 else "debootstrap needs root"


@contextlib.contextmanager
def root_file_system(suite: str, packages: Sequence[str], uv: str, finishing: Finishing) -> Iterator[IO[bytes]]:
    """An uncompressed tar of the suite: `packages`, the `uv` binary, and what the finishing script does.

    Takes about a minute. Proxy variables of this process are honoured.

    Raises:
        MachineError: debootstrap or root is missing, or it does not work here.
        Transient: the mirror is out of reach.
    """
    if missing := can_debootstrap():
        raise MachineError(f"Debian {suite} cannot be made: {missing}", advice=INSTALL)
    with tempfile.TemporaryDirectory(prefix="mergemill-base-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "root"
        log.info("debootstrap %s: about a minute", suite)
        _run(["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, str(root)], suite)
        shutil.copy2(uv, root / "usr/local/bin/uv")
        (root / "usr/local/bin/uv").chmod(0o755)
        (root / "finish.sh").write_text(finishing.script, encoding="utf-8")
        _run(["chroot", str(root), "/bin/sh", "/finish.sh", *finishing.arguments], suite)
        (root / "finish.sh").unlink()
        with _tar(root) as stream:
            yield stream


def _run(command: Sequence[str], suite: str) -> None:
    environment = os.environ | {"PATH": CLEAN_PATH, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["unshare", "--mount", *command], env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode == 0:
        return
    said = " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
    if any(words in said.lower() for words in NETWORK_WORDS):
        raise Transient(f"Debian {suite} cannot be fetched: {said}", advice="check the network and proxy settings")
    raise MachineError(f"Debian {suite} cannot be made: {said}", advice="mergemill doctor")


@contextlib.contextmanager
def _tar(root: Path) -> Iterator[IO[bytes]]:
    left_out = [f"--exclude={path}" for path in NOT_TAKEN]
    command = ["tar", "--numeric-owner", "-C", str(root), "-c", *left_out, "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdout is None or process.stderr is None:
            raise AssertionError("pipes were asked for")
        yield process.stdout
        process.stdout.close()
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise Transient(f"the root file system could not be read: {said}")
