"""Sandbox without an engine, and isolated: commands run in Linux namespaces of their own, made by bubblewrap.

A command sees a folder of this machine as its root, the programs of this machine (`/usr`) read-only, and nothing else:
no network but its own loopback, no process but its own, no file of the user. Files are written and read by commands
inside, because a link that a command made may lead anywhere on this machine.

There is a single image, `host`: an empty folder, and the programs of this machine. Time and output are limited, memory
and the size of a file for each process. A command is killed when the disk lost more than its limit and its own files
are more than that, deleted files that it holds open included. `pids` is enforced where mergemill does not run as root,
and `cpus` is not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from backends.sandbox.archive import MAX_FILE_BYTES
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.local import BASH, CommandPlace, HostCommand, LocalSandbox
from core.errors import MachineError, Transient, UsageError

if TYPE_CHECKING:
    from backends.sandbox.mounts import Mount
    from core.settings.machine import SandboxSettings

PROGRAM = "bwrap"
IMAGE = "host"
"""The only image: an empty folder, and the programs of this machine."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME = "/root"
CHECK_SECONDS = 0.5
"""Between two looks at the disk."""
PROBE_LIMITS = ResourceLimits(seconds=30, memory_mb=256, disk_mb=16, pids=64, cpus=1, output_bytes=10_000)
FILE_SECONDS = 60.0
"""Time for writing or reading a file inside."""
_SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_NETWORK_FILES = ("/etc/resolv.conf", "/etc/ssl", "/etc/pki")
_ACCOUNTS = {"passwd": "root:x:0:0:root:/root:/bin/bash\n", "group": "root:x:0:\n", "hosts": "127.0.0.1 localhost\n"}
_START = 'ulimit -c 0; ulimit -f "$1"; ulimit -v "$2"; ulimit -u "$3" 2>/dev/null; shift 3; exec "$@"'
_WRITE = 'mkdir -p -- "$(dirname -- "$1")" && rm -f -- "$1" && cat > "$1" && chmod "$2" -- "$1"'
_READ = (
    '[ "$(realpath -- "$1")" = "$1" ] && [ -f "$1" ] && [ "$(stat -c %s -- "$1")" -le "$2" ] || exit "$3"; cat -- "$1"'
)
_BLOCK_BYTES = 512
"""Unit of `st_blocks`."""
_NO_FILE = 44
"""Exit code of `_READ` where there is no such file."""


def create_sandbox(_: SandboxSettings, record_use: Callable[[str], None]) -> BubblewrapSandbox:
    """Create the sandbox of `--sandbox bubblewrap`.

    Raises:
        MachineError: bubblewrap is missing, or this machine does not let it make namespaces.
    """
    del record_use
    if shutil.which(PROGRAM) is None:
        raise MachineError("--sandbox bubblewrap needs bubblewrap 0.7", advice="apt-get install -y bubblewrap")
    sandbox = BubblewrapSandbox()
    probe = sandbox.run(IMAGE, ["true"], limits=PROBE_LIMITS)
    if probe.exit_code:
        advice = "permit user namespaces (sysctl kernel.unprivileged_userns_clone=1), or --sandbox docker"
        raise MachineError(f"bubblewrap makes no namespaces here: {probe.output.strip()[-200:]}", advice=advice)
    return sandbox


