"""Commands of the tests' server behave as new processes do."""

from __future__ import annotations

import json
import platform
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from taskdb.store import Store
from tests.cli import make_command_environment, run_mergemill, start_mergemill
from tests.command_server import FACTS, CommandServer, start_command_server
from tests.taskdb.lineages import make_url


@pytest.mark.parametrize(
    "words",
    [
        ("tasks", "list", "--db", "sqlite:///none.db"),
        ("tasks", "list", "--help"),
        ("mine", "nothing:x"),
        ("sql", "SELECT 'ä'", "--db", "sqlite:///none.db"),
        ("nonsense",),
    ],
)
def test_forked_commands_end_as_new_ones(words: tuple[str, ...], tmp_path: Path) -> None:
    new = subprocess.run(
        ["mergemill", *words], cwd=tmp_path, env=make_command_environment(), capture_output=True, text=True, check=False
    )
    assert start_command_server().run(words, tmp_path, make_command_environment()) == (
        new.returncode,
        new.stdout,
        new.stderr,
    )


def test_forked_commands_have_a_folder_and_an_environment(tmp_path: Path) -> None:
    (tmp_path / "mergemill.toml").write_text('db = "sqlite:///from-file.db"\n')
    assert "from-file.db" in run_mergemill("tasks", "list", cwd=tmp_path).stderr
    named = run_mergemill("tasks", "list", cwd=tmp_path, MERGEMILL_DB="sqlite:///from-variable.db")
    assert "from-variable.db" in named.stderr
    assert "from-file.db" in run_mergemill("tasks", "list", cwd=tmp_path).stderr


@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "LC_ALL", "TZ"])
def test_variables_that_python_reads_at_its_start_need_a_new_process(name: str, tmp_path: Path) -> None:
    environment = make_command_environment() | {name: "never"}
    assert start_command_server().run(["--version"], tmp_path, environment) is None


def test_a_started_command_is_waited_for_and_killed(tmp_path: Path) -> None:
    with start_mergemill("tasks", "list", cwd=tmp_path) as command:
        assert (command.wait(60), command.poll()) == (3, 3)
    Store.open(make_url(tmp_path)).engine.dispose()
    with start_mergemill("serve", "--port", "0", cwd=tmp_path) as command:
        with pytest.raises(subprocess.TimeoutExpired):
            command.wait(0.2)
        assert command.poll() is None
    assert command.returncode == -signal.SIGKILL


def test_what_a_fork_copies_is_in_huge_pages(tmp_path: Path) -> None:
    if not Path("/sys/kernel/mm/transparent_hugepage").exists() or read_kernel_version() < (6, 1):
        pytest.skip("the system collects no memory into huge pages when it is asked to")
    server = start_command_server()
    assert server.run(["--version"], tmp_path, make_command_environment()) is not None  # it serves
    kept = Path(f"/proc/{server.pid}/smaps_rollup").read_text()
    huge = re.search(r"AnonHugePages: +(\d+) kB", kept)
    assert huge
    assert int(huge[1]) > 50_000, kept


SERVER = """
import socket, sys
from pathlib import Path
from tests.command_server import RequestQueue
RequestQueue(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])).serve()
"""


def test_processes_share_a_server_that_ends_with_the_last_connection(tmp_path: Path) -> None:
    address = tmp_path / "commands"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()
        command = [sys.executable, "-c", SERVER, str(listener.fileno()), address]
        server = subprocess.Popen(command, cwd=Path(__file__).parents[3], pass_fds=[listener.fileno()])
    try:
        address.with_suffix(FACTS).write_text(json.dumps({"pid": server.pid, "environment": {}}))
        first, second = CommandServer(address), CommandServer(address)
        assert first.pid == second.pid == server.pid
        first._socket.close()
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(0.2)
        second._socket.close()
        assert server.wait(20) == 0
    finally:
        server.kill()
        server.wait()
    assert not address.exists()


def read_kernel_version() -> tuple[int, ...]:
    return tuple(map(int, platform.release().split("-")[0].split(".")[:2]))
