"""Process of an episode: makes the world's object, runs tools, sends result and state after each."""

from __future__ import annotations

import base64
import contextlib
import inspect
import marshal
import socket
from collections.abc import Mapping
from typing import Any

from guest.world.canonical import NotJsonError, encode_in_order, encode_json
from guest.world.frames import pack_frame, read_frame
from guest.world.frozen import seed_step, set_clock
from guest.world.reasons import FaultReason
from guest.world.schema_check import find_schema_error


class WorldFaultError(Exception):
    """Fault of the program, with its reason."""

    def __init__(self, reason: FaultReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def run_world(channel: socket.socket) -> None:
    """Serve an episode until the other end closes or the program has a fault.

    The first message has `program` or `code` (of `compile_program`), `class_name`, `tools` (name -> schema), `state`,
    `seed` and `step`;
    the others have `tool` and `arguments`. Each is answered by `{"result", "state"}` or `{"fault", "detail"}`.
    """
    message = read_frame(channel)
    if message is None:
        return
    try:
        world = RunningWorld(message)
        _send(channel, b"null", world.encode_state())
        while (message := read_frame(channel)) is not None:
            _send(channel, world.call(message["tool"], message["arguments"]), world.encode_state())
    except WorldFaultError as error:
        channel.sendall(pack_frame(encode_json({"fault": error.reason.value, "detail": str(error)[:500]})))


def compile_program(channel: socket.socket) -> None:
    """Compile a program, which runs none of it. The message is `{"program"}`, the answer `{"code"}` or `{}`.

    `code` is in base64. Without `code`, each episode compiles the program, and so finds its fault.
    """
    message = read_frame(channel)
    if message is None:
        return
    answer: dict[str, str] = {}
    with contextlib.suppress(Exception):
        code = compile(message["program"], "world", "exec")
        answer = {"code": base64.b64encode(marshal.dumps(code)).decode()}
    channel.sendall(pack_frame(encode_json(answer)))


class RunningWorld:
    """Object of a world's class.

    Raises:
        WorldFaultError: the program or the state cannot be loaded.
    """

    def __init__(self, message: Mapping[str, Any]) -> None:
        self._tools: Mapping[str, Mapping[str, Any]] = message["tools"]
        self._seed, self._step = message["seed"], message["step"]
        set_clock(self._seed)
        seed_step(self._seed, self._step)
        self._object = _make_object(message)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        """Run a tool and return its result; arguments that break the schema never reach the program.

        Raises:
            WorldFaultError: the tool raised, or returned no dict with a boolean `success`.
        """
        self._step += 1
        seed_step(self._seed, self._step)
        if tool not in self._tools:
            return encode_json({"success": False, "error": f"there is no tool {tool}"})
        schema = self._tools[tool]
        if error := find_schema_error(arguments, schema):
            return encode_json({"success": False, "error": error})
        nullable = {
            name for name, property_schema in schema["properties"].items() if "null" in property_schema.get("type", ())
        }
        missing = {name: None for name in nullable - set(arguments) if "default" not in schema["properties"][name]}
        result = _run_foreign(getattr(self._object, tool), FaultReason.RAISES, **{**arguments, **missing})
        if type(result) is not dict or type(result.get("success")) is not bool:
            raise WorldFaultError(FaultReason.NO_SUCCESS, f"{tool} returned {_show(result)}")
        try:
            return encode_json(result)
        except NotJsonError as error:
            raise WorldFaultError(FaultReason.NO_SUCCESS, f"the result of {tool} is no JSON: {error}") from None

    def encode_state(self) -> bytes:
        """Return all attributes of the object, and the keys of dicts, in their order.

        Raises:
            WorldFaultError: they are not JSON.
        """
        try:
            return encode_in_order(dict(vars(self._object)))
        except (NotJsonError, TypeError) as error:
            raise WorldFaultError(FaultReason.STATE_NOT_JSON, str(error)) from None


def _make_object(message: Mapping[str, Any]) -> Any:
    namespace: dict[str, Any] = {"__name__": "world"}
    if "code" in message:
        code = marshal.loads(base64.b64decode(message["code"]))  # noqa: S302 - `compile_program` wrote it
    else:
        code = _run_foreign(compile, FaultReason.NOT_LOADED, message["program"], "world", "exec")
    _run_foreign(exec, FaultReason.NOT_LOADED, code, namespace)
    kind = namespace.get(message["class_name"])
    if not isinstance(kind, type):
        raise WorldFaultError(FaultReason.NOT_LOADED, f"there is no class {message['class_name']}")
    state = message["state"]
    takes_state = len(inspect.signature(kind).parameters) > 0
    made = _run_foreign(kind, FaultReason.STATE_NOT_LOADED, *([dict(state)] if takes_state else []))
    for name, value in state.items():
        _run_foreign(setattr, FaultReason.STATE_NOT_LOADED, made, name, value)
    return made


def _run_foreign(function: Any, reason: FaultReason, /, *arguments: Any, **named: Any) -> Any:
    """Return the value that foreign code returns; the error that it raises becomes a WorldFaultError."""
    try:
        return function(*arguments, **named)
    except MemoryError:
        raise WorldFaultError(FaultReason.MEMORY, "the process has no more memory") from None
    except BaseException as error:  # noqa: BLE001 - SystemExit, too
        raise WorldFaultError(reason, f"{type(error).__name__}: {_show(error, str)}") from None


def _show(value: object, write: Any = repr) -> str:
    """Return a foreign value as text, which may itself fail."""
    try:
        return str(write(value))[:200]
    except BaseException:  # noqa: BLE001
        return f"a {type(value).__name__}"


def _send(channel: socket.socket, result: bytes, state: bytes) -> None:
    channel.sendall(pack_frame(b'{"result":%b,"state":%b}' % (result, state)))
