"""Parts of a message's content: text, images, reasoning."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

TEXT_TYPES = frozenset(("text", "input_text", "output_text", "summary_text", "reasoning_text"))
LINE_END = "\n"
_REASONING_PREFIX = "mergemill:"
"""Before the reasoning that a Responses client gets as encrypted content, and gives back."""


class ConversationError(Exception):
    """A conversation has a form that cannot be read; the text is a sentence that names it."""


def refuse(message: str) -> ConversationError:
    """Return the error of a form that cannot be read."""
    return ConversationError(message)


def join_text(content: object) -> str:
    """Return the text of a content of any dialect; several parts are joined by line ends."""
    if content is None:
        return ""
    if isinstance(content, list):
        return LINE_END.join(text for text in map(read_text, content) if text)
    return content if isinstance(content, str) else json.dumps(content)


def read_text(part: object) -> str:
    """Return the text of a part; nothing for an image."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if part.get("type") == "refusal":
        return str(part.get("refusal") or "")
    return str(part.get("text") or "") if part.get("type", "text") in TEXT_TYPES else ""


def to_chat_content(parts: Iterable[Json]) -> str | list[Json]:
    """Return the parts of a user's message as content of chat completions: a text where there is only text."""
    listed = [part for part in map(_to_chat_part, parts) if part]
    if all(part["type"] == "text" for part in listed):
        return LINE_END.join(part["text"] for part in listed)
    return listed


def _to_chat_part(part: Json) -> Json | None:
    kind = part.get("type", "text")
    if kind in TEXT_TYPES:
        return {"type": "text", "text": part.get("text") or ""}
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": _read_source(part.get("source") or {})}}
    if kind == "input_image":
        url = part.get("image_url")
        if not isinstance(url, str):
            raise refuse("images by file id are not available: send the image itself")
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "image_url":
        return dict(part)
    text = _read_other_text(part)
    if text is not None:
        return {"type": "text", "text": text}
    raise refuse(f"content of type {kind!r} cannot be translated")


def _read_other_text(part: Json) -> str | None:
    """Return the part that stands for a part that is text under another name; None for others."""
    kind = part.get("type")
    if kind == "document" and (part.get("source") or {}).get("type") == "text":
        return str(part["source"].get("data") or "")
    if kind == "tool_reference":
        return f"tool {part.get('tool_name', '')}"
    return read_text(part) if kind == "refusal" else None


def _read_source(source: Json) -> str:
    if source.get("type") == "base64":
        return f"data:{source.get('media_type', '')};base64,{source.get('data', '')}"
    if source.get("type") == "url":
        return str(source.get("url", ""))
    raise refuse("images by file id are not available: send the image itself")


def to_blocks(content: object) -> list[Json]:
    """Return content of chat completions as blocks of Messages; empty text has none."""
    if isinstance(content, str) or content is None:
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        raise refuse("content is neither text nor a list of parts")
    return [block for block in map(_to_block, content) if block]


def _to_block(part: Json) -> Json | None:
    kind = part.get("type", "text")
    marks = {"cache_control": part["cache_control"]} if "cache_control" in part else {}
    if kind in ("text", "refusal"):
        text = read_text(part)
        return {"type": "text", "text": text} | marks if text else None
    if kind == "image_url":
        url = str((part.get("image_url") or {}).get("url", ""))
        head, comma, data = url.partition(",")
        if url.startswith("data:") and comma:
            media_type = head.removeprefix("data:").partition(";")[0]
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}} | marks
        return {"type": "image", "source": {"type": "url", "url": url}} | marks
    raise refuse(f"content of type {kind!r} cannot be translated")


def split_images(content: object) -> tuple[str, list[Json]]:
    """Return the text of a tool's result and its images, which have no place in a tool message."""
    if not isinstance(content, list):
        return join_text(content), []
    images = [part for part in content if isinstance(part, dict) and part.get("type") in ("image", "input_image")]
    parts = [part for part in map(_to_chat_part, images) if part]
    return join_text(content), parts


def read_reasoning(message: Mapping[str, Any]) -> str:
    """Return the reasoning of a message or a delta of chat completions, under any of its names."""
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    return reasoning if isinstance(reasoning, str) else ""


def seal_reasoning(text: str, blocks: object) -> str:
    """Return reasoning as the encrypted content of a Responses item, from which `open_reasoning` gets it back."""
    packed = json.dumps({"text": text, "blocks": blocks or []}).encode()
    return _REASONING_PREFIX + base64.b64encode(packed).decode()


def open_reasoning(sealed: object) -> tuple[str, list[Json]]:
    """Return text and signed blocks of sealed reasoning; nothing for the blocks that others encrypted."""
    if not isinstance(sealed, str) or not sealed.startswith(_REASONING_PREFIX):
        return "", []
    try:
        packed = json.loads(base64.b64decode(sealed.removeprefix(_REASONING_PREFIX)))
        return str(packed["text"]), list(packed["blocks"])
    except (ValueError, KeyError, TypeError):
        return "", []


def parse_arguments(text: object) -> Json:
    """Return the arguments of a call as an object; text that is none stands under `_arguments`."""
    if isinstance(text, dict):
        return text
    if not text:
        return {}
    try:
        value = json.loads(str(text), strict=False)
    except ValueError:
        return {"_arguments": text}
    return value if isinstance(value, dict) else {"_arguments": value}
