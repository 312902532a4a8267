"""The connection to a server of worlds: answers find their requests, also while another request is being written."""

from __future__ import annotations

import json
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

from worlds.server.connection import ServerConnection


class BusyServer:
    """Server that answers request 0 only while request 1 is being written, which ends once that answer arrived."""

    def __init__(self) -> None:
        self.first_answered = threading.Event()
        self.has_waited_in_vain = False
        self._lines: queue.Queue[bytes] = queue.Queue()

    def write(self, data: bytes) -> None:
        request = json.loads(data)
        if request.get("id") == 1:
            self._lines.put(b'{"id": 0, "value": "first"}\n')
            self.has_waited_in_vain = not self.first_answered.wait(timeout=5)
            self._lines.put(b'{"id": 1, "value": "second"}\n')
        elif request["op"] == "stop":
            self._lines.put(b"")

    def read_line(self) -> bytes:
        return self._lines.get()

    def get_errors(self) -> str:
        return ""


def test_an_answer_arrives_while_another_request_is_written() -> None:
    server = BusyServer()

    def request_first() -> object:
        value = connection.request({"op": "state"})["value"]
        server.first_answered.set()
        return value

    with ServerConnection(server) as connection, ThreadPoolExecutor(2) as threads:
        first = threads.submit(request_first)
        while not connection._waiting:
            pass
        second = threads.submit(connection.request, {"op": "state"})
        assert (first.result(), second.result()["value"]) == ("first", "second")
    assert not server.has_waited_in_vain
