"""Program store: volumes of the engine with the programs of scaffolds, installed when they are first needed."""

from __future__ import annotations

import hashlib
import logging
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from backends.sandbox.execution import ResourceLimits
from backends.sandbox.locks import hold_machine_lock
from backends.sandbox.mounts import Mount
from backends.sandbox.volumes import StoredVolume
from backends.services import Services
from core.errors import MachineError
from guest.agents import PROGRAM_FOLDER
from samplers.programs.program import PROGRAM, TOOLBOX, TOOLBOX_STEPS, Program

log = logging.getLogger(__name__)

PREFIX = "mergemill-program-"
"""Beginning of the names of all volumes."""
READY = ".mergemill-ready"
"""File of a volume whose installation is complete."""
MARK_PREFIX = "mergemill-installed-"
"""Beginning of the names of empty volumes, each of which marks another one as complete."""
MARK_LABEL = "mergemill.installed"
"""Label of a mark: the time of the marked volume, which engines change with its files or when it is made again."""
INSTALL_PYTHON = PROGRAM_FOLDER / "install_python.py"
SCRIPT = f"/run/mergemill/{INSTALL_PYTHON.name}"
INSTALL_COMMAND = "mergemill images programs"


@dataclass(frozen=True, kw_only=True)
class ProgramBase:
    """Image in which programs are installed, and the programs that installing needs.

    `python`: path of its interpreter; `files` and `env`: CA bundle, proxies and indexes of this machine.
    """

    image: str
    python: str
    files: Mapping[str, bytes]
    env: Mapping[str, str]


