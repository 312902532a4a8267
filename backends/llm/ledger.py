"""Ledger of answers: every answer that an endpoint gave is kept, so that no call is paid twice.

`calls.jsonl` has a line for each answer, written and synchronised before the answer is used. A line that a kill cut in
the middle is removed when the ledger is opened; its call is made again with the same `Idempotency-Key`, so an endpoint
that knows such keys does not charge it again. Prompts lie in `prompts/`, each once (`taskdb.artifacts`).
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from backends.llm.base import EmbeddingModel, LanguageModel, Message, ModelReply, ResponseSchema, Tool, ToolCall
from backends.llm.meter import TokenUsage, UsageMeter
from core.errors import CancelledRunError, InputError, make_write_error
from taskdb.artifacts import Artifacts

CALLS_NAME = "calls.jsonl"
PROMPTS_NAME = "prompts"
LOCK_NAME = ".lock"
EMBEDDING_BATCH = 64
"""Texts of a request for embeddings."""


@dataclass(frozen=True, kw_only=True)
class CallIdentity:
    """Values that determine a call besides its messages. `sample` and `attempt` are from 1."""

    purpose: str
    """Purpose that the answer is for, such as `conversation`."""
    seed: str
    """Id of the subject that it is about: a seed, a theme, a world."""
    sample: int = 1
    attempt: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Temperature, limits and versions."""


class CallLedger:
    """The ledger of a folder, open for a process. Threads may share it.

    Args:
        folder: folder where it lies; made if need be.
        command: the command that writes to it, for the error of a second process.

    Raises:
        InputError: another process has it open, or the folder cannot be written.
        Transient: the disk is full.
    """

    def __init__(self, folder: Path, command: str = "mergemill simulate") -> None:
        self._command = command
        self._path = folder / CALLS_NAME
        self._prompts = Artifacts(folder / PROMPTS_NAME)
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._file: IO[bytes] | None = None
        self._guard: IO[str] | None = None
        self._folder = folder

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _open(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            # A file of its own is locked: a lock ends with its process, so a killed process leaves none behind.
            self._guard = (self._folder / LOCK_NAME).open("w")
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file = self._path.open("a+b")
            self._index()
        except BlockingIOError as error:
            raise InputError(
                f"another `{self._command}` writes to {self._folder}",
                advice="wait for its end, or name another folder",
            ) from error
        except OSError as error:
            raise make_write_error(f"cannot write to {self._folder}", error, advice="free some space") from error

    def _close(self) -> None:
        for handle in (self._file, self._guard):
            if handle is not None:
                handle.close()

    def __len__(self) -> int:
        return len(self._places)

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the line of a call, None when it was not answered."""
        with self._lock:
            place = self._places.get(key)
            if place is None or self._file is None:
                return None
            self._file.seek(place)
            entry: dict[str, Any] = json.loads(self._file.readline())
            return entry

    def add(self, key: str, identity: CallIdentity, messages: Sequence[Message], reply: ModelReply, model: str) -> None:
        """Keep an answer; it is on the disk when this returns.

        Raises:
            InputError, Transient: it cannot be written.
        """
        prompt = self._prompts.put(json.dumps(_list_content(messages)).encode())
        calls = {"tool_calls": [asdict(call) for call in reply.tool_calls]} if reply.tool_calls else {}
        line = {
            **_describe_call(key, identity, model),
            "prompt": prompt,
            "text": reply.text,
            **calls,
            "reasoning": reply.reasoning,
            "finish_reason": reply.finish_reason,
            "usage": asdict(reply.usage),
            "cost": reply.cost,
            "seconds": round(reply.seconds, 3),
            "answered_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._append(line)

    def add_vector(self, key: str, identity: CallIdentity, text: str, vector: Sequence[float], model: str) -> None:
        """Keep the embedding of a text, in single precision; it is on the disk when this returns.

        Raises:
            InputError, Transient: it cannot be written.
        """
        packed = base64.b64encode(array("f", vector).tobytes()).decode()
        line = {**_describe_call(key, identity, model), "prompt": self._prompts.put(text.encode()), "vector": packed}
        self._append({**line, "answered_at": datetime.now(UTC).isoformat(timespec="seconds")})

    def _append(self, line: Mapping[str, Any]) -> None:
        key, content = line["key"], json.dumps(line).encode() + b"\n"
        with self._lock:
            # Two threads may have requested the same; the first answer is kept, since it may have been used already.
            if self._file is None or key in self._places:
                return
            try:
                place = self._file.seek(0, os.SEEK_END)
                self._file.write(content)
                self._file.flush()
                # The answer was paid for: it must survive the machine, and not only the process.
                os.fsync(self._file.fileno())
            except OSError as error:
                raise make_write_error(f"cannot write to {self._folder}", error, advice="free some space") from error
            self._places[key] = place

    def _index(self) -> None:
        """Read where each answer is, and cut off a last line without an end; a damaged line is left alone."""
        if self._file is None:
            return
        self._file.seek(0)
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            if key := _read_key(line):
                self._places.setdefault(key, end)
            end += len(line)
        # A kill leaves at most the last line incomplete.
        self._file.truncate(end)


def _read_key(line: bytes) -> str:
    """Return the key of a line, empty for a damaged line."""
    try:
        return str(json.loads(line)["key"])
    except (ValueError, KeyError, TypeError):
        return ""


class Pacer:
    """Least time between two calls of all threads together, in seconds; 0 for none."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def wait(self) -> None:
        """Wait for the turn of the calling thread.

        Raises:
            CancelledRunError: `stop` was called.
        """
        if self._seconds > 0:
            with self._lock:
                now = time.monotonic()
                # The turn is reserved under the lock, and the wait is outside of it.
                at = max(self._next, now)
                self._next = at + self._seconds
            self._stopping.wait(at - now)
        if self._stopping.is_set():
            raise CancelledRunError("stopped before a model request")

    def stop(self) -> None:
        """End all waiting."""
        self._stopping.set()


class RecordedModel:
    """A language model whose answers are those of the ledger where it has them (`backends.llm.base.LanguageModel`).

    `keys` are those of the answers that it returned, in their order, and `fresh` those among them for which the
    endpoint was called. Not thread-safe.
    """

    def __init__(self, model: LanguageModel, ledger: CallLedger, identity: CallIdentity, pacer: Pacer) -> None:
        self.name = model.name
        self.context_tokens = model.context_tokens
        self.keys: list[str] = []
        self.fresh: list[str] = []
        self._model, self._ledger, self._identity, self._pacer = model, ledger, identity, pacer

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        meter: UsageMeter,
        deadline: float | None = None,
        response_schema: ResponseSchema | None = None,
        request_key: str = "",
    ) -> ModelReply:
        """Return the model's next turn; see `backends.llm.base.LanguageModel`. `meter` counts new calls alone."""
        key = request_key or compute_call_key(self.name, self._identity, messages, response_schema, tools)
        known = self._ledger.find(key)
        if known is None:
            self._pacer.wait()
            reply = self._model.complete(
                messages, tools, meter=meter, deadline=deadline, response_schema=response_schema, request_key=key
            )
            self._ledger.add(key, self._identity, messages, reply, self.name)
            self.fresh.append(key)
        else:
            reply = read_reply(known)
        self.keys.append(key)
        return reply

    def get_model(self, name: str) -> LanguageModel:
        """Return another model of the same endpoint, whose answers are recorded, too."""
        return RecordedModel(self._model.get_model(name), self._ledger, self._identity, self._pacer)

    def stop(self) -> None:
        """Cancel all current and future requests."""
        self._pacer.stop()
        self._model.stop()


