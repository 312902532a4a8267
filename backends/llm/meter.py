"""Usage and cost of a conversation, and its budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.settings.models import BudgetSettings, LlmSettings

TOKENS_PER_PRICE = 1_000_000
"""Number of tokens that a price is for."""


class BudgetExceededError(Exception):
    """A conversation has used its budget; the text names the limit."""


@dataclass(frozen=True, kw_only=True)
class TokenUsage:
    """Tokens of a request. `cached_tokens` are included in `prompt_tokens`; `estimated`: derived from lengths."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, kw_only=True)
class TokenPrices:
    """Price of a million tokens: prompt, prompt from the endpoint's cache, completion."""

    prompt: float = 0.0
    cached: float = 0.0
    completion: float = 0.0

    @classmethod
    def from_settings(cls, llm: LlmSettings) -> TokenPrices:
        """Return the prices of the settings; the price of cached tokens defaults to that of prompt tokens."""
        cached = llm.price_cached
        prompt = llm.price_prompt
        return cls(prompt=prompt, cached=prompt if cached is None else cached, completion=llm.price_completion)

    def compute_cost(self, usage: TokenUsage) -> float:
        """Return the cost of a request."""
        uncached = max(usage.prompt_tokens - usage.cached_tokens, 0)
        money = uncached * self.prompt + usage.cached_tokens * self.cached + usage.completion_tokens * self.completion
        return money / TOKENS_PER_PRICE


@dataclass(frozen=True, kw_only=True)
class TokenBudget:
    """Budget of a conversation; None is unlimited."""

    tokens: int | None = None
    cost: float | None = None

    @classmethod
    def from_settings(cls, budget: BudgetSettings) -> TokenBudget:
        """Return the budget of the settings, which is for one record."""
        return cls(tokens=budget.tokens, cost=budget.cost)


@dataclass
class UsageMeter:
    """Usage of a conversation. Not thread-safe."""

    budget: TokenBudget = TokenBudget()
    requests: int = 0
    failed_requests: int = 0
    """Requests without an answer."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens, including those of failed requests as far as they can be estimated."""
        return self.prompt_tokens + self.completion_tokens

    def check(self) -> None:
        """Check the budget, before each request.

        Raises:
            BudgetExceededError: it is used up.
        """
        if self.budget.tokens is not None and self.tokens >= self.budget.tokens:
            raise BudgetExceededError(f"{self.tokens} tokens used, {self.budget.tokens} allowed")
        if self.budget.cost is not None and self.cost >= self.budget.cost:
            raise BudgetExceededError(f"{self.cost:.4f} spent, {self.budget.cost} allowed")

    def add(self, usage: TokenUsage, cost: float, seconds: float, *, failed: bool = False) -> None:
        """Count a request."""
        self.requests += 1
        self.failed_requests += failed
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.cached_tokens += usage.cached_tokens
        self.cost += cost
        self.seconds += seconds
