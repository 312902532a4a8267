"""Processes of the command line, forked from one that has imported its modules.

A new Python takes up to a second to import them, and the tests run a thousand commands. A forked process has a folder,
an environment, standard streams and an exit code of its own, as a new one has. Started as a program, this module is the
server; `CommandServer` is the tests' side of it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TextIO

ROOT = Path(__file__).parents[1]
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "SSL_", "TZ", "TMPDIR")
"""Beginnings of variables that a Python, its libraries or this server read before a command runs."""
USUAL_MODULES = (
    "builders.agent.policy",
    "builders.build",
    "docker",
    "git",
    "mergemill.agents.sampling.run",
    "mergemill.bench.export",
    "mergemill.bench.judging",
    "mergemill.bundles.foreign_import",
    "mergemill.grading.grading",
    "mergemill.pipeline.kinds",
    "mergemill.pipeline.runs",
    "mergemill.simulation.environment",
    "mergemill.simulation.run",
    "mergemill.worlds.making.run",
    "miner.github.api",
    "miner.mine",
    "miner.tags.tag",
    "rich._emoji_codes",
    "sklearn.cluster",
    "sqlalchemy.dialects.sqlite",
    "taskdb.queries.where",
    "taskdb.schema.mapping",
)
"""Modules that commands import when they run."""
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables without which numpy and pyarrow start threads when they are imported, which forks lose."""
SHORT_CERTIFICATES = "TESTS_SHORT_CERTIFICATES"
"""Variable of a command's environment; where it is not empty, certificates are those of `tests.short_certificates`."""
NO_CONTROLS = "TESTS_NO_CONTROLS"
"""Variable of a command's environment; where it is not empty, verified tasks have no controls (same module)."""
KEPT_RUNS = "TESTS_TAKE_KEPT_RUNS"
"""Variable of a command's environment; where it is not empty, it takes results of containers from earlier commands (see
`tests.kept_runs`)."""
REQUEST_BYTES = 2**17
"""Less than what a socket takes at once."""


class RunningCommand:
    """A command's process, with those methods of `subprocess.Popen` that tests use.

    Args:
        server: the server that forked it.
        ended: pipe of which the first line is the process's id, and the second its exit code and CPU seconds.
    """

    def __init__(self, server: CommandServer, ended: TextIO) -> None:
        self._server = server
        self._ended = ended
        self.pid = int(ended.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, below 0 for a signal, once the process has ended.

        Raises:
            subprocess.TimeoutExpired: it did not end within so many seconds.
        """
        if self.returncode is None:
            poll = select.poll()  # has no limit on descriptors
            poll.register(self._ended, select.POLLIN)
            if not poll.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired("mergemill", timeout or 0)
            code, seconds = self._ended.read().split()
            self._ended.close()
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
    """A server process of this test process, which ends with it."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)
        self.cpu_seconds = 0.0
        """CPU seconds of all commands that have ended."""
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.command_server", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment | NO_THREADS,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        output: int | None = None,
        module: str = "",
    ) -> tuple[int, str, str] | None:
        """Run `mergemill ARGUMENTS` in a process.

        Args:
            output: descriptor of the standard output, which is not read then.
            module: name of a module that runs as a program instead (`python -m MODULE ARGUMENTS`).

        Returns:
            its exit code, below 0 for a signal, and both outputs; None where only a new process will do.
        """
        with tempfile.TemporaryFile() as kept, tempfile.TemporaryFile() as errors:
            stdout = kept.fileno() if output is None else output
            command = self.start(arguments, cwd, environment, stdout, errors.fileno(), module)
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
    ) -> RunningCommand | None:
        """Start `mergemill ARGUMENTS` in a process.

        Args:
            output: descriptor of the standard output.
            errors: descriptor of the standard error.
            module: name of a module that runs as a program instead.

        Returns:
            the process; None where only a new one will do.
        """
        content = {"arguments": arguments, "cwd": str(cwd), "environment": dict(environment), "module": module}
        request = json.dumps(content).encode()
        if len(request) > REQUEST_BYTES or not self._has_same_start(environment):
            return None
        reader, writer = os.pipe()
        with self._lock:
            socket.send_fds(self._socket, [request], [output, errors, writer])
        os.close(writer)
        return RunningCommand(self, os.fdopen(reader))

    def _has_same_start(self, environment: Mapping[str, str]) -> bool:
        names = environment.keys() | self.environment.keys()
        read = [name for name in names if name.startswith(READ_AT_START)]
        return all(environment.get(name) == self.environment.get(name) for name in read)


@cache
def start_command_server() -> CommandServer:
    """Return this process's server."""
    return CommandServer()


def read_cpu_seconds() -> float:
    """Return the CPU seconds of the commands of this process's server, 0 where none was started."""
    return start_command_server().cpu_seconds if start_command_server.cache_info().currsize else 0.0


def serve(requests: socket.socket) -> None:
    """Fork a process for each request until the tests have ended."""
    from typer.main import get_command  # noqa: PLC0415 - the tests' side needs none of it

    from backends.llm.client import ChatModel  # noqa: PLC0415
    from core.config import Settings  # noqa: PLC0415
    from mergemill import cli  # noqa: PLC0415
    from mergemill.cli import lazy_group  # noqa: PLC0415
    from taskdb.store import Store  # noqa: PLC0415
    from tests.drawn_arguments import keep_drawn_arguments  # noqa: PLC0415
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
    running: dict[int, tuple[int, int]] = {}  # descriptor of a command's process -> its id, and the pipe for its end
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in running:
                poll.unregister(descriptor)
                _report_end(*running.pop(descriptor))
                os.close(descriptor)
                continue
            message, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 3)
            if not message:
                os._exit(0)  # the system frees its memory faster
            output, errors, ended = descriptors
            if (command := os.fork()) == 0:
                requests.close()
                for process, (_, pipe) in running.items():
                    os.close(process)
                    os.close(pipe)
                os.close(ended)
                _run(json.loads(message), output, errors)
            os.write(ended, f"{command}\n".encode())
            os.close(output)
            os.close(errors)
            process = os.pidfd_open(command)
            running[process] = command, ended
            poll.register(process, select.POLLIN)


def _report_end(command: int, ended: int) -> None:
    _, status, usage = os.wait4(command, 0)
    seconds = usage.ru_utime + usage.ru_stime
    with suppress(BrokenPipeError):  # a test that failed does not wait
        os.write(ended, f"{os.waitstatus_to_exitcode(status)} {seconds}".encode())
    os.close(ended)


def _run(request: dict[str, Any], output: int, errors: int) -> None:
    from mergemill.cli import main  # noqa: PLC0415
    from tests.kept_runs import keep_runs  # noqa: PLC0415
    from tests.short_certificates import leave_out_controls, shorten_certificates  # noqa: PLC0415

    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    with open(os.devnull) as nothing:  # noqa: PTH123
        for source, target in ((nothing.fileno(), 0), (output, 1), (errors, 2)):
            os.dup2(source, target)
    os.close(output)
    os.close(errors)
    if os.environ.get(SHORT_CERTIFICATES):
        shorten_certificates()
    if os.environ.get(NO_CONTROLS):
        leave_out_controls()
    if os.environ.get(KEPT_RUNS):
        keep_runs()
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
    serve(socket.socket(fileno=int(sys.argv[1])))