class RecordedEmbeddings:
    """Embeddings of texts, those of the ledger where it has them. Not thread-safe.

    `fresh` counts the texts that were sent to the endpoint.
    """

    def __init__(self, model: EmbeddingModel, ledger: CallLedger, identity: CallIdentity, pacer: Pacer) -> None:
        self.fresh = 0
        self._model, self._ledger, self._identity, self._pacer = model, ledger, identity, pacer

    def embed(self, texts: Sequence[str], *, meter: UsageMeter) -> list[list[float]]:
        """Return the vector of each text, in their order, in single precision.

        Raises:
            Transient, InputError, CancelledRunError: as `EmbeddingModel.embed`.
        """
        keys = {text: self._compute_key(text) for text in texts}
        missing = [text for text, key in keys.items() if self._ledger.find(key) is None]
        for start in range(0, len(missing), EMBEDDING_BATCH):
            batch = missing[start : start + EMBEDDING_BATCH]
            self._pacer.wait()
            # Of the whole batch: a repeated request has the same texts in the same order.
            request_key = hashlib.sha256("".join(keys[text] for text in batch).encode()).hexdigest()
            vectors = self._model.embed(batch, meter=meter, request_key=request_key)
            for text, vector in zip(batch, vectors, strict=True):
                self._ledger.add_vector(keys[text], self._identity, text, vector, self._model.name)
            self.fresh += len(batch)
        return [self._read(keys[text]) for text in texts]

    def _compute_key(self, text: str) -> str:
        content = [self._model.name, asdict(self._identity), text]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode(errors="replace")).hexdigest()

    def _read(self, key: str) -> list[float]:
        line = self._ledger.find(key) or {"vector": ""}
        return array("f", base64.b64decode(line["vector"])).tolist()


def compute_call_key(
    model: str,
    identity: CallIdentity,
    messages: Sequence[Message],
    response_schema: ResponseSchema | None,
    tools: Sequence[Tool] = (),
) -> str:
    """Return the hash of all that determines an answer but chance.

    The text that is sent, and which draw of it this is.
    """
    schema = dict(response_schema.schema) if response_schema else None
    content: list[Any] = [model, asdict(identity), _list_content(messages), schema]
    # Only where there are any, so that keys of earlier versions stay valid.
    if tools:
        content.append([asdict(tool) for tool in tools])
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode(errors="replace")).hexdigest()


def read_reply(line: Mapping[str, Any]) -> ModelReply:
    """Return the reply of a line of the ledger."""
    return ModelReply(
        text=line["text"],
        tool_calls=tuple(ToolCall(**call) for call in line.get("tool_calls", ())),
        reasoning=line["reasoning"],
        finish_reason=line["finish_reason"],
        usage=TokenUsage(**line["usage"]),
        cost=line["cost"],
        seconds=line["seconds"],
    )


def _describe_call(key: str, identity: CallIdentity, model: str) -> dict[str, Any]:
    return {
        "key": key,
        "purpose": identity.purpose,
        "seed": identity.seed,
        "sample": identity.sample,
        "attempt": identity.attempt,
        "model": model,
        "settings": dict(identity.settings),
    }


def _list_content(messages: Sequence[Message]) -> list[list[Any]]:
    """Return role and text of each message, and the parts that it has of tool calls."""
    return [
        [
            message.role,
            message.text,
            *([[_list_call(call) for call in message.tool_calls]] if message.tool_calls else []),
            *([message.tool_call_id] if message.tool_call_id else []),
        ]
        for message in messages
    ]


def _list_call(call: ToolCall) -> dict[str, Any]:
    """Return the parts of a call that decide the next answer; how its arguments were written is not part of it."""
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "problem": call.problem}
