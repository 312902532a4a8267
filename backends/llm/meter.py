"""What a conversation has cost, and the end of it when that is enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mergemill.config import Settings

PER = 1_000_000
"""Prices are for so many tokens."""


class BudgetSpentError(Exception):
    """A conversation has used what it was allowed. The text says of what."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one exchange. `cached_tokens` are among `prompt_tokens`; `estimated`: nobody told, length did."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Money for a million tokens: read, read from the endpoint's cache, written."""

    prompt: float = 0.0
    cached: float = 0.0
    completion: float = 0.0

    @classmethod
    def of(cls, settings: Settings) -> Prices:
        """Those of the settings; what is cached costs like the rest where nothing else is said."""
        cached = settings.llm_price_cached
        prompt = settings.llm_price_prompt
        return cls(prompt=prompt, cached=prompt if cached is None else cached, completion=settings.llm_price_completion)

    def cost(self, usage: Usage) -> float:
        """What an exchange costs."""
        fresh = max(usage.prompt_tokens - usage.cached_tokens, 0)
        money = fresh * self.prompt + usage.cached_tokens * self.cached + usage.completion_tokens * self.completion
        return money / PER


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most a conversation may cost; None is without end."""

    tokens: int | None = None
    cost: float | None = None

    @classmethod
    def of(cls, settings: Settings) -> Budget:
        """That of the settings, for one record."""
        return cls(tokens=settings.budget_tokens, cost=settings.budget_cost)


@dataclass
class Meter:
    """Counts one conversation. For one thread."""

    budget: Budget = Budget()
    requests: int = 0
    failed: int = 0
    """Of the requests, those that brought no answer."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Read and written, those of failed attempts included as far as they can be known."""
        return self.prompt_tokens + self.completion_tokens

    def check(self) -> None:
        """Before each request.

        Raises:
            BudgetSpentError: enough has been used.
        """
        if self.budget.tokens is not None and self.tokens >= self.budget.tokens:
            raise BudgetSpentError(f"{self.tokens} tokens used, {self.budget.tokens} allowed")
        if self.budget.cost is not None and self.cost >= self.budget.cost:
            raise BudgetSpentError(f"{self.cost:.4f} spent, {self.budget.cost} allowed")

    def add(self, usage: Usage, cost: float, seconds: float, *, failed: bool = False) -> None:
        """Count a request."""
        self.requests += 1
        self.failed += failed
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.cached_tokens += usage.cached_tokens
        self.cost += cost
        self.seconds += seconds
