"""Results of gates, and reports on a world or a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from worlds.reasons import Reason


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """Result of a gate.

    `value` is the value that it measured; `limit` is the least or the most that it accepts, if any.
    """

    gate: str
    value: float
    limit: float | None = None
    reason: Reason | None = None
    """None where the gate is passed."""
    detail: str = ""
    tried: int = 0
    """Total that a share is of: mutations of the gate `mutations`."""


@dataclass(frozen=True, kw_only=True)
class GateReport:
    """Results of the gates in their order; the last is the first that failed, where one did."""

    name: str
    results: tuple[GateResult, ...]

    @property
    def failure(self) -> GateResult | None:
        """The result of the gate that failed."""
        return next((result for result in self.results if result.reason is not None), None)

    @property
    def reason(self) -> Reason | None:
        """Why the world or the scenario is rejected; None where it passed all gates."""
        return self.failure.reason if self.failure else None

    @property
    def values(self) -> dict[str, float]:
        """Name of a gate -> the value that it measured."""
        return {result.gate: result.value for result in self.results}
