"""Gateways of tests are forked, and end as new processes do."""

from __future__ import annotations

import os
from pathlib import Path

from samplers.gateway.process import GatewayProcess, Upstream
from tests.command_server import start_command_server


def test_a_gateway_is_forked_into_a_session_of_its_own_and_counted(tmp_path: Path) -> None:
    before = start_command_server().cpu_seconds
    with GatewayProcess(Upstream(url="http://127.0.0.1:9/v1"), tmp_path, agent_socket=None, port=0) as gateway:
        assert b"tests.command_server" in Path(f"/proc/{gateway.pid}/cmdline").read_bytes()
        assert os.getsid(gateway.pid) == gateway.pid
        assert gateway.is_alive
        process = gateway._process
    assert process
    assert process.returncode == 0
    assert start_command_server().cpu_seconds > before
