"""The request sent upstream for a client's: the rollout's model, sampling and tools, in the upstream's dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from samplers.gateway.access import RolloutAccess
from samplers.gateway.dialects import Dialect
from samplers.gateway.json_text import Json, write_json
from samplers.gateway.translation import Translation, translate_request
from samplers.gateway.translation.hosted_tools import remove_hosted_tools
from samplers.gateway.translation.normalisation import list_tool_names

TOKEN_KEYS = frozenset(("prompt_token_ids", "token_ids", "logprobs"))
"""Keys of an answer that hold token ids and log-probs."""
_NOT_OF_MESSAGES = frozenset(("seed", "frequency_penalty", "presence_penalty", "min_p", "repetition_penalty", "n"))
_MAX_TOKENS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


@dataclass(frozen=True, kw_only=True)
class UpstreamRequest:
    """A request as it is sent upstream, and how its answer becomes the client's."""

    body: bytes
    changes: tuple[str, ...]
    translation: Translation
    tools: tuple[str, ...]
    """Names of the tools that the upstream is given."""
    is_streamed: bool
    hidden: frozenset[str]
    """Keys of the answer that the client did not want."""
    has_usage: bool
    """Whether the client wants the usage of a stream."""
    beta: str
    """Features of Anthropic's API that the client switches on; empty for other upstreams."""


def build_upstream_request(
    received: bytes,
    body: Json,
    *,
    client: Dialect,
    upstream: Dialect,
    access: RolloutAccess,
    wants_token_ids: bool,
    beta: str = "",
) -> UpstreamRequest:
    """Return the request that is sent upstream.

    Where nothing changes it is the request that was received, byte for byte.

    Args:
        received: the client's body.
        body: the same, parsed; it is not changed.
        client: dialect of the client.
        upstream: dialect of the upstream.
        access: access of the rollout.
        wants_token_ids: whether to request token ids and log-probs.
        beta: the client's header `anthropic-beta`, which allows parameters of its body.

    Raises:
        GatewayFailure: the request cannot be translated.
    """
    made, changes = remove_hosted_tools(body, client) if access.tools == "no-web" else (body, [])
    made, more, translation = translate_request(made, client, upstream)
    made, replaced = _replace_parameters(made, upstream, access)
    made, wanted = _request_details(made, upstream, wants_token_ids=wants_token_ids)
    changes += [*more, *replaced, *wanted]
    is_chat = client is Dialect.CHAT
    return UpstreamRequest(
        body=write_json(made) if changes else received,
        changes=tuple(changes),
        translation=translation,
        tools=tuple(list_tool_names(made.get("tools"))),
        is_streamed=bool(body.get("stream")),
        hidden=_find_hidden(body) if is_chat and wants_token_ids else frozenset(),
        beta=beta if client is upstream is Dialect.MESSAGES else "",
        has_usage=is_chat and bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _replace_parameters(body: Json, upstream: Dialect, access: RolloutAccess) -> tuple[Json, list[str]]:
    """Return a request with the rollout's model and sampling."""
    made = dict(body)
    changes = []
    if access.model is not None and body.get("model") != access.model:
        made["model"] = access.model
        changes.append(f"model: {body.get('model')} -> {access.model}")
    for name, value in access.sampling.items():
        if upstream is Dialect.MESSAGES and name in _NOT_OF_MESSAGES:
            changes.append(f"{name}: not sent, Messages have none")
            continue
        key = _choose_key(name, body)
        if made.get(key) != value:
            made[key] = value
            changes.append(f"{key}: {body.get(key)} -> {value}")
    return made, changes


def _choose_key(name: str, body: Json) -> str:
    """Return the key of a parameter: that of the length of an answer has several."""
    if name not in _MAX_TOKENS:
        return name
    return next((key for key in _MAX_TOKENS if key in body), "max_tokens")


def _request_details(body: Json, upstream: Dialect, *, wants_token_ids: bool) -> tuple[Json, list[str]]:
    """Return a request that wants usage, and token ids where the upstream has them."""
    if upstream is not Dialect.CHAT:
        return body, []
    wanted: dict[str, Any] = {}
    if body.get("stream"):
        options = body.get("stream_options") or {}
        wanted["stream_options"] = {**options, "include_usage": True}
    if wants_token_ids:
        wanted |= {"return_token_ids": True, "logprobs": True}
    added = {key: value for key, value in wanted.items() if body.get(key) != value}
    return (body | added, [f"added: {key}" for key in added]) if added else (body, [])


def _find_hidden(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of token ids and log-probs that a client did not want."""
    wanted = {"logprobs"} if body.get("logprobs") else set()
    wanted |= {"prompt_token_ids", "token_ids"} if body.get("return_token_ids") else set()
    return TOKEN_KEYS - wanted
