"""Processes of the command line, forked from one that has imported its modules.

A new Python takes up to a second to import them, and the tests run a thousand commands. A forked process has a folder,
an environment, standard streams and an exit code of its own, as a new one has. Started as a program, this module is the
server, which all processes of a test run share; `CommandServer` is their side of it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import hashlib
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn, TextIO

ROOT = Path(__file__).parents[1]
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "SSL_", "TZ", "TMPDIR")
"""Beginnings of variables that a Python, its libraries or this server read before a command runs."""
USUAL_MODULES = (
    "builders.agent.policy",
    "builders.build",
    "docker",
    "encodings.ascii",
    "encodings.unicode_escape",
    "encodings.utf_8_sig",
    "exporters.records_bundle",
    "git",
    "mergemill.agents.sampling.run",
    "mergemill.agents.sampling.scenario_sampler",
    "mergemill.agents.sampling.worlds",
    "mergemill.agents.trajectory_export",
    "mergemill.agents.trajectory_selection",
    "mergemill.bench.export",
    "mergemill.bench.instruction_metric",
    "mergemill.bench.judging",
    "mergemill.bench.octo_import",
    "mergemill.bench.regrading",
    "mergemill.bench.scoring",
    "mergemill.bench.swt_runs",
    "mergemill.bundles.contents",
    "mergemill.bundles.foreign_import",
    "mergemill.grading.grading",
    "mergemill.pipeline.certification",
    "mergemill.pipeline.kinds",
    "mergemill.pipeline.repositories",
    "mergemill.pipeline.runs",
    "mergemill.simulation.environment",
    "mergemill.simulation.run",
    "mergemill.web.application",
    "mergemill.web.server",
    "mergemill.worlds.making.run",
    "miner.github.api",
    "miner.mine",
    "miner.tags.tag",
    "rich._emoji_codes",
    "samplers.difficulty.summary",
    "samplers.gateway.__main__",
    "samplers.selection.selecting",
    "sklearn.cluster",
    "sqlalchemy.dialects.sqlite",
    "taskdb.queries.where",
    "taskdb.schema.mapping",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
    "worlds.server.host",
)
"""Modules that commands import when they run."""
FOLDER = "TESTS_COMMAND_SERVER"
"""Variable of the environment with the folder of the server's socket, which all processes of a test run share."""
FACTS = ".json"
"""Ending of the file with the server's process id and the environment in which it was started."""
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables without which numpy and pyarrow start threads when they are imported, which forks lose."""
SHORT_CERTIFICATES = "TESTS_SHORT_CERTIFICATES"
"""Variable of a command's environment; where it is not empty, certificates are those of `tests.short_certificates`."""
NO_CONTROLS = "TESTS_NO_CONTROLS"
"""Variable of a command's environment; where it is not empty, verified tasks have no controls (same module)."""
KEPT_RUNS = "TESTS_TAKE_KEPT_RUNS"
"""Variable of a command's environment; where it is not empty, it takes results of containers from earlier commands (see
`tests.kept_runs`)."""
NEW_GATEWAYS = "TESTS_NEW_GATEWAYS"
"""Variable of a command's environment; where it is not empty, its gateways are new processes, children of its own."""
GATEWAY = "samplers.gateway"
"""Module that a process runs as a program in a session of its own."""
REQUEST_BYTES = 2**17
"""Less than what a socket takes at once."""


