"""Sockets that servers listen at."""

from __future__ import annotations

import errno
import socket

from core.errors import MachineError, UsageError


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        MachineError: the port is in use or may not be used.
        UsageError: the host is not an address of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"--host {host}: {error.strerror or error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(f"--host {host} is no address of this machine") from error
        problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise MachineError(f"port {port} of {host} {problem}", advice="choose another with --port") from error
    return listener
