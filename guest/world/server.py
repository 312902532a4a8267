"""Server of worlds in a container: requests are JSON lines on stdin, answers JSON lines on stdout.

| request | answer |
|---|---|
| `{"id", "op": "load", "world", "program", "class_name", "tools"}` | `{"id"}` |
| `{"id", "op": "unload", "world"}` | `{"id"}` |
| `{"id", "op": "reset", "episode", "world", "state", "seed", "step"}` | `{"id", "digest"}` |
| `{"id", "op": "call", "episode", "tool", "arguments"}` | `{"id", "result", "digest"}` |
| `{"id", "op": "state", "episode"}` | `{"id", "state", "digest"}` |
| `{"id", "op": "check", "checks", "seed"}` + (`"episode"` or `"initial", "final"`) | `{"id", "outcomes"}` |
| `{"id", "op": "close", "episode"}` | `{"id"}` |
| `{"op": "stop"}` | none; the server ends |

`tools`: name -> schema of its arguments. `checks`: list of `{"function", "source"}`; `outcomes` are in their order.
`digest` is the sha256 of the state's canonical JSON. A fault of a program gives `{"id", "fault", "detail"}`, a wrong
request `{"id", "error"}`. Answers come in the order in which they are ready. The server ends with its stdin.

The server runs as root of a container without network and executes no foreign code. The data that worlds and checks
send is parsed, checked and written again, never trusted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from guest.world.canonical import NotJsonError, compute_digest, decode_json, encode_json
from guest.world.confinement import make_empty_folder
from guest.world.frames import FrameReader, FrameTooLongError, pack_frame
from guest.world.modules import import_modules
from guest.world.reasons import CheckOutcome, FaultReason
from guest.world.starter import CHECKS_ROLE, DATAGRAM_BYTES, fork_starter

FIRST_UID = 61_000
"""Users of processes have this number and those above it."""
N_UIDS = 4_000
CHUNK = 1 << 18
SPARE_SECONDS = 1.0
"""Time that the start of a check may take."""
Answer = dict[str, Any]


class RequestError(Exception):
    """Request that cannot be served: an unknown world or episode, a busy episode, too many of them."""


class ForeignProcess:
    """Process of a world or a check, as the server sees it.

    Args:
        server: registers descriptors, starts and kills processes.
        role: key of `guest.world.starter.CONFINED_ROLES`.
        on_end: function that is called once the process has ended, with the reason.
    """

    def __init__(self, server: ContainerServer, role: str, on_end: Callable[[FaultReason, str], None]) -> None:
        self._server = server
        self._on_end = on_end
        self.key = f"p{next(server.numbers)}"
        # A user for each process, so that none can send signals to another or count its processes.
        self.uids = server.take_uids(server.limits["checks_per_request"] if role == CHECKS_ROLE else 1)
        self._frames = FrameReader(server.limits["message_bytes"])
        self._sending = bytearray()
        self._printed = 0
        self._reason: tuple[FaultReason, str] | None = None
        self._take_answer: Callable[[bytes], None] | None = None
        self._is_finished = self._has_closed_output = False
        self._waits_to_send = False
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        # Apart from the channel: what a program prints is counted and never parsed.
        self._output, printed = os.pipe()
        os.set_blocking(self._output, False)
        server.selector.register(self._channel, selectors.EVENT_READ, self._serve_channel)
        server.selector.register(self._output, selectors.EVENT_READ, self._read_output)
        server.start_process(self, role, [theirs.fileno(), printed])
        theirs.close()
        os.close(printed)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is due."""
        return self._take_answer is not None

    @property
    def is_killed(self) -> bool:
        """Whether `kill` was called."""
        return self._reason is not None

    def request(self, message: bytes, seconds: float, take: Callable[[bytes], None]) -> None:
        """Send a message of JSON; `take` gets the answer, unless the process ends before."""
        self._take_answer = take
        self._server.deadlines[self] = time.monotonic() + seconds
        self._sending += pack_frame(message)
        self._send()

    def kill(self, reason: FaultReason, detail: str) -> None:
        """Kill the process, for the first reason that is given."""
        # The first reason is the true one: a killed process also closes its channel.
        if self._reason is None:
            self._reason = (reason, detail)
            self._server.deadlines.pop(self, None)
            self._server.send_to_starter({"kill": self.key})

    def finish(self, number: int | None) -> None:
        """Take the messages that the ended process sent last and release the resources that it held.

        `number`: signal that ended it.
        """
        self._receive()
        self._read_output()
        self._is_finished = True
        self._server.deadlines.pop(self, None)
        self._server.selector.unregister(self._channel)
        if not self._has_closed_output:
            self._server.selector.unregister(self._output)
        self._channel.close()
        os.close(self._output)
        # The kernel kills for memory, where the server did not.
        killed = (FaultReason.MEMORY, "the container has no more memory") if number == signal.SIGKILL else None
        self._on_end(*(self._reason or killed or (FaultReason.CRASHED, "the process has ended")))

    def _serve_channel(self, mask: int) -> None:
        if self._is_finished:
            return
        if mask & selectors.EVENT_WRITE:
            self._send()
        if mask & selectors.EVENT_READ and not self._receive():
            # Its end is reported by the starter; an open end would be ready all the time.
            self.kill(FaultReason.CRASHED, "the process closed its channel")
            self._server.selector.modify(self._channel, selectors.EVENT_WRITE, self._serve_channel)

    def _receive(self) -> bool:
        """Take the messages that are there; return whether there can be more."""
        try:
            while data := self._channel.recv(CHUNK):
                for frame in self._frames.feed(data):
                    self._take_frame(frame)
        except BlockingIOError:
            return True
        except FrameTooLongError as error:
            self.kill(FaultReason.OUTPUT, str(error))
        except OSError:
            pass
        return False

    def _take_frame(self, frame: bytes) -> None:
        take, self._take_answer = self._take_answer, None
        self._server.deadlines.pop(self, None)
        # Frames that nobody waits for would otherwise fill the memory of the server.
        if take is None:
            self.kill(FaultReason.CRASHED, "the process sent what was not requested")
        else:
            take(frame)

    def _send(self) -> None:
        try:
            sent = self._channel.send(self._sending) if self._sending else 0
        except BlockingIOError:
            sent = 0
        except OSError:  # an ended process is reported by the starter
            sent = len(self._sending)
        del self._sending[:sent]
        # A socket that can be written is ready all the time, so it is watched only while data waits.
        if bool(self._sending) is not self._waits_to_send:
            self._waits_to_send = bool(self._sending)
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waits_to_send else 0)
            self._server.selector.modify(self._channel, events, self._serve_channel)

    def _read_output(self, _: int = 0) -> None:
        if self._is_finished:
            return
        try:
            while data := os.read(self._output, CHUNK):
                self._printed += len(data)
                if self._printed > self._server.limits["output_bytes"]:
                    self.kill(FaultReason.OUTPUT, f"more than {self._server.limits['output_bytes']} bytes were printed")
                    return
        except BlockingIOError:
            return
        if not self._has_closed_output:  # an open end would be ready all the time
            self._has_closed_output = True
            self._server.selector.unregister(self._output)


