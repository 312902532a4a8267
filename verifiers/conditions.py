"""Conditions of gradings: what may differ from a run to the next without changing the score of a reliable task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

UTC = "UTC"
TIME_ZONES = ("Pacific/Chatham", "America/St_Johns")
"""Zones whose distance from UTC is no whole hour, on either side; one has another date than UTC for half of the day."""
CPU_SHARES = (0.5, 1.0)
"""Shares of the CPUs of a test container: pressure in every other grading."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Conditions of all runs of a grading. All have fresh containers without network.

    Attributes:
        seed: hash seed, and seed of the order of the test files; 0 keeps the project's order.
        time_zone: name of the tests' time zone.
        cpu_share: share of the CPUs that a test container has otherwise.
    """

    seed: int = 0
    time_zone: str = UTC
    cpu_share: float = 1.0

    def describe(self, cpus: float, project_zone: str = UTC) -> str:
        """Return a line for people.

        Args:
            cpus: CPUs of a test container.
            project_zone: time zone of the plan; a zone that is not UTC holds under all conditions.
        """
        time_zone = self.time_zone if project_zone == UTC else project_zone
        order = f"files in order {self.seed}" if self.seed else "files in the project's order"
        return f"seed {self.seed}, {order}, {time_zone}, {cpus * self.cpu_share:g} CPUs, no network"


AS_VERIFIED = Conditions()
"""Conditions of the first verification runs and of every grading of a submission."""


def vary_conditions(number: int) -> Sequence[Conditions]:
    """Return conditions for so many gradings: the first are those of every submission, the others differ."""
    varied = (
        Conditions(
            seed=seed,
            time_zone=TIME_ZONES[(seed - 1) % len(TIME_ZONES)],
            cpu_share=CPU_SHARES[(seed - 1) % len(CPU_SHARES)],
        )
        for seed in range(1, number)
    )
    return (AS_VERIFIED, *varied)
