"""An answer on its way: its events, brought into the published form, for the record and for the client alike."""

from __future__ import annotations

from samplers.gateway.answer_shape import OTHER_SHAPE, check_shape, refuse_answer
from samplers.gateway.client_stream import ClientStream, render_raw
from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json
from samplers.gateway.measures import has_token
from samplers.gateway.policy import UpstreamRequest
from samplers.gateway.translation.assembly import AnswerAssembler, ChatAssembler, MessagesAssembler
from samplers.gateway.translation.normalisation import make_normaliser, normalise_answer


def make_client_stream(request: UpstreamRequest) -> ClientStream:
    """Return the stream of a request's client."""
    return ClientStream(request.translation, request.hidden, has_usage=request.has_usage)


class AnswerCollector:
    """Collects the answer to a request. The record and the client read the same events, so both have the same calls.

    Args:
        request: the request as it was sent upstream.
        stream: stream of the client; None where it wants a plain answer.
    """

    def __init__(self, request: UpstreamRequest, stream: ClientStream | None) -> None:
        self._dialect = request.translation.upstream
        self._keeps_function_call = request.translation.is_identity
        self._stream = stream
        self._normaliser = make_normaliser(self._dialect, request.tools, keeps_function_call=self._keeps_function_call)
        is_messages = self._dialect is Dialect.MESSAGES
        self._assembler: AnswerAssembler = MessagesAssembler() if is_messages else ChatAssembler()
        self.has_token = False
        """Whether a piece of the content has come."""

    def feed(self, event: Json, raw: bytes) -> bytes:
        """Add an event and return the bytes that the client gets for it now.

        Raises:
            GatewayFailure: it is an error or has another shape, or the answer is too large.
        """
        piece = b""
        try:
            for normalised in self._normaliser.feed(event):
                self._assembler.feed(normalised)
                self.has_token = self.has_token or has_token(normalised, self._dialect)
                if self._stream:
                    given = raw if normalised is event else render_raw(normalised, self._dialect)
                    piece += self._stream.feed(normalised, given)
        except OTHER_SHAPE as error:
            # An answer of another shape is the failure of the upstream, not of the gateway.
            raise refuse_answer("a field of an event has another type than in the API") from error
        return piece

    def build(self) -> Json:
        """Return the complete answer once the stream has ended.

        Raises:
            GatewayFailure: the stream was cut, or the answer has another shape.
        """
        if not self._assembler.is_finished:
            raise GatewayFailure(ExchangeFailure.CUT, "the answer was cut: it has no finish reason", 502)
        answer = self._assembler.build()
        check_shape(answer, self._dialect)
        return answer

    def read_plain(self, answer: Json) -> Json:
        """Return an answer that was not streamed in the published form.

        Raises:
            GatewayFailure: it has another shape.
        """
        try:
            normalised = normalise_answer(answer, self._dialect, keeps_function_call=self._keeps_function_call)
        except OTHER_SHAPE as error:
            raise refuse_answer("a field has another type than in the API") from error
        check_shape(normalised, self._dialect)
        return normalised