class ServedEpisode:
    """An episode: its process, its first and its present state.

    States are compared, and given to checks, as canonical JSON; `state` has the keys in the order of the program.
    """

    def __init__(self, server: ContainerServer, request: Mapping[str, Any], world: Mapping[str, Any]) -> None:
        self._server = server
        self._reply_to: int | None = request["id"]
        self.initial = self.canonical_state = _encode_state(request["state"])
        self.state: dict[str, Any] = request["state"]
        self.fault: Answer | None = None
        self._process: ForeignProcess | None = ForeignProcess(server, "world", self._take_end)
        message = {**world, "state": request["state"], "seed": request["seed"], "step": request.get("step", 0)}
        self._process.request(json.dumps(message).encode(), server.limits["load_seconds"], self._take_answer)

    @property
    def has_fault(self) -> bool:
        """Whether the program had a fault, or its process is being killed for a fault."""
        return self.fault is not None or (self._process is not None and self._process.is_killed)

    def call(self, request: Mapping[str, Any]) -> None:
        """Run a tool."""
        if self.fault is not None or self._process is None:
            self._server.answer(request["id"], self.fault or {"error": "the episode is closed"})
            return
        # Calls of an episode are in sequence, as each starts from the state that the last one left.
        if self._process.is_busy or self._reply_to is not None:
            raise RequestError("the episode is busy")
        self._reply_to = request["id"]
        message = json.dumps({"tool": request["tool"], "arguments": request["arguments"]}).encode()
        self._process.request(message, self._server.limits["call_seconds"], self._take_answer)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill(FaultReason.CRASHED, "the episode was closed")

    def _take_answer(self, answer: bytes) -> None:
        try:
            value = decode_json(answer)
        except NotJsonError as error:
            self._break_protocol(str(error))
            return
        match value:
            case {"fault": str(reason), "detail": str(detail)} if reason in set(FaultReason):
                self.fault = {"fault": reason, "detail": detail[:500]}
                self._reply(self.fault)
                self.close()
            case {"result": result, "state": dict(state)}:
                self.state, self.canonical_state = state, encode_json(state)
                self._reply({"result": result, "digest": compute_digest(self.canonical_state)})
            case _:
                self._break_protocol("the process sent neither a result nor a fault")

    def _break_protocol(self, detail: str) -> None:
        """Kill a process that sent nonsense; the answer follows when it has ended."""
        if self._process is not None:
            self._process.kill(FaultReason.CRASHED, detail)

    def _take_end(self, reason: FaultReason, detail: str) -> None:
        self._process = None
        self.fault = self.fault or {"fault": reason.value, "detail": detail}
        self._reply(self.fault)

    def _reply(self, answer: Answer) -> None:
        if self._reply_to is not None:
            number, self._reply_to = self._reply_to, None
            self._server.answer(number, answer)


