"""Process of a gateway that a driver starts: `python -m samplers.gateway`.

Its first line of standard input is a `GatewayConfig` as JSON; the end of standard input is the end of the driver. Its
first line of standard output is `{"port": N}`, or an error `{"error", "advice", "exit_code"}`.
"""

from __future__ import annotations

import json
import os
import sys

import uvloop

from core.errors import MergemillError
from samplers.gateway.server import GatewayConfig, serve_gateway

TOKEN_VARIABLE = "MERGEMILL_GATEWAY_TOKEN"  # noqa: S105 - a variable's name


def print_line(value: object) -> None:
    """Print a JSON value."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Serve until the driver ends; return the exit code."""
    parent = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115 - open to the end
    config = GatewayConfig.model_validate_json(_read_line(parent.fileno()))
    token = os.environ[TOKEN_VARIABLE]
    try:
        uvloop.run(serve_gateway(config, token, lambda port: print_line({"port": port}), parent))
    except MergemillError as error:
        print_line({"error": str(error), "advice": error.advice, "exit_code": error.exit_code})
        return error.exit_code
    return 0


def _read_line(pipe: int) -> bytes:
    """Return the first line of a pipe; the text that follows stays in it."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(pipe, 65536)):
        line += byte
    return line


if __name__ == "__main__":
    sys.exit(main())
