"""The server of tools with fixed answers, over its stdin and stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from evaluation.instructions.guidance_files import build_tool_files
from samplers.scaffolds.base import AGENT_FOLDER
from samplers.scaffolds.delivery import MCP_SCRIPT, MCP_TOOLS_FILE
from tests.samplers.guidance import GUIDANCE

(TOOL,) = GUIDANCE.tools


def request(number: object, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def test_a_client_lists_and_calls_the_tools(tmp_path: Path) -> None:
    files = build_tool_files(AGENT_FOLDER, GUIDANCE.tools)
    for path in (MCP_SCRIPT, MCP_TOOLS_FILE):
        (tmp_path / Path(path).name).write_bytes(files[path])
    lines = [
        request(1, "initialize", protocolVersion="2024-11-05", capabilities={}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "no message",
        "[]",
        "",
        request("two", "tools/list"),
        request(3, "tools/call", name=TOOL.name, arguments={"version": "1"}),
        request(4, "tools/call", name="missing"),
        request(5, "resources/list"),
        json.dumps({"jsonrpc": "2.0", "id": 6, "method": "ping"}),
    ]
    done = subprocess.run(
        [sys.executable, *(str(tmp_path / Path(path).name) for path in (MCP_SCRIPT, MCP_TOOLS_FILE))],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, "two", 3, 4, 5, 6]
    opened, listed, called, missing, unknown, pong = answers
    assert opened["result"]["protocolVersion"] == "2024-11-05"
    assert opened["result"]["capabilities"] == {"tools": {}}
    wanted = {"name": TOOL.name, "description": TOOL.description, "inputSchema": TOOL.parameters}
    assert listed["result"] == {"tools": [wanted]}
    assert called["result"] == {"content": [{"type": "text", "text": TOOL.answer}], "isError": False}
    assert (missing["error"]["code"], unknown["error"]["code"], pong["result"]) == (-32602, -32601, {})