class WorldLoading:
    """Loading of a world: its program is compiled once, in a process without rights."""

    def __init__(self, server: ContainerServer, request: Mapping[str, Any]) -> None:
        self._server = server
        self._request = request
        self._code: dict[str, str] = {}
        server.add_world(request["world"], self._make_world())  # counted, and unloaded, while it is compiled
        self._process = ForeignProcess(server, "compiler", self._take_end)
        message = json.dumps({"program": request["program"]}).encode()
        self._process.request(message, server.limits["load_seconds"], self._take_answer)

    def _make_world(self) -> dict[str, Any]:
        source = self._code or {"program": self._request["program"]}
        return {**source, "class_name": self._request["class_name"], "tools": self._request["tools"]}

    def _take_answer(self, answer: bytes) -> None:
        with contextlib.suppress(NotJsonError):
            match decode_json(answer):
                case {"code": str(code)}:
                    self._code = {"code": code}

    def _take_end(self, *_: object) -> None:
        self._server.add_world(self._request["world"], self._make_world())
        self._server.answer(self._request["id"], {})


class CheckRun:
    """The checks of a request, in a process of ours that starts a process for each.

    `initial`, `final`: states, in JSON.
    """

    def __init__(self, server: ContainerServer, request: Mapping[str, Any], initial: bytes, final: bytes) -> None:
        self._server = server
        self._id = request["id"]
        self._n_checks = len(request["checks"])
        self._outcomes: list[Answer] | None = None
        limits = server.limits
        about = {
            "seed": request.get("seed", 0),
            "checks": request["checks"],
            "seconds": limits["check_seconds"],
            "output_bytes": limits["output_bytes"],
        }
        self._message = b'{"initial":%b,"final":%b,%b' % (initial, final, json.dumps(about).encode()[1:])
        # The process itself ends each check; this is the limit for a process that does not.
        self._seconds = limits["load_seconds"] + self._n_checks * (limits["check_seconds"] + SPARE_SECONDS)
        server.queue_checks(self._start)

    def _start(self) -> None:
        process = ForeignProcess(self._server, CHECKS_ROLE, self._take_end)
        process.request(self._message, self._seconds, self._take_answer)

    def _take_answer(self, answer: bytes) -> None:
        self._outcomes = json.loads(answer)["outcomes"]
        self._server.answer(self._id, {"outcomes": self._outcomes})

    def _take_end(self, reason: FaultReason, detail: str) -> None:
        if self._outcomes is None:  # the process is ours: the container has no more memory, or no time
            lost = {"outcome": reason.value, "detail": detail}
            self._server.answer(self._id, {"outcomes": [lost] * self._n_checks})
        self._server.end_checks()