class RunningCommand:
    """A command's process, with those methods of `subprocess.Popen` that tests use. Thread-safe.

    Args:
        server: the server that forked it; None where it counts the CPU seconds of this process itself.
        ended: pipe of which the first line is the process's id, and the second its exit code and CPU seconds.
    """

    def __init__(self, server: CommandServer | None, ended: TextIO) -> None:
        self._server = server
        self._ended = ended
        self._lock = threading.Lock()
        self.pid = int(ended.readline())
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, below 0 for a signal, once the process has ended.

        Raises:
            subprocess.TimeoutExpired: it did not end within so many seconds.
        """
        with self._lock:
            if self.returncode is None:
                poll = select.poll()  # has no limit on descriptors
                poll.register(self._ended, select.POLLIN)
                if not poll.poll(None if timeout is None else 1000 * timeout):
                    raise subprocess.TimeoutExpired("mergemill", timeout or 0)
                code, seconds = self._ended.read().split()
                self._ended.close()
                if self._server:
                    self._server.cpu_seconds += float(seconds)
                self.returncode = int(code)
            return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill the process and wait for its end."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


class CommandServer:
    """The server of a test run, which ends with the last process that is connected to it.

    Args:
        address: path of its socket; where none listens there, the server is started.
    """

    def __init__(self, address: Path) -> None:
        self.cpu_seconds = 0.0
        """CPU seconds of all commands of this process that have ended."""
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with lock_server(address):
            if self._socket.connect_ex(str(address)):
                _start_server(address)
                self._socket.connect(str(address))
            started = json.loads(address.with_suffix(FACTS).read_text())
        self.pid: int = started["pid"]
        self.environment: dict[str, str] = started["environment"]

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        output: int | None = None,
        module: str = "",
        user: int | None = None,
    ) -> tuple[int, str, str] | None:
        """Run `mergemill ARGUMENTS` in a process.

        Args:
            output: descriptor of the standard output, which is not read then.
            module: name of a module that runs as a program instead (`python -m MODULE ARGUMENTS`).
            user: id of the user, and of the only group, that the process has; None for those of the tests.

        Returns:
            its exit code, below 0 for a signal, and both outputs; None where only a new process will do.
        """
        with tempfile.TemporaryFile() as kept, tempfile.TemporaryFile() as errors:
            stdout = kept.fileno() if output is None else output
            command = self.start(arguments, cwd, environment, stdout, errors.fileno(), module, user=user)
            if command is None:
                return None
            code = command.wait()
            kept.seek(0)
            errors.seek(0)
            return code, kept.read().decode(), errors.read().decode()

    def start(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        output: int,
        errors: int,
        module: str = "",
        given: int | None = None,
        user: int | None = None,
    ) -> RunningCommand | None:
        """Start `mergemill ARGUMENTS` in a process.

        Args:
            output: descriptor of the standard output.
            errors: descriptor of the standard error.
            module: name of a module that runs as a program instead.
            given: descriptor of the standard input; None for no input.
            user: id of the user, and of the only group, that the process has; None for those of the tests.

        Returns:
            the process; None where only a new one will do.
        """
        request = write_request(arguments, cwd, environment, module, user)
        if len(request) > REQUEST_BYTES or not self._has_same_start(environment):
            return None
        with self._lock:
            ended = send_request(self._socket, request, output, errors, given)
        return RunningCommand(self, ended)

    def _has_same_start(self, environment: Mapping[str, str]) -> bool:
        names = environment.keys() | self.environment.keys()
        read = [name for name in names if name.startswith(READ_AT_START)]
        return all(environment.get(name) == self.environment.get(name) for name in read)


def write_request(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], module: str, user: int | None = None
) -> bytes:
    """Return the text of a request."""
    content = {"arguments": arguments, "cwd": str(cwd), "environment": dict(environment), "module": module}
    return json.dumps({**content, "user": user, "priority": os.getpriority(os.PRIO_PROCESS, 0)}).encode()


def send_request(to: socket.socket, request: bytes, output: int, errors: int, given: int | None) -> TextIO:
    """Send a request with the descriptors of its process; return the pipe that tells about the process."""
    reader, writer = os.pipe()
    try:
        socket.send_fds(to, [request], [output, errors, writer, *([] if given is None else [given])])
    finally:
        os.close(writer)
    return os.fdopen(reader)


@contextlib.contextmanager
def lock_server(address: Path) -> Iterator[None]:
    """Keep other processes from starting the server of a test run, and the server from ending."""
    with address.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start_server(address: Path) -> None:
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen(128)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.command_server", str(listener.fileno()), address],
            cwd=ROOT,
            env=os.environ | NO_THREADS,
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    server.returncode = 0  # nothing waits for it: without this, Python warns when this process ends
    address.with_suffix(FACTS).write_text(json.dumps({"pid": server.pid, "environment": dict(os.environ)}))


@cache
def start_command_server() -> CommandServer:
    """Return this process's connection to the server."""
    folder = os.environ.get(FOLDER) or tempfile.mkdtemp(prefix="command-server-")
    read = sorted((name, value) for name, value in os.environ.items() if name.startswith(READ_AT_START))
    # Processes whose interpreters were started differently, such as with other import paths, have servers of their own.
    return CommandServer(Path(folder, f"commands-{hashlib.sha256(repr(read).encode()).hexdigest()[:8]}"))


