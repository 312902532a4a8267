"""Global node ids as in GitHub's GraphQL API: opaque, with the kind of the object."""

from __future__ import annotations

import base64
import binascii


def encode_node_id(kind: str, *parts: object) -> str:
    """Return the id of an object of a `kind` ("PR", "I", "R", ...); the parts locate it: repository id, number."""
    inner = ":".join(str(part) for part in parts).encode()
    return f"{kind}_kwDO{base64.urlsafe_b64encode(inner).decode().rstrip('=')}"


def decode_node_id(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the arguments of `encode_node_id`, or None for an invalid id."""
    kind, mark, inner = text.partition("_kwDO")
    if not mark:
        return None
    try:
        parts = base64.b64decode(inner + "=" * (-len(inner) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return kind, tuple(parts.split(":"))
