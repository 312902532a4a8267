"""The gateway: open rollouts by secret, and how a request finds its answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping

from core.errors import InputError
from samplers.gateway.access import GatewayUsage, RolloutAccess
from samplers.gateway.answer_shape import OTHER_SHAPE
from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import ExchangeFailure, GatewayFailure, refuse
from samplers.gateway.json_text import Json, compute_fingerprint, read_object, write_json
from samplers.gateway.log import ExchangeLog, LogFolder
from samplers.gateway.measures import estimate_tokens
from samplers.gateway.pending_answers import PendingAnswer
from samplers.gateway.policy import UpstreamRequest, build_upstream_request
from samplers.gateway.recorder import ExchangeRecorder, fill_with_answer
from samplers.gateway.rollout_state import ExchangeStart, RolloutState
from samplers.gateway.upstream import UpstreamClient

log = logging.getLogger(__name__)

HASH_CHARACTERS = 16
"""Of a secret's hash, in the name of the log of a secret that nobody registered."""


class ModelGateway:
    """Open rollouts and the upstream they share. Not thread-safe: bound to an event loop.

    Args:
        upstream: client of the model server.
        folder: folder of the logs.
        open_access: access of a secret that is not registered, which begins a rollout of its own; None for none.
        on_full_disk: function that is called when an exchange cannot be recorded.
    """

    def __init__(
        self,
        upstream: UpstreamClient,
        folder: LogFolder,
        *,
        open_access: RolloutAccess | None = None,
        on_full_disk: Callable[[], None] | None = None,
    ) -> None:
        self.upstream = upstream
        self._folder = folder
        self._open_access = open_access
        self._on_full_disk = on_full_disk
        self._is_closing = False
        self._rollouts: dict[str, RolloutState] = {}
        self._secrets: dict[str, RolloutState] = {}

    async def open_rollout(self, name: str, access: RolloutAccess) -> None:
        """Give a rollout access; an access of the same name is closed before.

        Raises:
            InputError: the name cannot be a file's, or the secret is another rollout's.
            Transient: the log cannot be written.
        """
        path = self._folder.find_path(name)
        owner = self._secrets.get(access.secret)
        if owner is not None and owner.name != name:
            raise InputError("the secret is that of another rollout")
        if name in self._rollouts:
            await self.close_rollout(name)
        state = RolloutState(name, access, ExchangeLog(path), self._on_full_disk)
        self._rollouts[name] = self._secrets[access.secret] = state

    async def close_rollout(self, name: str) -> GatewayUsage:
        """Revoke a rollout's secret, wait for its calls in flight and return its usage.

        Raises:
            KeyError: it is not open.
        """
        state = self._rollouts[name]
        # Revoked before the wait, so that no further request joins the calls in flight.
        self._secrets.pop(state.access.secret, None)
        usage = await state.close()
        # A new access of the same name may have been opened during the wait.
        if self._rollouts.get(name) is state:
            del self._rollouts[name]
        return usage

    def has_rollout(self, name: str) -> bool:
        """Return whether a rollout is open."""
        return name in self._rollouts

    def get_usage(self, name: str) -> GatewayUsage:
        """Return the usage of an open rollout.

        Raises:
            KeyError: it is not open.
        """
        return self._rollouts[name].get_usage()

    def collect_usage(self) -> Mapping[str, GatewayUsage]:
        """Return the usage of every open rollout."""
        return {name: state.get_usage() for name, state in self._rollouts.items()}

    async def find_rollout(self, secret: str) -> RolloutState:
        """Return the rollout of a secret.

        Raises:
            GatewayFailure: there is none, or no more requests are taken.
        """
        state = self._secrets.get(secret)
        if state is None and self._open_access and secret:
            digest = hashlib.sha256(secret.encode()).hexdigest()[:HASH_CHARACTERS]
            await self.open_rollout(f"secret-{digest}", self._open_access.model_copy(update={"secret": secret}))
            state = self._secrets[secret]
        if state is None:
            detail = "the secret is not that of an open rollout" if secret else "there is no secret"
            raise GatewayFailure(ExchangeFailure.REFUSED, detail, 401)
        return state

    def answer(self, state: RolloutState, dialect: Dialect, received: bytes, beta: str = "") -> PendingAnswer:
        """Return the answer to a request, on its way or complete; `beta` is its header `anthropic-beta`.

        Raises:
            GatewayFailure: the request is refused.
        """
        if self._is_closing or state.is_closing:
            raise GatewayFailure(ExchangeFailure.CLOSING, "the gateway takes no more requests", 503)
        body, text = _parse_body(received)
        fingerprint = compute_fingerprint(dialect, body)
        pending = state.pending_answers.get(fingerprint)
        # A client that repeats a request meanwhile gets the same answer, which is paid for once.
        if pending is not None:
            state.join_answer(pending)
            return pending
        try:
            request = build_upstream_request(
                received,
                body,
                client=dialect,
                upstream=self.upstream.dialect,
                access=state.access,
                wants_token_ids=self.upstream.upstream.gives_token_ids,
                beta=beta,
            )
        except OTHER_SHAPE as error:
            raise refuse("a field of the request has another type than in the API") from error
        offers_tools = bool(body.get("tools"))
        recorded = state.find_recorded(fingerprint, offers_tools=offers_tools)
        if recorded is None:
            start = state.begin_exchange(fingerprint, offers_tools=offers_tools)
            return self._begin(state, request, start, PendingAnswer(fingerprint, start.number), text)
        pending = PendingAnswer(fingerprint, recorded.number)
        fill_with_answer(pending, request, recorded.response)
        return pending

    def _begin(
        self, state: RolloutState, request: UpstreamRequest, start: ExchangeStart, pending: PendingAnswer, received: str
    ) -> PendingAnswer:
        """Send a request upstream and return the answer on its way."""
        recorder = ExchangeRecorder(
            rollout=state, upstream=self.upstream, request=request, start=start, pending=pending, received=received
        )
        state.pending_answers[pending.fingerprint] = pending
        task = asyncio.get_running_loop().create_task(recorder.run())
        state.tasks.add(task)

        def forget(done: asyncio.Task[None]) -> None:
            state.tasks.discard(done)
            state.pending_answers.pop(pending.fingerprint, None)

        task.add_done_callback(forget)
        return pending

    async def count_tokens(self, state: RolloutState, received: bytes) -> Json:
        """Return the number of tokens of a request of Messages: the upstream's, else an estimate.

        Raises:
            GatewayFailure: the request is not JSON.
        """
        body, _ = _parse_body(received)
        if self.upstream.dialect is Dialect.MESSAGES:
            model = {"model": state.access.model} if state.access.model else {}
            try:
                return await self.upstream.get_json("POST", "messages/count_tokens", write_json(body | model))
            except GatewayFailure as failure:
                log.info("tokens are estimated: %s", failure.detail)
        return {"input_tokens": estimate_tokens(received)}

    async def list_models(self, state: RolloutState) -> Json:
        """Return the rollout's model, or the upstream's models where it has no model of its own.

        Raises:
            GatewayFailure: the upstream does not answer.
        """
        model = state.access.model
        if model is None:
            return await self.upstream.get_json("GET", "models")
        entry = {"id": model, "object": "model", "created": 0, "owned_by": "mergemill"}
        named = {"type": "model", "display_name": model, "created_at": "1970-01-01T00:00:00Z"}
        return {"object": "list", "data": [entry | named], "has_more": False, "first_id": model, "last_id": model}

    async def close(self) -> None:
        """Take no new requests, wait for those in flight and close everything."""
        self._is_closing = True
        # Requests that still wait for their turn must not be sent once the gateway ends.
        self.upstream.drain()
        for name in list(self._rollouts):
            await self.close_rollout(name)
        await self.upstream.close()
        self._folder.close()


def _parse_body(received: bytes) -> tuple[Json, str]:
    """Return a request as an object and as text.

    Raises:
        GatewayFailure: it is not a JSON object in UTF-8.
    """
    try:
        return read_object(received), received.decode()
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise refuse(f"the request is not a JSON object: it breaks off or is malformed at {place}") from error
    except (ValueError, RecursionError) as error:
        raise refuse("the request is not a JSON object in UTF-8") from error