def read_cpu_seconds() -> float:
    """Return the CPU seconds of the commands of this process's server, 0 where none was started."""
    return start_command_server().cpu_seconds if start_command_server.cache_info().currsize else 0.0


def serve(listener: socket.socket, address: Path) -> None:
    """Fork a process for each request until no process of tests is connected."""
    from typer.main import get_command  # noqa: PLC0415 - the tests' side needs none of it

    from backends.llm.client import ChatModel  # noqa: PLC0415
    from core.config import Settings  # noqa: PLC0415
    from mergemill import cli  # noqa: PLC0415
    from mergemill.cli import lazy_group  # noqa: PLC0415
    from taskdb.store import Store  # noqa: PLC0415
    from tests.drawn_arguments import keep_drawn_arguments  # noqa: PLC0415
    from tests.forked_gateways import fork_gateways_of_commands  # noqa: PLC0415
    from tests.huge_pages import collapse_memory  # noqa: PLC0415
    from tests.new_databases import copy_new_databases  # noqa: PLC0415
    from tests.taskdb.lineages import add_lineage  # noqa: PLC0415

    for module in (*USUAL_MODULES, "tests.short_certificates", "tests.kept_runs"):
        importlib.import_module(module)
    # The options of commands are made of annotations, which takes more time than many a command.
    lazy_group.load_command = cache(lazy_group.load_command)
    for _, command in lazy_group.iterate_commands(get_command(cli.app)):
        for option in command.params:
            option.get_runtime_param()
    Settings.model_rebuild()
    copy_new_databases()
    keep_drawn_arguments()
    # It is migrated, those of the commands are copies; and the statements of most writers are compiled.
    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/new.db") as store:
        add_lineage(store)
    # The first client imports half of the SDK and reads the certificates.
    settings = Settings.model_validate({"llm": "http://127.0.0.1:9/v1", "model": "none"})
    assert ChatModel(settings.llm, settings.host)._client.chat.completions.with_raw_response
    assert threading.active_count() == len(list(Path("/proc/self/task").iterdir())) == 1, "forks lose threads"
    gc.collect()
    gc.freeze()
    collapse_memory()
    fork_gateways_of_commands(address)
    RequestQueue(listener, address).serve()


@dataclass
class ForkedProcess:
    """A process of the server. `ended`: pipe for its id and its end; `seconds`: CPU seconds of its gateways."""

    pid: int
    ended: int
    parent: int
    """Process that asked for it."""
    seconds: float = 0.0


