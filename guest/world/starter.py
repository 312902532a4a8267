"""Process that starts those of worlds and checks: a copy of the server from before it read anything.

Forking takes milliseconds where starting Python takes fifty, and the data that the server reads later (states of other
episodes, checks) is in none of the copies. Requests are JSON datagrams with two file descriptors, the channel and the
output.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
from typing import Any, NoReturn

from guest.world.check_process import run_checks
from guest.world.confinement import (
    CHANNEL,
    Confinement,
    enter_empty_folder,
    give_up_rights,
    keep_descriptors,
    read_nothing,
)
from guest.world.frozen import freeze_clock, replace_randomness
from guest.world.world_process import compile_program, run_world

CONFINED_ROLES = {"world": run_world, "compiler": compile_program}
CHECKS_ROLE = "checks"
"""Role of a process of ours, which confines those that it starts."""
DATAGRAM_BYTES = 4096


def fork_starter() -> socket.socket:
    """Fork the starter and return the socket to it.

    It takes `{"start": key, "role", "uids", "memory_bytes"}` with two descriptors and `{"kill": key}`, and sends
    `{"ended": key, "signal": number or null}` for every process that ended.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        read_nothing()
        freeze_clock()
        replace_randomness()
        gc.freeze()  # a collection in a copy would otherwise write to, and so copy, all memory
        _exit_after(ProcessStarter(theirs).run)
    theirs.close()
    return ours


def _exit_after(run: Any) -> NoReturn:
    """End this process after `run`, whatever happens, without the clean-up of the process it is a copy of."""
    try:
        run()
    finally:
        os._exit(0)


class ProcessStarter:
    """See `fork_starter`. Only this process ends and reaps others, so that no number of a process is used too late."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._keys: dict[int, str] = {}
        self._signals, self._wakeup = socket.socketpair()
        for end in (self._signals, self._wakeup):
            end.setblocking(False)

    def run(self) -> None:
        """Serve until the server ends."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ, self._take_request)
            selector.register(self._signals, selectors.EVENT_READ, self._reap)
            while all(key.data() for key, _ in selector.select()):
                pass
        for pid in self._keys:
            os.kill(pid, signal.SIGKILL)

    def _take_request(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._server, DATAGRAM_BYTES, 2)
        if not data:
            return False
        request = json.loads(data)
        if "kill" in request:
            for pid in [pid for pid, key in self._keys.items() if key == request["kill"]]:
                os.kill(pid, signal.SIGKILL)
            return True
        self._start(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _start(self, request: dict[str, Any], descriptors: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            _exit_after(lambda: self._become(request, descriptors))
        self._keys[pid] = request["start"]

    def _become(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Turn this copy into a process of a world or a check."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        channel, output = descriptors
        limits = [Confinement(uid, request["memory_bytes"]) for uid in request["uids"]]
        keep_descriptors(output, channel)
        enter_empty_folder()
        with socket.socket(fileno=CHANNEL) as opened:
            if request["role"] == CHECKS_ROLE:
                run_checks(opened, limits)
            else:
                give_up_rights(limits[0])
                CONFINED_ROLES[request["role"]](opened)

    def _reap(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            while self._signals.recv(DATAGRAM_BYTES):
                pass
        while self._keys:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            self._server.send(json.dumps({"ended": self._keys.pop(pid), "signal": number}).encode())
        return True
