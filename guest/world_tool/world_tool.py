"""A world in an agent's container: commands `call TOOL [ARGUMENTS]`, `tools`, and `mcp`, an MCP server on stdio.

Each call runs in a process of its own that goes on from the saved state; its tool and arguments are added to a log. The
verifier plays that log against the world again, so it does not matter how else an agent changes these
files.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guest.world.canonical import decode_json
from guest.world.frozen import freeze_clock, replace_randomness, seed_step, set_clock
from guest.world.world_process import RunningWorld, WorldFaultError

WORLD_FILE = "world.json"
STATE_FILE, LOG_FILE, LOCK_FILE = "state.json", "calls.jsonl", "lock"
CALL_SECONDS = 10
"""A call that takes longer is a fault of the world."""
PROTOCOL_VERSION = "2025-06-18"
USAGE = "usage: world tools | world call TOOL [ARGUMENTS, a JSON object] | world mcp"
Answer = dict[str, Any]


class StoredWorld:
    """World whose state lies in a folder.

    Args:
        world: content of WORLD_FILE: `program`, `class_name`, `tools`, `state`, `seed`.
        folder: folder of the state and the log.
    """

    def __init__(self, world: Mapping[str, Any], folder: Path) -> None:
        self._world = world
        self._folder = folder

    @property
    def tools(self) -> list[Answer]:
        """The tools as models take them."""
        return list(self._world["tools"])

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Return the result of a call, which is logged."""
        with self._lock():
            state, step = self._read_state()
            with (self._folder / LOG_FILE).open("a", encoding="utf-8") as log:
                log.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
            answer = run_apart(self._world, state, step, tool, arguments)
            if "fault" in answer:
                return {"success": False, "error": f"the environment has a fault: {answer['fault']}"}
            self._write_state(answer["state"], step + 1)
            result: Answer = answer["result"]
            return result

    def _read_state(self) -> tuple[Any, int]:
        path = self._folder / STATE_FILE
        if not path.exists():
            return self._world["state"], 0
        saved = decode_json(path.read_bytes())
        return saved["state"], saved["step"]

    def _write_state(self, state: Any, step: int) -> None:
        temporary = self._folder / f"{STATE_FILE}.part"
        temporary.write_text(json.dumps({"state": state, "step": step}), encoding="utf-8")
        temporary.replace(self._folder / STATE_FILE)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self._folder / LOCK_FILE).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def run_apart(
    world: Mapping[str, Any], state: Any, step: int, tool: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `{"result", "state"}` of a call, or `{"fault"}`; it runs in a child process, whose clock stands still."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(CALL_SECONDS)
            freeze_process(world["seed"])
            with os.fdopen(writing, "wb") as channel:
                channel.write(run_call(world, state, step, tool, arguments))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as channel:
        data = channel.read()
    os.waitpid(child, 0)
    answer: dict[str, Any] = json.loads(data) if data else {"fault": "crashed"}
    return answer


def freeze_process(seed: int) -> None:
    """Let this process see the clock and the random numbers of a seed."""
    freeze_clock()
    replace_randomness()
    set_clock(seed)
    seed_step(seed, 0)


def run_call(world: Mapping[str, Any], state: Any, step: int, tool: str, arguments: Mapping[str, Any]) -> bytes:
    """Run a call in this process, and return the answer as JSON."""
    schemas = {entry["name"]: entry["parameters"] for entry in world["tools"]}
    try:
        running = RunningWorld({**world, "tools": schemas, "state": state, "step": step})
        result = running.call(tool, arguments)
        return b'{"result":%b,"state":%b}' % (result, running.encode_state())
    except WorldFaultError as error:
        return json.dumps({"fault": f"{error.reason.value}: {error}"}).encode()


class McpServer:
    """Server of the Model Context Protocol: a message of JSON-RPC a line."""

    def __init__(self, world: StoredWorld) -> None:
        self._world = world

    def serve(self, lines: Iterator[str]) -> Iterator[str]:
        """Yield the answer to each line that needs an answer."""
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                yield _write_error(None, -32700, "the line is no JSON")
                continue
            if not isinstance(message, dict) or "method" not in message:
                yield _write_error(None, -32600, "the message is no request")
            elif "id" in message:
                yield self._answer(message["id"], message["method"], message.get("params") or {})

    def _answer(self, number: Any, method: str, given: Mapping[str, Any]) -> str:
        if method == "initialize":
            version = given.get("protocolVersion", PROTOCOL_VERSION)
            about = {"name": "mergemill-world", "version": "1"}
            return _write_result(
                number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            )
        if method == "ping":
            return _write_result(number, {})
        if method == "tools/list":
            tools = [
                {"name": tool["name"], "description": tool["description"], "inputSchema": tool["parameters"]}
                for tool in self._world.tools
            ]
            return _write_result(number, {"tools": tools})
        if method == "tools/call":
            return self._call(number, given)
        return _write_error(number, -32601, f"there is no method {method}")

    def _call(self, number: Any, given: Mapping[str, Any]) -> str:
        name, arguments = given.get("name"), given.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return _write_error(number, -32602, "name must be a text, arguments an object")
        result = self._world.call(name, arguments)
        content = [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}]
        return _write_result(
            number, {"content": content, "structuredContent": result, "isError": not result.get("success")}
        )


def _write_result(number: Any, result: Answer) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result})


def _write_error(number: Any, code: int, text: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}})


def main(arguments: list[str], world: StoredWorld) -> int:
    """Run a command and return its exit code: 1 where a call failed, 2 where the command is wrong."""
    match arguments:
        case ["tools"]:
            sys.stdout.write(json.dumps(world.tools, indent=1, ensure_ascii=False) + "\n")
            return 0
        case ["call", tool, *rest] if len(rest) < 2:
            try:
                given = json.loads(rest[0]) if rest else {}
            except ValueError:
                given = None
            if not isinstance(given, dict):
                sys.stderr.write(f"world: the arguments are no JSON object ({USAGE})\n")
                return 2
            result = world.call(tool, given)
            sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
            return 0 if result.get("success") else 1
        case ["mcp"]:
            for answer in McpServer(world).serve(iter(sys.stdin)):
                sys.stdout.write(answer + "\n")
                sys.stdout.flush()
            return 0
    sys.stderr.write(f"{USAGE}\n")
    return 2


def run(folder: str, state_folder: str) -> None:
    """Run the command of this process."""
    content = json.loads((Path(folder) / WORLD_FILE).read_text(encoding="utf-8"))
    sys.exit(main(sys.argv[1:], StoredWorld(content, Path(state_folder))))