class RequestQueue:
    """Connections of the tests and of commands whose gateways are forked, and the processes that were forked.

    Args:
        listener: socket of the server.
        address: path of the socket.
    """

    def __init__(self, listener: socket.socket, address: Path) -> None:
        self._listener = listener
        self._address = address
        self._connections: dict[int, socket.socket] = {}
        self._running: dict[int, ForkedProcess] = {}  # by a descriptor of the process
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)

    def serve(self) -> None:
        """Fork a process for each request until nothing is connected any more."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._running:
                    self._poll.unregister(descriptor)
                    self._report_end(self._running.pop(descriptor))
                    os.close(descriptor)
                elif descriptor in self._connections:
                    self._answer(self._connections[descriptor])
                else:
                    self._accept()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        self._connections[connection.fileno()] = connection
        self._poll.register(connection, select.POLLIN)

    def _answer(self, connection: socket.socket) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 4)
        except ConnectionResetError:
            message, descriptors = b"", []
        if not message:
            self._poll.unregister(connection)
            del self._connections[connection.fileno()]
            connection.close()
            if not self._connections:
                self._end()
            return
        output, errors, ended, *given = descriptors
        parent = _read_peer(connection)
        if (command := os.fork()) == 0:
            self._forget()
            os.close(ended)
            _run(json.loads(message), output, errors, *given)
        with suppress(BrokenPipeError):  # a command that was killed does not wait for its gateway
            os.write(ended, f"{command}\n".encode())
        for stream in (output, errors, *given):
            os.close(stream)
        process = os.pidfd_open(command)
        self._running[process] = ForkedProcess(command, ended, parent)
        self._poll.register(process, select.POLLIN)

    def _forget(self) -> None:
        """Close all descriptors in a process that was forked."""
        for connection in (self._listener, *self._connections.values()):
            connection.close()
        for descriptor, process in self._running.items():
            os.close(descriptor)
            os.close(process.ended)

    def _report_end(self, process: ForkedProcess) -> None:
        """Report the end of a process; a command that waits for its gateway has the seconds of both."""
        _, status, usage = os.wait4(process.pid, 0)
        seconds = usage.ru_utime + usage.ru_stime + process.seconds
        for command in self._running.values():
            if command.pid == process.parent:
                command.seconds += seconds
        with suppress(BrokenPipeError):  # a test that failed does not wait
            os.write(process.ended, f"{os.waitstatus_to_exitcode(status)} {seconds}".encode())
        os.close(process.ended)

    def _end(self) -> None:
        """End this process unless another one of the tests has just connected."""
        with lock_server(self._address):
            if not select.select([self._listener], [], [], 0)[0]:
                self._address.unlink(missing_ok=True)
                os._exit(0)  # the system frees its memory faster


def _read_peer(connection: socket.socket) -> int:
    """Return the process at the other end of a connection."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])


def _run(request: dict[str, Any], output: int, errors: int, given: int | None = None) -> None:
    from mergemill.cli import main  # noqa: PLC0415
    from samplers.gateway import __main__ as gateway  # noqa: PLC0415
    from tests.forked_gateways import start_new_gateways  # noqa: PLC0415
    from tests.kept_runs import keep_runs  # noqa: PLC0415
    from tests.short_certificates import leave_out_controls, shorten_certificates  # noqa: PLC0415

    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    with open(os.devnull) as nothing:  # noqa: PTH123
        for source, target in ((nothing.fileno() if given is None else given, 0), (output, 1), (errors, 2)):
            os.dup2(source, target)
    for stream in (output, errors, *([] if given is None else [given])):
        os.close(stream)
    with suppress(PermissionError):  # others than root may only give way
        os.setpriority(os.PRIO_PROCESS, 0, request["priority"])
    if request["user"] is not None:
        os.setgroups([])
        os.setgid(request["user"])
        os.setuid(request["user"])
    if request["module"] == GATEWAY:
        os.setsid()
        run_and_end(lambda: sys.exit(gateway.main()))
    for variable, change in {
        SHORT_CERTIFICATES: shorten_certificates,
        NO_CONTROLS: leave_out_controls,
        KEPT_RUNS: keep_runs,
        NEW_GATEWAYS: start_new_gateways,
    }.items():
        if os.environ.get(variable):
            change()
    sys.argv = [request["module"] or "mergemill", *request["arguments"]]
    if request["module"]:
        run_and_end(lambda: runpy.run_module(request["module"], run_name="__main__", alter_sys=True))
    run_and_end(main)


def run_and_end(program: Callable[[], object]) -> NoReturn:
    """Run a program in this process and end as Python does, but let the system free the memory.

    Python frees each object, which takes 0.2 s of CPU where the modules of all commands are imported.
    """
    try:
        program()
        sys.exit()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            threading._shutdown()  # waits for threads
            atexit._run_exitfuncs()
            with suppress(OSError, ValueError):  # of an output that cannot be written, which Python reports
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit((end.code or 0) & 0xFF)
        raise


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
