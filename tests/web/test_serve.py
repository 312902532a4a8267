"""`mergemill serve` as a process: address, signals, and a user's mistakes in one line."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from core.sockets import bind_socket
from mergemill.web.server import run_application
from tests.cli import run_mergemill
from tests.web.seed import SeededDatabase
from tests.web.server import run_server

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what a user may give


def test_a_server_answers_until_ctrl_c(seeded: SeededDatabase) -> None:
    with run_server(seeded) as (command, address, lines):
        answer = httpx.get(f"{address}api/v1/funnel")
        assert len(answer.json()["stages"]) == 6
        assert "server" not in answer.headers
        assert lines == []
        os.kill(command.process.pid, signal.SIGINT)
        assert command.process.wait(10) == 0
        assert command.stderr.read() == ""


def test_grading_needs_the_token_of_the_command_line(seeded: SeededDatabase) -> None:
    with run_server(seeded, "--token", "T") as (_, address, _):
        submission = {"task": "nothing", "patch": ""}
        assert httpx.post(f"{address}api/v1/grade", json=submission).status_code == 401
        headers = {"authorization": "Bearer T"}
        assert httpx.post(f"{address}api/v1/grade", json=submission, headers=headers).status_code == 404


def test_a_server_that_others_reach_warns_once(seeded: SeededDatabase) -> None:
    with run_server(seeded, "--host", EVERYWHERE) as (_, _, lines):
        assert len(lines) == 1
        assert "--token" in lines[0]
    with run_server(seeded, "--host", EVERYWHERE, "--token", "T") as (_, _, lines):
        assert lines == []


def test_a_port_in_use_is_one_line(seeded: SeededDatabase, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run_mergemill("serve", "--db", seeded.settings.storage.db, "--port", port, cwd=tmp_path)
    assert done.exit_code == 4
    assert done.stderr.count("\n") == 1
    assert f"port {port}" in done.stderr


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        (("--host", "203.0.113.7"), 2),
        (("--host", "no.such.host.invalid"), 2),
        (("--port", "70000"), 2),
        (("--token", ""), 2),
        (("--db", "sqlite:///nothing.db"), 3),
    ],
)
def test_a_mistake_is_one_line(
    seeded: SeededDatabase, tmp_path: Path, options: tuple[str, ...], exit_code: int
) -> None:
    done = run_mergemill("serve", "--db", seeded.settings.storage.db, "--port", "0", *options, cwd=tmp_path)
    assert done.exit_code == exit_code
    assert done.stderr.count("\n") == 1


def test_ctrl_c_right_after_the_address_ends_quietly() -> None:
    """Before the server has begun to handle signals itself."""
    lines = []

    def announce(line: str) -> None:
        lines.append(line)
        signal.raise_signal(signal.SIGINT)

    with closing(bind_socket("127.0.0.1", 0)) as listener:
        run_application(Starlette(), listener, "127.0.0.1", announce)
        assert lines == [f"http://127.0.0.1:{listener.getsockname()[1]}/ (Ctrl-C ends it)"]
