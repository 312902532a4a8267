"""Gateways that are forked from the server of commands.

A new Python takes most of a second to import what a gateway needs, and the tests start some hundred and fifty. New
processes are those of drivers that are new ones, of `mergemill gateway`, and of commands whose variables are
`NEW_GATEWAYS`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from samplers.gateway import process
from tests.command_server import GATEWAY, RunningCommand, send_request, start_command_server, write_request

Start = Callable[[Mapping[str, str], int, int, int], RunningCommand | None]
"""Starts a gateway's process with variables, and descriptors of its output, errors and input."""

open_new_process = process.open_process


def fork_gateways_of_tests() -> None:
    """Let gateways of this process, that of the tests, be forked."""

    def start(environment: Mapping[str, str], output: int, errors: int, given: int) -> RunningCommand | None:
        return start_command_server().start((), process.ROOT, environment, output, errors, GATEWAY, given)

    _open_processes_by(start)


def fork_gateways_of_commands(address: Path) -> None:
    """Let gateways of this process and of those forked from it be forked by the server with this address."""

    def start(environment: Mapping[str, str], output: int, errors: int, given: int) -> RunningCommand:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.connect(str(address))
            request = write_request((), process.ROOT, environment, GATEWAY)
            return RunningCommand(None, send_request(server, request, output, errors, given))

    _open_processes_by(start)


def start_new_gateways() -> None:
    """Let gateways of this process be new processes."""
    process.open_process = open_new_process


def _open_processes_by(start: Start) -> None:
    def open_process(environment: Mapping[str, str], errors: IO[bytes]) -> Any:
        given, stdin = os.pipe()
        stdout, output = os.pipe()
        try:
            command = start(environment, output, errors.fileno(), given)
        finally:
            os.close(given)
            os.close(output)
        pipes = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        if command is None:  # only a new process has these variables
            for pipe in pipes:
                pipe.close()
            return open_new_process(environment, errors)
        command.stdin, command.stdout = pipes
        return command

    process.open_process = open_process