class BubblewrapSandbox(LocalSandbox):
    """Sandbox of namespaces; see the module. Threads may share it."""

    name: ClassVar[str] = "bubblewrap"
    image: ClassVar[str] = IMAGE

    def prepare_root(self, root: Path) -> None:
        """Make the links and files of a system that programs look for."""
        for name in _SYSTEM_FOLDERS:
            if (host := Path("/", name)).is_symlink():
                (root / name).symlink_to(host.readlink())
        (root / "etc").mkdir()
        for name, content in _ACCOUNTS.items():
            (root / "etc" / name).write_text(content)
        (root / HOME.strip("/")).mkdir()

    def check_mounts(self, mounts: Sequence[Mount]) -> None:
        """Raise UsageError for volumes: only folders can be mounted."""
        if any(not mount.source.startswith("/") for mount in mounts):
            raise UsageError("--sandbox bubblewrap has no volumes", advice="--sandbox docker")

    def build_command(self, place: CommandPlace, command: Sequence[str]) -> HostCommand:
        """Return the command of bubblewrap that runs the command inside."""
        limits = place.limits
        binds = ["--bind", str(place.root), "/", "--ro-bind", "/usr", "/usr"]
        for name in _SYSTEM_FOLDERS:
            if (host := Path("/", name)).is_dir() and not host.is_symlink():
                binds += ["--ro-bind", str(host), str(host)]
        for path in _SYSTEM_FILES:
            binds += ["--ro-bind-try", path, path]
        for mount in place.mounts:
            binds += ["--ro-bind" if mount.read_only else "--bind", mount.source, mount.target]
        options = ["--proc", "/proc", "--unshare-all", "--die-with-parent", "--new-session", "--dev", "/dev"]
        # Both are in memory, which the limits of processes do not count.
        options += ["--size", str(limits.shm_mb * 1024 * 1024), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
        if place.network:
            options += ["--share-net", *(word for path in _NETWORK_FILES for word in ("--ro-bind-try", path, path))]
        options += ["--uid", "0", "--gid", "0", "--hostname", "sandbox", "--chdir", place.workdir]
        numbers = [limits.disk_mb * 1024, limits.memory_mb * 1024, limits.pids]
        start = [BASH, "-c", _START, "bash", *map(str, numbers), *command]
        env = {"PATH": PATH, "HOME": HOME, "LANG": "C.UTF-8", **place.env}
        return HostCommand(argv=[PROGRAM, *binds, *options, "--", *start], folder=place.root, env=env)

    def write_files(self, place: CommandPlace, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files (absolute path -> content) by a command inside.

        Raises:
            Transient: a file cannot be written.
        """
        for path, content in files.items():
            done = self._run_inside(place, [BASH, "-c", _WRITE, "bash", path, f"{mode:o}"], content)
            if done.returncode:
                raise Transient(f"{path} cannot be written: {done.stderr.decode(errors='replace').strip()[-200:]}")

    def collect_files(self, place: CommandPlace, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the content of those paths that are regular files of a bearable size; links are not followed.

        Raises:
            Transient: no command runs inside.
        """
        files = {}
        for path in paths:
            done = self._run_inside(place, [BASH, "-c", _READ, "bash", path, str(MAX_FILE_BYTES), str(_NO_FILE)], b"")
            if done.returncode == 0:
                files[path] = done.stdout
            elif done.returncode != _NO_FILE:
                raise Transient(f"{path} cannot be read: {done.stderr.decode(errors='replace').strip()[-200:]}")
        return files

    def watch_place(self, place: CommandPlace) -> Callable[[], str | None]:
        """Return a function that names the limit `disk` once the files of the place are more than it.

        They are looked at each time the file system has lost that much, whoever took it.
        """
        begun, next_look = _measure_free(place.root), time.monotonic() + CHECK_SECONDS

        def watch() -> str | None:
            nonlocal begun, next_look
            if (now := time.monotonic()) < next_look:
                return None
            next_look = now + CHECK_SECONDS
            if begun - _measure_free(place.root) <= place.limits.disk_bytes:
                return None
            if _measure_files(place.root) > place.limits.disk_bytes:
                return "disk"
            begun = _measure_free(place.root)
            return None

        return watch

    def _run_inside(
        self, place: CommandPlace, command: Sequence[str], data: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        host = self.build_command(replace(place, workdir="/"), command)
        try:
            return subprocess.run(
                host.argv,
                cwd=host.folder,
                env=host.env,
                input=data,
                capture_output=True,
                check=False,
                timeout=FILE_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise Transient(f"a file of the sandbox took more than {FILE_SECONDS:.0f} seconds") from error


def _measure_free(folder: Path) -> int:
    """Return the free bytes of the file system of a folder."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _measure_files(root: Path) -> int:
    """Return the bytes of the files below a folder, and of the deleted files that processes in it hold open."""
    sizes: dict[tuple[int, int], int] = {}
    waiting = [str(root)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    _add_file(sizes, entry.stat(follow_symlinks=False))
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if not root.samefile(process / "root"):
                continue
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    if not (status := descriptor.stat()).st_nlink:
                        _add_file(sizes, status)
    return sum(sizes.values())


def _add_file(sizes: dict[tuple[int, int], int], status: os.stat_result) -> None:
    sizes[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK_BYTES
