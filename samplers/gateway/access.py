"""Who may use the gateway for which purpose.

The upstream, a rollout's access and budget, and the amounts that it has used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field

from backends.llm.meter import TokenPrices
from core.errors import UsageError
from core.settings.models import LlmSettings, UpstreamSettings
from taskdb.records.base import Part


class Upstream(Part):
    """The model server behind the gateway."""

    url: str
    """Base URL; a missing `/v1` at its end is added for Anthropic's dialect."""
    dialect: Literal["openai", "anthropic"] = "openai"
    key: str = Field(default="", repr=False)
    request_timeout: float = Field(default=600.0, gt=0)
    """Seconds without a byte of the answer after which it counts as failed."""
    concurrency: int = Field(default=64, ge=1)
    """Requests at once; further requests wait in the order they came."""
    prices: TokenPrices = TokenPrices()
    token_ids: Literal["off", "vllm"] = "off"  # noqa: S105 - tokens of a language
    """Whether to request token ids and log-probs, and in which server's form."""
    attempts: int = Field(default=5, ge=1)
    """Attempts for an answer."""
    first_pause: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt; later pauses are longer."""

    @classmethod
    def from_settings(cls, upstream: UpstreamSettings, llm: LlmSettings) -> Self:
        """Return the upstream of the settings.

        Raises:
            UsageError: they name none.
        """
        if upstream.url is None:
            raise UsageError("there is no model server", advice="name it with --upstream URL")
        return cls(
            url=upstream.url,
            dialect=upstream.dialect,
            key=upstream.key.get_secret_value() if upstream.key else "",
            request_timeout=upstream.request_timeout,
            concurrency=upstream.concurrency,
            prices=TokenPrices.from_settings(llm),
            token_ids=upstream.token_ids,
        )

    @property
    def gives_token_ids(self) -> bool:
        """Whether requests want token ids and log-probs."""
        return self.dialect == "openai" and self.token_ids != "off"  # noqa: S105 - tokens of a language


class Budget(Part):
    """Limits that a rollout may use; None is unlimited. Answers from the log count as when they were paid."""

    turns: int | None = None
    """Answered requests that offer tools; where a rollout never offers any, all answered requests."""
    requests: int | None = None
    tokens: int | None = None
    """Prompt and completion tokens."""
    cost: float | None = None


class RolloutAccess(Part):
    """Access of a rollout."""

    secret: str = Field(min_length=1, repr=False)
    model: str | None = None
    """Model sent upstream in place of the agent's; None keeps the agent's."""
    sampling: Mapping[str, Any] = {}
    """Parameters that replace the agent's: temperature, top_p, max_tokens, seed, ..."""
    budget: Budget = Budget()
    replay: bool = False
    """Whether requests of the rollout's earlier run are answered from its log, up to the first that differs."""
    tools: Literal["no-web", "all"] = "no-web"
    """Whether tools that run elsewhere than in the agent's container are removed."""
    resume: bool = False
    """Whether the agent is still running: the gateway was restarted, the rollout was not."""


class GatewayUsage(Part):
    """Amounts that the current run of a rollout has used. `cost` is in the currency of the prices."""

    requests: int = 0
    turns: int = 0
    """Requests among `requests` that offer tools and did not fail."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    in_flight: int = 0
    replayed: int = 0
    """Requests among `requests` that were answered from the log."""
    failed: int = 0
    """Requests that got no answer."""
    stopped_by: str | None = None
    """Which budget is used up (turns, requests, tokens, cost), or `disk`."""
    last_error: Mapping[str, str] | None = None
    """Kind and detail of the last failure."""
