"""An exchange: a request sent upstream, its answer given on as it comes, and recorded before the client has all."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from backends.llm.meter import TokenUsage
from samplers.gateway.client_stream import ClientStream, hide_keys, render_event, render_raw
from samplers.gateway.collector import AnswerCollector, make_client_stream
from samplers.gateway.dialects import Dialect, build_error, build_stream_error
from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json, write_json
from samplers.gateway.log import format_now
from samplers.gateway.measures import AnswerMeasures, measure_answer
from samplers.gateway.pending_answers import JSON_TYPE, STREAM_TYPE, PendingAnswer
from samplers.gateway.policy import UpstreamRequest
from samplers.gateway.rollout_state import ExchangeStart, RolloutState
from samplers.gateway.translation.assembly import check_size
from samplers.gateway.translation.streams import split_chat_answer, split_message_answer
from samplers.gateway.upstream import UpstreamClient

log = logging.getLogger(__name__)

NO_USAGE = TokenUsage()
GATEWAY_FAILED = "the gateway failed; the reason stands in its own output"


def fill_with_answer(pending: PendingAnswer, request: UpstreamRequest, answer: Json) -> None:
    """Give a complete answer to the client, as a stream where it wants one."""
    if not request.is_streamed:
        shown = hide_keys(answer, request.hidden) if request.hidden else answer
        pending.begin(200, JSON_TYPE)
        pending.end(write_json(request.translation.translate_answer(shown)), is_answer=True)
        return
    stream = make_client_stream(request)
    content = feed_answer(stream, answer, request.translation.upstream)
    pending.begin(200, STREAM_TYPE)
    pending.end(content + stream.finish(), is_answer=True)


def feed_answer(stream: ClientStream, answer: Json, dialect: Dialect) -> bytes:
    """Return the events of a complete answer as the client's stream has them, up to its end."""
    events = split_message_answer(answer) if dialect is Dialect.MESSAGES else split_chat_answer(answer)
    return b"".join(stream.feed(event, render_raw(event, dialect)) for event in events)


def fill_with_failure(pending: PendingAnswer, failure: GatewayFailure, dialect: Dialect) -> None:
    """Give a failure to the client: as an error of its dialect, or at the end of a stream that has begun."""
    message = failure.detail
    if failure.kind is ExchangeFailure.CONTEXT and dialect is Dialect.MESSAGES:
        # Anthropic's clients recognise the failure by these words.
        message = f"prompt is too long: {message}"
    code = "context_length_exceeded" if failure.kind is ExchangeFailure.CONTEXT else f"gateway_{failure.kind}"
    if pending.has_begun:
        pending.end(render_event(*build_stream_error(dialect, message, code)), is_answer=False)
        return
    pending.begin(failure.status, JSON_TYPE)
    pending.end(write_json(build_error(dialect, failure.status, message, code)), is_answer=False)


