"""What a stage may use, and nothing more. A test hands in real ones with small settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from backends.sandbox.base import Limits

if TYPE_CHECKING:
    from backends.clones import Clones
    from backends.llm.base import Model
    from backends.sandbox.base import ImageInfo, Sandbox
    from mergemill.config import Settings
    from taskdb.artifacts import Artifacts
    from taskdb.records import BuildPlan, Candidate


def now() -> str:
    """The time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Boxes(Protocol):
    """Makes images of trees that are no commit of the history."""

    def source(self, plan: BuildPlan, candidate: Candidate, setup_patch: bytes) -> ImageInfo | None:
        """The image with the tree of the candidate's base commit and a patch; None when its install fails."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Settings, sandbox, clones, artifacts, model (None: none takes part), boxes of patched trees, and clock."""

    settings: Settings
    sandbox: Sandbox
    clones: Clones
    artifacts: Artifacts
    model: Model | None = None
    boxes: Boxes | None = None
    clock: Callable[[], str] = now

    def test_limits(self) -> Limits:
        """Limits of one test run."""
        return self._limits(self.settings.test_timeout)

    def build_limits(self) -> Limits:
        """Limits of one build step; a build may use both time and disk more freely than a test."""
        return self._limits(self.settings.budget_seconds, disk_factor=4)

    def _limits(self, seconds: float, disk_factor: int = 1) -> Limits:
        s = self.settings
        return Limits(
            seconds=seconds,
            memory_mb=s.memory_mb,
            disk_mb=s.disk_mb * disk_factor,
            pids=s.pids,
            cpus=s.cpus,
            output_bytes=s.output_mb * 1024 * 1024,
        )