class ContainerServer:
    """See the module.

    Args:
        limits: `worlds.server.limits.ServerLimits` as a dict.
    """

    def __init__(self, limits: Mapping[str, Any]) -> None:
        self.limits = limits
        self.numbers = itertools.count()
        self.selector = selectors.DefaultSelector()
        self.deadlines: dict[ForeignProcess, float] = {}
        """Process of which an answer is due -> monotonic seconds."""
        self._worlds: dict[str, dict[str, Any]] = {}
        self._episodes: dict[str, ServedEpisode] = {}
        self._processes: dict[str, ForeignProcess] = {}
        self._free_uids = deque(range(FIRST_UID, FIRST_UID + N_UIDS))
        self._queued_checks: deque[Callable[[], None]] = deque()
        self._running_checks = 0
        self._operations: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "load": self._load,
            "unload": self._unload,
            "reset": self._reset,
            "call": self._call,
            "state": self._get_state,
            "check": self._check,
            "close": self._close,
            "stop": self._stop,
        }
        self._input = bytearray()
        self._starter = fork_starter()

    def run(self) -> None:
        """Serve until stdin ends."""
        self.selector.register(0, selectors.EVENT_READ, self._read_requests)
        self.selector.register(self._starter, selectors.EVENT_READ, self._take_ends)
        self._is_open = True
        while self._is_open:
            # At most a minute, so that an unlimited wait needs no special case.
            pause = max(0.0, min(self.deadlines.values(), default=float("inf")) - time.monotonic())
            for key, mask in self.selector.select(min(pause, 60.0)):
                key.data(mask)
            now = time.monotonic()
            for process in [process for process, deadline in self.deadlines.items() if now >= deadline]:
                process.kill(FaultReason.ENDLESS_LOOP, "the time of the call is used up")

    def answer(self, number: int, answer: Answer) -> None:
        """Write the answer to the request of that number."""
        self.write(json.dumps({"id": number, **answer}).encode() + b"\n")

    def write(self, line: bytes) -> None:
        """Write an answer."""
        view = memoryview(line)
        while view:
            view = view[os.write(1, view) :]

    def take_uids(self, number: int) -> list[int]:
        """Return users that no process has; the limits of episodes and checks allow for far fewer."""
        return [self._free_uids.popleft() for _ in range(number)]

    def start_process(self, process: ForeignProcess, role: str, descriptors: list[int]) -> None:
        """Start a process with its end of the channel and of the output."""
        self._processes[process.key] = process
        message = {
            "start": process.key,
            "role": role,
            "uids": process.uids,
            "memory_bytes": self.limits["process_bytes"],
        }
        socket.send_fds(self._starter, [json.dumps(message).encode()], descriptors)

    def send_to_starter(self, message: Mapping[str, Any]) -> None:
        """Send a message without descriptors to the starter."""
        self._starter.send(json.dumps(message).encode())

    def queue_checks(self, start: Callable[[], None]) -> None:
        """Start the checks of a request as soon as those of fewer than the limit run."""
        self._queued_checks.append(start)
        self._start_checks()

    def end_checks(self) -> None:
        """Count the ended checks of a request."""
        self._running_checks -= 1
        self._start_checks()

    def _start_checks(self) -> None:
        while self._queued_checks and self._running_checks < self.limits["checks_at_once"]:
            self._running_checks += 1
            self._queued_checks.popleft()()

    def _take_ends(self, _: int) -> None:
        data = self._starter.recv(DATAGRAM_BYTES)
        if not data:
            raise SystemExit("the process starter has ended")
        message = json.loads(data)
        process = self._processes.pop(message["ended"])
        # At the end of the queue: a user is used again as late as possible.
        self._free_uids.extend(process.uids)
        process.finish(message["signal"])

    def _read_requests(self, _: int) -> None:
        data = os.read(0, CHUNK)
        self._is_open = bool(data)
        # A request may come in several reads, and several requests in a single read.
        *lines, self._input[:] = (bytes(self._input) + data).split(b"\n")
        for line in lines:
            self._serve(json.loads(line))

    def _serve(self, request: Mapping[str, Any]) -> None:
        try:
            self._operations[request["op"]](request)
        except RequestError as error:
            self.answer(request["id"], {"error": str(error)})

    def _load(self, request: Mapping[str, Any]) -> None:
        if request["world"] not in self._worlds and len(self._worlds) >= self.limits["worlds"]:
            raise RequestError(f"there are {len(self._worlds)} worlds already")
        WorldLoading(self, request)

    def add_world(self, name: str, world: dict[str, Any]) -> None:
        """Keep the data that the first message to a process of a world has of it."""
        self._worlds[name] = world

    def _unload(self, request: Mapping[str, Any]) -> None:
        self._worlds.pop(request["world"], None)
        self.answer(request["id"], {})

    def _reset(self, request: Mapping[str, Any]) -> None:
        if request["world"] not in self._worlds:
            raise RequestError(f"there is no world {request['world']}")
        self._drop_episode(request["episode"])
        if len(self._episodes) >= self.limits["episodes"]:
            raise RequestError(f"there are {len(self._episodes)} episodes already")
        self._episodes[request["episode"]] = ServedEpisode(self, request, self._worlds[request["world"]])

    def _call(self, request: Mapping[str, Any]) -> None:
        self._find_episode(request).call(request)

    def _get_state(self, request: Mapping[str, Any]) -> None:
        episode = self._find_episode(request)
        self.answer(request["id"], {"digest": compute_digest(episode.canonical_state), "state": episode.state})

    def _check(self, request: Mapping[str, Any]) -> None:
        if "episode" in request:
            episode = self._find_episode(request)
            if episode.has_fault:  # its last state is not trusted
                lost = {"outcome": CheckOutcome.CRASHED.value, "detail": "the episode has a fault"}
                self.answer(request["id"], {"outcomes": [lost] * len(request["checks"])})
                return
            initial, final = episode.initial, episode.canonical_state
        else:
            initial, final = (_encode_state(request[name]) for name in ("initial", "final"))
        CheckRun(self, request, initial, final)

    def _close(self, request: Mapping[str, Any]) -> None:
        self._drop_episode(request["episode"])
        self.answer(request["id"], {})

    def _stop(self, _: Mapping[str, Any]) -> None:
        self._is_open = False

    def _find_episode(self, request: Mapping[str, Any]) -> ServedEpisode:
        if request["episode"] not in self._episodes:
            raise RequestError(f"there is no episode {request['episode']}")
        return self._episodes[request["episode"]]

    def _drop_episode(self, name: str) -> None:
        if (episode := self._episodes.pop(name, None)) is not None:
            episode.close()


def _encode_state(state: object) -> bytes:
    try:
        return encode_json(state)
    except NotJsonError as error:
        raise RequestError(f"the state is no JSON: {error}") from None


def main() -> None:
    """Run the server; the limits are the only argument, as JSON."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    make_empty_folder()
    import_modules()
    ContainerServer(json.loads(sys.argv[1])).run()
