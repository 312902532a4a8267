"""JSON as the gateway reads and writes it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

Json = dict[str, Any]

VOLATILE_KEYS = frozenset(
    ("metadata", "user", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "client_metadata")
)
"""Keys of a request that name its sender and not its content."""
CACHE_MARK = "cache_control"
"""Mark of Anthropic's clients, which they move from message to message."""


def write_json(value: object) -> bytes:
    """Return a value as compact JSON; characters beyond ASCII stand for themselves where they can be encoded."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()


def read_object(content: bytes | str) -> Json:
    """Return a JSON object.

    Raises:
        ValueError: it is something else.
    """
    value = json.loads(content)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - a wrong value, not a wrong argument
    return value


def compute_fingerprint(dialect: str, body: Json) -> str:
    """Return the sha256 of a request's canonical form: without its sender and without marks for caches."""
    kept = {key: value for key, value in body.items() if key not in VOLATILE_KEYS}
    if dialect == "messages":
        kept = remove_cache_marks(kept)
    text = json.dumps([dialect, kept], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def remove_cache_marks(value: Any) -> Any:
    """Return a value without `cache_control` at any depth."""
    if isinstance(value, dict):
        return {key: remove_cache_marks(inner) for key, inner in value.items() if key != CACHE_MARK}
    return [remove_cache_marks(inner) for inner in value] if isinstance(value, list) else value
