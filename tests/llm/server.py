"""A model that says what a test wants it to say, over real HTTP: chat completions as OpenAI's API has them.

A script is a list of answers, the last of which is given for ever, or a function of the conversation. Streams are sent
in small pieces, so that words and calls are cut in the middle.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE = 7
"""Characters of text, or of a call's arguments, in one piece of a stream."""


@dataclass(frozen=True)
class Call:
    """A tool the model asks for; `arguments` as text when they are to be broken."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, kw_only=True)
class Says:
    """A good answer, or one that goes wrong on its way.

    `cut`: the connection breaks after so many pieces. `hang`: seconds of silence before the first. `drip`: seconds
    between two pieces. `usage`: what is told of tokens; None tells nothing.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = ""
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10})
    cut: int | None = None
    hang: float = 0.0
    drip: float = 0.0
    ends: bool = True
    """Whether it says that it is done."""

    @property
    def ended(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, kw_only=True)
class Fails:
    """An answer that is none: a status and what is said with it. `raw`: the body as it is, with status 200 too."""

    status: int = 500
    message: str = "something is wrong"
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang: float = 0.0

    @property
    def body(self) -> bytes:
        error = {"message": self.message, "type": "error", "code": self.code or None}
        return self.raw if self.raw is not None else json.dumps({"error": error}).encode()


Answer = Says | Fails
Script = Sequence[Answer] | Callable[[Mapping[str, Any]], Answer]


@dataclass
class ModelServer:
    """What was asked, and what is answered. `knows`: what of a request it accepts; the rest is a 400."""

    url: str = ""
    script: Script = ()
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    models: tuple[str, ...] | None = ("scripted",)
    listing: Fails | None = None
    """What is answered instead of the models."""
    tools: bool = True
    shapes: bool = True
    """Whether it takes schemas of answers."""
    stream: bool = True
    stream_options: bool = True
    refused: str = ""
    """A parameter that it does not take."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set at the end, so that nobody hangs longer."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def says(self, *answers: Answer) -> None:
        self.script = answers

    def next(self, request: dict[str, Any], key: str) -> Answer:
        """The answer to a request."""
        with self.lock:
            self.asked.append(request)
            self.keys.append(key)
            self.at.append(time.monotonic())
            if lack := self._lack(request):
                return Fails(status=400, message=lack)
            if callable(self.script):
                return self.script(request)
            answers = list(self.script)
            self.script = answers[1:] or answers
            return answers[0]

    def _lack(self, request: dict[str, Any]) -> str:
        if "tools" in request and not self.tools:
            return f"registry/{request['model']} does not support tools"
        if "response_format" in request and not self.shapes:
            return "response_format: Extra inputs are not permitted"
        if "stream_options" in request and not self.stream_options:
            return "Unrecognized request argument supplied: stream_options"
        if self.refused and self.refused in request:
            return f"Unsupported parameter: '{self.refused}' is not supported. Use 'max_completion_tokens' instead."
        return ""


def whole(says: Says) -> dict[str, Any]:
    """The answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": says.text or None}
    if says.calls:
        message["tool_calls"] = [_call(number, call, call.json) for number, call in enumerate(says.calls)]
    choices = [{"index": 0, "message": message, "finish_reason": says.ended}]
    return {"id": "1", "object": "chat.completion", "model": "scripted", "choices": choices, "usage": says.usage}


def pieces(says: Says) -> Iterator[dict[str, Any]]:
    """The same as a stream."""
    yield _piece({"role": "assistant", "content": ""})
    for start in range(0, len(says.text), PIECE):
        yield _piece({"content": says.text[start : start + PIECE]})
    for number, call in enumerate(says.calls):
        yield _piece({"tool_calls": [_call(number, call, "")]})
        for start in range(0, len(call.json), PIECE):
            part = {"index": number, "function": {"arguments": call.json[start : start + PIECE]}}
            yield _piece({"tool_calls": [part]})
    if says.ends:
        yield _piece({}, says.ended)
        if says.usage is not None:
            yield {
                "id": "1",
                "object": "chat.completion.chunk",
                "model": "scripted",
                "choices": [],
                "usage": says.usage,
            }


def _call(number: int, call: Call, arguments: str) -> dict[str, Any]:
    about = {"name": call.name, "arguments": arguments}
    return {"index": number, "id": f"c{number}", "type": "function", "function": about}


def _piece(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "1", "object": "chat.completion.chunk", "model": "scripted", "choices": choices}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: ModelServer

    def do_GET(self) -> None:
        if self.model.listing is not None:
            self._whole(self.model.listing.status, self.model.listing.body)
        elif self.model.models is None:
            self._whole(404, b"{}")
        else:
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in self.model.models]
            self._whole(200, json.dumps({"object": "list", "data": listed}).encode())

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        answer = self.model.next(request, self.headers.get("Authorization", "").removeprefix("Bearer "))
        self.model.released.wait(answer.hang)
        if isinstance(answer, Fails):
            self._whole(answer.status, answer.body, answer.headers)
        elif request.get("stream") and self.model.stream:
            self._stream(answer)
        else:
            body = json.dumps(whole(answer)).encode()
            self._whole(200, body if answer.cut is None else body[: answer.cut], length=len(body))

    def _whole(self, status: int, body: bytes, headers: Mapping[str, str] | None = None, length: int = 0) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length > len(body)

    def _stream(self, says: Says) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(pieces(says)):
            if number == says.cut:
                self.close_connection = True
                return
            self._chunk(f"data: {json.dumps(piece)}\n\n")
            self.model.released.wait(says.drip)
        self._chunk("data: [DONE]\n\n" if says.ends else ": bye\n\n")
        self._chunk("")

    def _chunk(self, text: str) -> None:
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing."""


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that hung up."""


@contextmanager
def serving(script: Script = (), **about: Any) -> Iterator[ModelServer]:
    """A model on a free port, gone afterwards."""
    model = ModelServer(script=script, **about)
    handler = type("Handler", (_Handler,), {"model": model})
    with _Quiet(("127.0.0.1", 0), handler) as http:
        model.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield model
        finally:
            model.released.set()
            http.shutdown()
            thread.join()
