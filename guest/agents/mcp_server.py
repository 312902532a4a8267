"""Serve tools with fixed answers over the Model Context Protocol. Runs inside the container, started by the agent.

Usage: python mcp_server.py TOOLS

TOOLS is a JSON list of tools with `name`, `description`, `parameters` (JSON schema of the arguments) and `answer`, the
text that each call returns. Messages are JSON-RPC, a line each, on stdin and stdout.
"""

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the program waits for this server, which starts sooner without these modules
    from collections.abc import Iterable
    from typing import Any

PROTOCOL = "2025-06-18"
"""Version of the protocol where the client names none."""
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class ToolRequestError(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer_request(method: str, params: "dict[str, Any]", tools: "list[dict[str, Any]]") -> "dict[str, Any]":
    """Return the result of a request.

    Raises:
        ToolRequestError: there is no such method or tool.
    """
    if method == "initialize":
        version = params.get("protocolVersion") or PROTOCOL
        info = {"name": "project", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [describe_tool(tool) for tool in tools]}
    if method == "tools/call":
        for tool in tools:
            if tool["name"] == params.get("name"):
                return {"content": [{"type": "text", "text": tool["answer"]}], "isError": False}
        raise ToolRequestError(INVALID_PARAMS, "there is no tool {}".format(params.get("name")))
    raise ToolRequestError(METHOD_NOT_FOUND, f"there is no method {method}")


def describe_tool(tool: "dict[str, Any]") -> "dict[str, Any]":
    """Return a tool as the protocol lists it."""
    return {"name": tool["name"], "description": tool["description"], "inputSchema": tool["parameters"]}


def answer_line(line: str, tools: "list[dict[str, Any]]") -> "dict[str, Any] | None":
    """Return the answer to a message; None to a notification, and to a line that is no message."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.get("id") is None or "method" not in message:
        return None
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        answer["result"] = answer_request(message["method"], message.get("params") or {}, tools)
    except ToolRequestError as error:
        answer["error"] = {"code": error.code, "message": str(error)}
    return answer


def serve(lines: "Iterable[str]", tools: "list[dict[str, Any]]") -> None:
    """Answer messages until the client closes the connection."""
    for line in lines:
        answer = answer_line(line, tools)
        if answer is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as tools_file:  # noqa: PTH123 - as above
        serve(sys.stdin, json.load(tools_file))