class ProgramStore:
    """Volumes with programs. Threads and processes may share it.

    Args:
        services: the sandbox and limits.
        open_base: function that returns the image to install in, which may take long the first time.
    """

    def __init__(self, services: Services, open_base: Callable[[], ProgramBase]) -> None:
        self._services = services
        self._open_base = open_base
        self._base: ProgramBase | None = None
        self._ready: set[str] = set()
        self._lock = threading.Lock()

    def ensure(self, program: Program | None) -> tuple[Mount, ...]:
        """Return the mounts of the portable Python and of a program, installed where they are missing.

        Raises:
            MachineError: it cannot be installed.
            Transient: the engine failed.
        """
        with self._lock:
            base = self._base = self._base or self._open_base()
            mounts = [self._ensure_toolbox(base)]
            if program is not None:
                mounts.append(self._ensure_program(base, program, mounts[0]))
        return tuple(replace(mount, read_only=True) for mount in mounts)

    def has_volumes(self, program: Program | None, base: ProgramBase) -> bool:
        """Return whether there are volumes of the portable Python and of a program, as made in a base."""
        names = {volume.name for volume in self.list_installed()}
        toolbox = name_toolbox(base)
        return toolbox in names and (program is None or name_program(program, toolbox) in names)

    def list_installed(self) -> list[StoredVolume]:
        """Return the volumes of all programs, those of earlier versions among them."""
        return self._services.sandbox.volumes.list_volumes(PREFIX)

    def remove(self, names: Sequence[str]) -> list[StoredVolume]:
        """Remove the volumes of some programs, all for no names, and return them; those in use stay."""
        volumes = self._services.sandbox.volumes
        wanted = [volume for volume in self.list_installed() if not names or get_program_name(volume) in names]
        removed = [volume for volume in wanted if volumes.remove(volume.name)]
        for volume in removed:
            volumes.remove(MARK_PREFIX + volume.name)
        return removed

    def get_image(self) -> str:
        """Return the image that programs are installed in: a small system for tasks that have none."""
        with self._lock:
            self._base = self._base or self._open_base()
            return self._base.image

    def _ensure_toolbox(self, base: ProgramBase) -> Mount:
        mount = Mount(source=name_toolbox(base), target=TOOLBOX, read_only=False)
        check = f"{TOOLBOX}/bin/python3 -c pass"
        files = {**base.files, SCRIPT: INSTALL_PYTHON.read_bytes()}
        self._ensure_volume(replace(base, files=files), [mount], TOOLBOX_STEPS, check)
        return mount

    def _ensure_program(self, base: ProgramBase, program: Program, toolbox: Mount) -> Mount:
        mount = Mount(source=name_program(program, toolbox.source), target=PROGRAM, read_only=False)
        steps = f"packages=({shlex.join(program.packages)}){program.install_steps}"
        self._ensure_volume(base, [mount, toolbox], steps, f"{program.command} {program.check}")
        return mount

    def _ensure_volume(self, base: ProgramBase, mounts: Sequence[Mount], steps: str, check: str) -> None:
        """Install into the first of the mounts the packages that are missing there."""
        volume = mounts[0].source
        if volume in self._ready:
            return
        if not self._is_marked(volume):
            with hold_machine_lock("programs", volume):
                self._services.sandbox.volumes.create(volume, {"mergemill.program": volume})
                self._install(base, mounts, steps, check)
                self._mark(volume)
        self._ready.add(volume)

    def _is_marked(self, volume: str) -> bool:
        """Return whether a volume is known to be complete, without the container that looks into it."""
        stored, mark = self._find_volume(volume), self._find_volume(MARK_PREFIX + volume)
        return bool(stored and mark and stored.modified_at and mark.labels.get(MARK_LABEL) == stored.modified_at)

    def _mark(self, volume: str) -> None:
        if stored := self._find_volume(volume):
            volumes = self._services.sandbox.volumes
            volumes.remove(MARK_PREFIX + volume)  # labels cannot be changed
            volumes.create(MARK_PREFIX + volume, {MARK_LABEL: stored.modified_at})

    def _find_volume(self, name: str) -> StoredVolume | None:
        listed = self._services.sandbox.volumes.list_volumes(name)
        return next((volume for volume in listed if volume.name == name), None)

    def _install(self, base: ProgramBase, mounts: Sequence[Mount], steps: str, check: str) -> None:
        """Install unless the volume is ready; the files that an interrupted installation left are removed first."""
        target, limits = mounts[0].target, self._limits()
        env = {**base.env, "PYTHON": base.python, "INSTALL_PYTHON": SCRIPT}
        with self._services.sandbox.open_session(
            base.image, limits=limits, files=base.files, env=env, mounts=mounts
        ) as shell:
            if shell.run(f"test -f {target}/{READY}", seconds=60).exit_code == 0:
                return
            name = mounts[0].source.removeprefix(PREFIX).rpartition("-")[0]
            log.warning("installing %s for scaffolds; it is kept in the volume %s", name, mounts[0].source)
            script = f"set -e\nfind {target} -mindepth 1 -delete\n{steps}\n{check} >/dev/null\ntouch {target}/{READY}"
            result = shell.run(script, seconds=limits.seconds)
        if result.exit_code:
            detail = " ".join(result.output.split())[-300:] or f"exit code {result.exit_code}"
            raise MachineError(f"{name} could not be installed: {detail}", advice=f"{INSTALL_COMMAND} {name}")

    def _limits(self) -> ResourceLimits:
        return replace(self._services.build_limits(), output_bytes=64 * 1024)


def get_program_name(volume: StoredVolume) -> str:
    """Return the name of the program that a volume holds; `toolbox` is the portable Python."""
    return volume.name.removeprefix(PREFIX).rpartition("-")[0]


def name_toolbox(base: ProgramBase) -> str:
    """Return the volume of the portable Python of a base."""
    return f"{PREFIX}toolbox-{_hash_parts(base.image, base.python, INSTALL_PYTHON.read_text(), TOOLBOX_STEPS)}"


def name_program(program: Program, toolbox: str) -> str:
    """Return the volume of a program that runs on a portable Python, or beside it."""
    key = _hash_parts(toolbox, program.kind, shlex.join(program.packages), program.install_steps)
    return f"{PREFIX}{program.name}-{key}"


def _hash_parts(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
