"""The stream that a client gets: the upstream's own bytes, or a translation of its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from samplers.gateway.dialects import Dialect
from samplers.gateway.json_text import Json, write_json
from samplers.gateway.translation import Translation
from samplers.gateway.translation.streams import StreamTranslator

DONE = b"data: [DONE]\n\n"


class ClientStream:
    """Turns events of the upstream into bytes for the client.

    The event that ends an answer is held back until `finish`, when the answer has been recorded.

    Args:
        translation: translation of the request.
        hidden: keys of the answer that the client did not want.
        has_usage: whether the client wants the chunk of the usage.
    """

    def __init__(self, translation: Translation, hidden: frozenset[str], *, has_usage: bool) -> None:
        self._client = translation.client
        self._stages = translation.make_stages()
        self._hidden = hidden
        self._has_usage = has_usage
        self._ending: list[bytes] = []

    def feed(self, event: Json, raw: bytes) -> bytes:
        """Return the bytes that the client gets for an event now."""
        if self._stages:
            return b"".join(
                self._render(passed) for passed in _pass_through(self._stages, [event]) if self._is_wanted(passed)
            )
        if not self._is_wanted(event):
            return b""
        piece = self._render(hide_keys(event, self._hidden)) if self._hidden else raw + b"\n\n"
        if not self._ending and not _ends_answer(event, self._client):
            return piece
        self._ending.append(piece)
        return b""

    def finish(self) -> bytes:
        """Return the rest."""
        rest = b"".join(self._ending)
        for at, stage in enumerate(self._stages):
            events = _pass_through(self._stages[at + 1 :], stage.finish())
            rest += b"".join(self._render(event) for event in events if self._is_wanted(event))
        return rest + (DONE if self._client is Dialect.CHAT else b"")

    def _is_wanted(self, event: Json) -> bool:
        if self._client is not Dialect.CHAT or self._has_usage:
            return True
        return bool(event.get("choices")) or "usage" not in event

    def _render(self, event: Json) -> bytes:
        return render_event("" if self._client is Dialect.CHAT else str(event.get("type", "")), event)


def render_event(name: str, data: Json) -> bytes:
    """Return a server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return b"%sdata: %s\n\n" % (head, write_json(data))


def render_raw(event: Json, dialect: Dialect) -> bytes:
    """Return an event as an upstream of a dialect would send it, without the empty line behind it."""
    return render_event(str(event.get("type", "")) if dialect is Dialect.MESSAGES else "", event).rstrip(b"\n")


def _pass_through(stages: list[StreamTranslator], events: Iterable[Json]) -> Iterator[Json]:
    """Yield the events that come out of the last stage."""
    if not stages:
        yield from events
        return
    for event in events:
        yield from _pass_through(stages[1:], stages[0].feed(event))


def _ends_answer(event: Json, dialect: Dialect) -> bool:
    if dialect is Dialect.MESSAGES:
        return event.get("type") == "message_delta"
    return any(choice.get("finish_reason") for choice in event.get("choices") or ())


def hide_keys(answer: Json, hidden: frozenset[str]) -> Json:
    """Return an answer or chunk of chat completions without some keys, in its choices too."""
    kept = {key: value for key, value in answer.items() if key not in hidden}
    if kept.get("choices"):
        kept["choices"] = [{k: v for k, v in choice.items() if k not in hidden} for choice in kept["choices"]]
    return kept
