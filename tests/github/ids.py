"""Global node ids as GitHub's GraphQL hands them out: opaque, but telling the kind of thing."""

from __future__ import annotations

import base64
import binascii


def node_id(kind: str, *parts: object) -> str:
    """The id of a thing of a `kind` ("PR", "I", "R", ...); the parts, say repository id and number, find it again."""
    inner = ":".join(str(part) for part in parts).encode()
    return f"{kind}_kwDO{base64.urlsafe_b64encode(inner).decode().rstrip('=')}"


def read_node_id(text: str) -> tuple[str, tuple[str, ...]] | None:
    """What `node_id` was given, or None for an id that never was one."""
    kind, mark, inner = text.partition("_kwDO")
    if not mark:
        return None
    try:
        parts = base64.b64decode(inner + "=" * (-len(inner) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return kind, tuple(parts.split(":"))
