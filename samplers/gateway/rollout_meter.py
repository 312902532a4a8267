"""Amounts that the current run of a rollout has used, and whether its budget allows another request.

A turn is an answered request that offers tools; where a rollout never offers any, each answered request is a turn. So
titles and summaries, which programs request without tools, are not turns, and the requests of sub-agents are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backends.llm.meter import TokenUsage
from samplers.gateway.access import Budget, GatewayUsage
from samplers.gateway.failures import ExchangeFailure, GatewayFailure


class RolloutMeter:
    """Counts of a run. Not thread-safe: bound to an event loop."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._counts: dict[str, Any] = GatewayUsage().model_dump()

    def count_request(self, *, offers_tools: bool) -> None:
        """Count a request when it is sent, or when it is answered from the log."""
        self._counts["requests"] += 1
        self._counts["turns"] += offers_tools

    def count_answer(self, usage: TokenUsage, cost: float) -> None:
        """Count the amounts that an answer was paid with."""
        self._counts["prompt_tokens"] += usage.prompt_tokens
        self._counts["completion_tokens"] += usage.completion_tokens
        self._counts["cached_tokens"] += usage.cached_tokens
        self._counts["cost"] += cost

    def count_failure(self, *, offers_tools: bool) -> None:
        """Count a request that gets no answer: it is not a turn."""
        self._counts["failed"] += 1
        self._counts["turns"] -= offers_tools

    def count_replay(self) -> None:
        """Count an answer that was given before."""
        self._counts["replayed"] += 1

    def note_failure(self, failure: GatewayFailure) -> None:
        """Keep a failure for the driver; that of a full disk stays, with the reason of the system."""
        if self._counts["stopped_by"] != ExchangeFailure.DISK:
            self._counts["last_error"] = {"kind": str(failure.kind), "detail": failure.detail}

    def stop_for_disk(self) -> None:
        """Allow no more requests: they cannot be recorded."""
        self._counts["stopped_by"] = str(ExchangeFailure.DISK)

    def check_budget(self, *, offers_tools: bool) -> None:
        """Check that another request is allowed.

        Raises:
            GatewayFailure: the disk was full, or a budget is used up.
        """
        counts, budget = self._counts, self._budget
        if counts["stopped_by"] == ExchangeFailure.DISK:  # a short line may fit where an answer does not
            raise GatewayFailure(ExchangeFailure.DISK, "the disk was full: no more answers are recorded", 507)
        limits: Iterable[tuple[str, Any, Any]] = (
            ("turns", self._count_turns(offers_tools=offers_tools), budget.turns),
            ("requests", counts["requests"], budget.requests),
            ("tokens", counts["prompt_tokens"] + counts["completion_tokens"], budget.tokens),
            ("cost", counts["cost"], budget.cost),
        )
        for name, used, limit in limits:
            if limit is not None and used >= limit:
                counts["stopped_by"] = counts["stopped_by"] or name
                shown = f"{used:.4f}" if name == "cost" else used
                detail = f"the budget of this rollout is used up: {name} {shown} of {limit}; end the task now"
                raise GatewayFailure(ExchangeFailure.BUDGET, detail, 400)

    def _count_turns(self, *, offers_tools: bool) -> int:
        """Return the turns that count against a request; 0 for a title or a summary, which is none itself."""
        counts = self._counts
        if offers_tools:
            return int(counts["turns"])
        return 0 if counts["turns"] else counts["requests"] - counts["failed"]

    def get_usage(self, n_in_flight: int) -> GatewayUsage:
        """Return the amounts that the run has used."""
        return GatewayUsage(**self._counts | {"in_flight": n_in_flight})
