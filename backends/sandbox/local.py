"""Sandbox without an engine: subprocesses of this machine, each in a temporary folder.

There is NO isolation: commands run as the user of mergemill, with network, and can read and write whatever that user
can. `create_sandbox` therefore rejects it unless `allow_untrusted_local` is set. Time and output are limited and the
whole process group is killed at the end; the other limits and `user` are not enforced.

The temporary folder stands for the root of a container: the file `/tmp/out` of `files` and `collect` is `tmp/out` below
it, and commands start in it. There is an image, `local`, the empty folder, and no image store.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, cast

from backends.sandbox.archive import MAX_FILE_BYTES
from backends.sandbox.container_names import find_orphaned_folders, make_container_name
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.mounts import Mount
from backends.sandbox.output import CappedOutput, LineBuffer
from core.errors import CancelledRunError, InputError, Transient, UsageError

if TYPE_CHECKING:
    from backends.sandbox.images import ImageStore
    from backends.sandbox.volumes import VolumeStore
    from core.settings.machine import SandboxSettings

IMAGE = "local"
"""The only image: an empty folder, and the programs of this machine."""
POLL_SECONDS = 0.1
READS_PER_CHECK = 64
"""Reads between two checks of the clock, so that endless output does not outlive its time limit."""
KILLED_EXIT_CODE = 128 + signal.SIGKILL
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes of a shell for a command that does not exist or cannot be executed."""
BASH = "/bin/bash"


@dataclass(frozen=True, kw_only=True)
class CommandPlace:
    """Where commands of a sandbox of this machine run.

    `root`: the folder that stands for `/`. `workdir`: absolute path below it. `network`: whether they have a network.
    """

    root: Path
    limits: ResourceLimits
    workdir: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    mounts: Sequence[Mount] = ()


@dataclass(frozen=True, kw_only=True)
class HostCommand:
    """A command as this machine runs it."""

    argv: Sequence[str]
    folder: Path
    env: Mapping[str, str]


def create_sandbox(sandbox: SandboxSettings, _: Callable[[str], None]) -> LocalSandbox:
    """Create the sandbox of `--sandbox local`.

    Raises:
        UsageError: `allow_untrusted_local` is not set.
    """
    if not sandbox.allow_untrusted_local:
        advice = "--sandbox docker, or --allow-untrusted-local for code that you trust"
        raise UsageError("--sandbox local runs foreign code without isolation", advice=advice)
    return LocalSandbox()