@dataclass(kw_only=True)
class ExchangeRecorder:
    """Runs an exchange. `received`: the body of the client, as text."""

    rollout: RolloutState
    upstream: UpstreamClient
    request: UpstreamRequest
    start: ExchangeStart
    pending: PendingAnswer
    received: str
    attempts: int = 0
    started: float = 0.0
    first_token: float | None = None

    async def run(self) -> None:
        """Get the answer, record it, and give it to the clients that wait for it. Failures are given to them, too."""
        self.started = time.monotonic()
        started_at = format_now()
        response: Json | None = None
        failure: GatewayFailure | None = None
        stream = make_client_stream(self.request) if self.request.is_streamed else None
        try:
            response = await self._get_response(stream)
            ending = self._render_ending(stream, response)
        except GatewayFailure as error:
            failure = error
        except Exception:
            log.exception("exchange %s of %s", self.start.number, self.rollout.name)
            failure = GatewayFailure(ExchangeFailure.BUG, GATEWAY_FAILED, 500)
        try:
            # Recorded before the client has all of it, so that a gateway that is killed loses no answer that was paid.
            self._record(response if failure is None else None, failure, started_at)
        except GatewayFailure as error:
            failure = error
        except Exception:
            # A client without an answer would wait until its own limit.
            log.exception("the record of exchange %s of %s", self.start.number, self.rollout.name)
            failure = GatewayFailure(ExchangeFailure.BUG, GATEWAY_FAILED, 500)
        if failure is not None:
            fill_with_failure(self.pending, failure, self.request.translation.client)
            return
        if not self.pending.has_begun:
            self.pending.begin(200, STREAM_TYPE if stream else JSON_TYPE)
        self.pending.end(ending, is_answer=True)

    async def _get_response(self, stream: ClientStream | None) -> Json:
        """Return the complete answer; pieces of a stream go out as they come."""
        collector = AnswerCollector(self.request, stream)

        def give_on(event: Json, raw: bytes) -> None:
            piece = collector.feed(event, raw)
            if self.first_token is None and collector.has_token:
                self.first_token = time.monotonic() - self.started
            if piece:
                if not self.pending.has_begun:
                    self.pending.begin(200, STREAM_TYPE)
                self.pending.publish(piece)

        answer = await self.upstream.complete(
            self.request.body, self._build_headers(), give_on if stream else None, self._count_attempt
        )
        if answer is None:
            return collector.build()
        answer = collector.read_plain(answer)
        check_size(_measure_text(answer))
        if stream:
            self.pending.begin(200, STREAM_TYPE)
            self.pending.publish(feed_answer(stream, answer, self.upstream.dialect))
        return answer

    def _render_ending(self, stream: ClientStream | None, response: Json) -> bytes:
        """Return the response that the client gets once the answer is recorded."""
        if stream:
            return stream.finish()
        shown = hide_keys(response, self.request.hidden) if self.request.hidden else response
        return write_json(self.request.translation.translate_answer(shown))

    def _build_headers(self) -> dict[str, str]:
        """Return the headers of this request; the key is the same in every attempt."""
        # Anthropic's API rejects parameters such as context_management without this header.
        beta = {"anthropic-beta": self.request.beta} if self.request.beta else {}
        return {"Idempotency-Key": self.start.key, **beta}

    def _count_attempt(self) -> None:
        self.attempts += 1

    def _record(self, response: Json | None, failure: GatewayFailure | None, started_at: str) -> None:
        """Write the end of the exchange.

        Raises:
            GatewayFailure: the disk is full or fails.
        """
        nothing = AnswerMeasures(usage=NO_USAGE, finish_reason=None)
        measures = measure_answer(response, self.upstream.dialect) if response is not None else nothing
        usage = measures.usage
        event = {
            "event": "end",
            "exchange": self.start.number,
            "key": self.start.key,
            "rollout": self.rollout.name,
            "dialect": str(self.request.translation.client),
            "upstream_dialect": str(self.upstream.dialect),
            "streamed": self.request.is_streamed,
            "received": self.received,
            "request": self.request.body.decode(),
            "changes": self.request.changes,
            "status": failure.status if failure else 200,
            "response": response,
            "error": {"kind": str(failure.kind), "detail": failure.detail} if failure else None,
            "started_at": started_at,
            "seconds": round(time.monotonic() - self.started, 6),
            "first_token_seconds": None if self.first_token is None else round(self.first_token, 6),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost": round(self.upstream.upstream.prices.compute_cost(usage), 9),
            "prompt_token_ids": measures.prompt_token_ids,
            "completion_token_ids": measures.completion_token_ids,
            "logprobs": measures.logprobs,
            "attempts": self.attempts,
            "finish_reason": measures.finish_reason,
        }
        offers_tools = self.start.offers_tools
        self.rollout.end_exchange(event, self.pending.fingerprint, usage, failure, offers_tools=offers_tools)


def _measure_text(answer: Json) -> int:
    """Return the number of characters of a plain answer, its frame included, without token ids and log-probs."""
    holders = answer.get("content") or [choice.get("message") for choice in answer.get("choices") or ()]
    return len(str(holders))
