"""Whatever goes wrong with the record of an answer, the client is told."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from samplers.gateway.dialects import Dialect
from samplers.gateway.pending_answers import PendingAnswer
from samplers.gateway.recorder import ExchangeRecorder
from samplers.gateway.translation import Translation

ANSWER = {"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}


async def run_exchange(rollout: Any) -> tuple[int, bytes]:
    """Return status and content that a client gets of an answered exchange of this rollout."""

    async def complete(*_: object) -> dict[str, Any]:
        return ANSWER

    prices = SimpleNamespace(compute_cost=lambda usage: 0.0)
    upstream = SimpleNamespace(dialect=Dialect.CHAT, complete=complete, upstream=SimpleNamespace(prices=prices))
    translation = Translation(client=Dialect.CHAT, upstream=Dialect.CHAT, request={})
    request = SimpleNamespace(
        is_streamed=False, hidden=frozenset(), body=b"{}", beta="", changes={}, tools=(), translation=translation
    )
    start = SimpleNamespace(number=0, key="k", offers_tools=False)
    pending = PendingAnswer("f", 0)
    parts: dict[str, Any] = {"rollout": rollout, "upstream": upstream, "request": request, "start": start}
    await asyncio.wait_for(ExchangeRecorder(**parts, pending=pending, received="{}").run(), 10)
    pieces = [piece async for piece, _ in pending.read()]
    return pending.status, b"".join(pieces)


def test_a_client_whose_answer_cannot_be_recorded_gets_an_error_and_does_not_wait() -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such number")

    status, content = asyncio.run(run_exchange(cast("Any", SimpleNamespace(name="r", end_exchange=fail))))
    assert status == 500
    assert b"the gateway failed; the reason stands in its own output" in content
    assert b"no such number" not in content