class LocalSandbox:
    """Sandbox of subprocesses; see the module for the aspects that it does not isolate. Threads may share it."""

    name: ClassVar[str] = "local"
    image: ClassVar[str] = IMAGE

    def __init__(self) -> None:
        self.images = cast("ImageStore", MissingStore(self.name, "image"))
        self.volumes = cast("VolumeStore", MissingStore(self.name, "volume"))
        self._stopping = threading.Event()

    def run(
        self,
        image: str,
        command: Sequence[str],
        *,
        limits: ResourceLimits,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        network: bool = False,
        user: str = "root",
    ) -> ExecResult:
        """Run `command` in an empty folder; see `backends.sandbox.base.Sandbox.run`."""
        del user
        with self._open_folder(image) as root:
            place = CommandPlace(root=root, limits=limits, env=env or {}, network=network)
            self.write_files(place, files or {})
            result = self.execute(place, command, limits.seconds)
            return replace(result, files=self.collect_files(place, collect))

    @contextlib.contextmanager
    def open_pool(self, image: str, *, limits: ResourceLimits) -> Iterator[LocalPool]:
        """Open a pool; see `backends.sandbox.base.Sandbox.open_pool`."""
        yield LocalPool(self, image, limits)

    @contextlib.contextmanager
    def open_session(
        self,
        image: str,
        *,
        limits: ResourceLimits,
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "/",
        network: bool = True,
        mounts: Sequence[Mount] = (),
    ) -> Iterator[LocalSession]:
        """Open a session in a single folder; see `backends.sandbox.base.Sandbox.open_session`.

        Raises:
            UsageError: it would need mounts that this sandbox does not have.
        """
        self.check_mounts(mounts)
        with self._open_folder(image) as root:
            place = CommandPlace(
                root=root, limits=limits, workdir=workdir, env=env or {}, network=network, mounts=tuple(mounts)
            )
            self.write_files(replace(place, workdir="/"), files or {})
            if tree is not None:
                with tree() as stream:
                    _unpack_tar(stream, root)
            yield LocalSession(self, place)

    @contextlib.contextmanager
    def open_process(
        self,
        image: str,
        command: Sequence[str],
        *,
        limits: ResourceLimits,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Iterator[LocalProcess]:
        """Start a program in an empty folder; see `backends.sandbox.base.Sandbox.open_process`."""
        with self._open_folder(image) as root:
            place = CommandPlace(root=root, limits=limits, env=env or {})
            self.write_files(place, files or {})
            host = self.build_command(place, command)
            with (
                tempfile.TemporaryFile() as errors,
                subprocess.Popen(
                    host.argv,
                    cwd=host.folder,
                    env=host.env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                ) as process,
            ):
                try:
                    yield LocalProcess(process, errors, limits, self._stopping)
                finally:
                    # Its children would keep the folder and the pipes open.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    with contextlib.suppress(BrokenPipeError):
                        cast("IO[bytes]", process.stdin).close()

    def stop(self) -> None:
        """End all running commands and start none."""
        self._stopping.set()

    def reap(self) -> int:
        """Remove the folders of dead mergemill processes of this machine and return how many."""
        orphans = find_orphaned_folders()
        for path in orphans:
            shutil.rmtree(path, ignore_errors=True)
        return len(orphans)

    @contextlib.contextmanager
    def _open_folder(self, image: str) -> Iterator[Path]:
        if self._stopping.is_set():
            raise CancelledRunError("stopped")
        if image != self.image:
            raise InputError(f"no such image: {image}", advice=f"--sandbox docker; --sandbox {self.name} has no images")
        # Resolved, since `_locate` compares paths, and the folder for temporary files is a link on some systems.
        root = Path(tempfile.gettempdir()).resolve() / make_container_name()
        root.mkdir(mode=0o700)
        try:
            (root / "tmp").mkdir()
            self.prepare_root(root)
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def prepare_root(self, root: Path) -> None:
        """Prepare a new folder that stands for `/`: nothing here."""
        del root

    def check_mounts(self, mounts: Sequence[Mount]) -> None:
        """Raise UsageError for mounts: there are none here."""
        if mounts:
            raise UsageError(f"--sandbox {self.name} cannot mount folders", advice="--sandbox docker")

    def build_command(self, place: CommandPlace, command: Sequence[str]) -> HostCommand:
        """Return the command as this machine runs it: as it is, in the folder."""
        folder = _locate(place.root, place.workdir)
        # Nothing else of this process's environment: it may hold keys and tokens.
        variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LANG": "C.UTF-8"}
        return HostCommand(argv=command, folder=folder, env=variables | dict(place.env))

    def write_files(self, place: CommandPlace, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files (absolute path -> content)."""
        for path, content in files.items():
            located = _locate(place.root, path)
            located.parent.mkdir(parents=True, exist_ok=True)
            located.write_bytes(content)
            located.chmod(mode)

    def collect_files(self, place: CommandPlace, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the content of those paths that are regular files of a bearable size; links are not followed."""
        files = {}
        for path in paths:
            located = _locate(place.root, path)
            # A link could lead to a file of this machine that the command itself may not read.
            if located.resolve() == located and located.is_file() and located.stat().st_size <= MAX_FILE_BYTES:
                files[path] = located.read_bytes()
        return files

    def execute(self, place: CommandPlace, command: Sequence[str], seconds: float) -> ExecResult:
        """Run a command in a process group of its own, which is killed when the command ends or its time is up.

        Raises:
            CancelledRunError: `stop` was called.
        """
        output, started = CappedOutput(place.limits.output_bytes), time.monotonic()
        host = self.build_command(place, command)
        try:
            process = subprocess.Popen(
                host.argv,
                cwd=host.folder,
                env=host.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            # As a shell exits, so that the result is that of other sandboxes.
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            return ExecResult(exit_code=code, output=f"{error}\n", files={}, seconds=0.0, killed_by=None)
        with process:
            killed_by = self._follow(process, output, started + seconds, self.watch_place(place))
        if self._stopping.is_set():
            raise CancelledRunError("stopped")
        # Python has a negative signal number where a shell has 128 and the number.
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return ExecResult(
            exit_code=KILLED_EXIT_CODE if killed_by else code,
            output=output.get_text(),
            files={},
            seconds=time.monotonic() - started,
            killed_by=killed_by,
        )

    def watch_place(self, place: CommandPlace) -> Callable[[], str | None]:
        """Return a function that is called while a command runs, and names a limit that it exceeds: none here."""
        del place
        return lambda: None

    def _follow(
        self,
        process: subprocess.Popen[bytes],
        output: CappedOutput,
        deadline: float,
        watch: Callable[[], str | None],
    ) -> str | None:
        """Read output until the command ends, then kill its group; return the limit that ended it first, else None."""
        stdout = cast("IO[bytes]", process.stdout)
        # A child that lives on holds the pipe open, so a blocking read could outlast the command.
        os.set_blocking(stdout.fileno(), False)
        has_ended = False
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(stdout, selectors.EVENT_READ)
                while time.monotonic() < deadline and not self._stopping.is_set():
                    if exceeded := watch():
                        return exceeded
                    # The process is left unreaped, so that its group cannot be another's when it is killed below.
                    has_ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
                    is_open = _read_available(stdout, output)
                    if has_ended:
                        return None
                    if is_open:
                        selector.select(POLL_SECONDS)
                    else:
                        time.sleep(POLL_SECONDS)
                return "time"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


class LocalPool:
    """See `backends.sandbox.base.ContainerPool`: each command runs in an empty folder; none is prepared ahead."""

    def __init__(self, sandbox: LocalSandbox, image: str, limits: ResourceLimits) -> None:
        self._sandbox = sandbox
        self._image = image
        self._limits = limits

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        seconds: float | None = None,
        last: bool = False,
    ) -> ExecResult:
        """Run `command` in an empty folder."""
        del last
        limits = replace(self._limits, seconds=min(self._limits.seconds, seconds or self._limits.seconds))
        return self._sandbox.run(self._image, command, limits=limits, files=files, collect=collect, env=env)


class LocalSession:
    """See `backends.sandbox.base.ContainerSession`: commands share a folder.

    Args:
        sandbox: sandbox that runs the commands.
        place: place where they run.
    """

    def __init__(self, sandbox: LocalSandbox, place: CommandPlace) -> None:
        self._sandbox = sandbox
        self._place = place

    def run(self, command: str, *, seconds: float) -> ExecResult:
        """Run a line of bash for at most `seconds`."""
        return self._sandbox.execute(self._place, [BASH, "-c", command], seconds)

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None."""
        return self._sandbox.collect_files(self._place, [path]).get(path)

    def write_files(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files."""
        self._sandbox.write_files(self._place, files, mode=mode)


class LocalProcess:
    """See `backends.sandbox.base.ContainerProcess`.

    Args:
        process: started program.
        errors: file that its stderr is written to.
        limits: `seconds` and `output_bytes` are enforced.
        stopping: set when the sandbox stops.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], errors: IO[bytes], limits: ResourceLimits, stopping: threading.Event
    ) -> None:
        self._stdin, self._stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        self._errors = errors
        self._limits = limits
        self._stopping = stopping
        self._deadline = time.monotonic() + limits.seconds
        self._lines = LineBuffer()
        self._has_ended = False

    def write(self, data: bytes) -> None:
        """Write to stdin."""
        if self._has_ended:
            raise Transient("the program has ended")
        try:
            self._stdin.write(data)
            self._stdin.flush()
        except OSError as error:
            raise Transient(f"the program does not read its input: {error.strerror}") from error

    def read_line(self) -> bytes:
        """Return the next line of stdout, empty at the end."""
        while (line := self._lines.take_line()) is None:
            if self._stopping.is_set():
                raise CancelledRunError("stopped")
            self._has_ended = time.monotonic() >= self._deadline or (
                bool(select.select([self._stdout], [], [], POLL_SECONDS)[0]) and not self._read_chunk()
            )
            if self._has_ended:
                return b""
        return line

    def _read_chunk(self) -> bool:
        data = os.read(self._stdout.fileno(), 1 << 18)
        self._lines.write(data)
        return bool(data)

    def get_errors(self) -> str:
        """Return head and tail of stderr."""
        output = CappedOutput(self._limits.output_bytes)
        # By position: the program goes on writing through the same descriptor.
        output.write(os.pread(self._errors.fileno(), self._limits.output_bytes, 0))
        return output.get_text()


class MissingStore:
    """Store of images or volumes of a sandbox that has none: each method raises UsageError."""

    def __init__(self, sandbox: str, content: str) -> None:
        self._sandbox = sandbox
        self._content = content

    def __getattr__(self, name: str) -> Any:
        raise UsageError(
            f"--sandbox {self._sandbox} has no {self._content} store ({self._content}s.{name})",
            advice="--sandbox docker",
        )


def _read_available(stdout: IO[bytes], output: CappedOutput) -> bool:
    """Read the data that is in the pipe, or a good part of it; return whether the pipe is still open."""
    # Bounded, so that a command that prints without end is still checked against its limits.
    for _ in range(READS_PER_CHECK):
        try:
            data = os.read(stdout.fileno(), 1 << 18)
        except BlockingIOError:
            return True
        if not data:
            return False
        output.write(data)
    return True


def _locate(root: Path, path: str) -> Path:
    """Return the file below `root` that stands for an absolute path.

    Raises:
        InputError: the path leaves `root`.
    """
    located = Path(os.path.normpath(root / path.lstrip("/")))
    if not located.is_relative_to(root):
        raise InputError(f"{path} is not below the root of the sandbox")
    return located


def _unpack_tar(stream: IO[bytes], root: Path) -> None:
    # Owners of the archive may not exist here, and setting them needs root.
    with subprocess.Popen(["tar", "-x", "--no-same-owner", "-C", str(root)], stdin=subprocess.PIPE) as process:
        shutil.copyfileobj(stream, cast("IO[bytes]", process.stdin), 1 << 20)
    if process.returncode:
        raise Transient(f"tar ended with exit code {process.returncode}: is the disk full?")
