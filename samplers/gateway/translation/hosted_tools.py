"""Tools that an agent may not have: those that run elsewhere than in its container."""

from __future__ import annotations

import re

from backends.llm.conversations.messages import CLIENT_TOOLS
from backends.llm.conversations.tool_table import BUILT_IN_TOOLS
from samplers.gateway.dialects import Dialect
from samplers.gateway.json_text import Json

_WEB_NAME = re.compile(r"web_?(search|fetch)|google_?search|url_?fetch", re.IGNORECASE)
"""Names of tools that read the web, wherever they run."""
_HOLDERS = ("web_search_options", "mcp_servers", "container", "plugins")
"""Parameters of a request that stand for tools of the server."""


def is_hosted_tool(tool: Json, dialect: Dialect | str) -> bool:
    """Return whether the model's server runs a tool, or it reads the web."""
    kind = str(tool.get("type") or "custom")
    name = str((tool.get("function") or tool).get("name") or "")
    if _WEB_NAME.search(name) or _WEB_NAME.search(kind):
        return True
    if dialect == Dialect.MESSAGES:
        return "input_schema" not in tool and not kind.startswith(tuple(CLIENT_TOOLS))
    if dialect == Dialect.RESPONSES:
        return kind not in ("function", "custom", "namespace", *BUILT_IN_TOOLS)
    return kind not in ("function", "custom")


def remove_hosted_tools(body: Json, dialect: Dialect) -> tuple[Json, list[str]]:
    """Return a request without hosted tools, and the tools that were removed; the same request where nothing was."""
    tools = body.get("tools")
    given = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    removed = [tool for tool in given if is_hosted_tool(tool, dialect)]
    held = [key for key in _HOLDERS if body.get(key)]
    if not removed and not held:
        return body, []
    kept = [tool for tool in given if not is_hosted_tool(tool, dialect)]
    changed = {key: value for key, value in body.items() if key not in (*held, "tools")}
    if kept:
        changed["tools"] = kept
    else:
        changed.pop("tool_choice", None)
        changed.pop("parallel_tool_calls", None)
    names = [str((tool.get("function") or tool).get("name") or tool.get("type")) for tool in removed]
    if _read_chosen(changed.get("tool_choice")) in names:
        del changed["tool_choice"]
    return changed, [*(f"tool removed: {name}" for name in names), *(f"parameter removed: {key}" for key in held)]


def _read_chosen(choice: object) -> str:
    """Return the name of the tool that a request demands; nothing where it demands none."""
    if not isinstance(choice, dict):
        return ""
    return str((choice.get("function") or choice).get("name") or choice.get("type"))
