"""Services of a stage: all that it may use besides its input record. Tests pass real services with small settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from backends.sandbox.execution import ResourceLimits
from languages.registry import get_test_seconds

if TYPE_CHECKING:
    from backends.clones import CloneStore
    from backends.llm.base import LanguageModel
    from backends.sandbox.base import Sandbox
    from backends.sandbox.images import ImageInfo, ImageStore
    from core.config import Settings
    from taskdb.artifacts import Artifacts
    from taskdb.records import BuildPlan, Candidate


def get_time() -> str:
    """Return the time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class SourceImages(Protocol):
    """Builder of images of trees that are not a commit of the history."""

    def build(self, plan: BuildPlan, candidate: Candidate, setup_patch: bytes) -> ImageInfo | None:
        """Build the image of the candidate's base commit with a patch applied; return None when its install fails."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Settings, sandbox, clones, artifacts, model (None: no model is used), builder of patched images, and clock."""

    settings: Settings
    sandbox: Sandbox
    clones: CloneStore
    artifacts: Artifacts
    model: LanguageModel | None = None
    source_images: SourceImages | None = None
    clock: Callable[[], str] = get_time

    @property
    def images(self) -> ImageStore:
        """Image store of the sandbox."""
        return self.sandbox.images

    def test_limits(self, language: str = "", *, cpu_share: float = 1.0) -> ResourceLimits:
        """Return the limits of a test run.

        Args:
            language: language of the tests, which may have a timeout of its own; empty for containers that run other
                programs.
            cpu_share: share of the CPUs.
        """
        return self._limits(get_test_seconds(language, self.settings.verify.test_timeout), cpu_share=cpu_share)

    def build_limits(self) -> ResourceLimits:
        """Return the limits of one build step, which has more time and disk than a test run."""
        return self._limits(self.settings.budget.seconds, disk_factor=4)

    def _limits(self, seconds: float, disk_factor: int = 1, cpu_share: float = 1.0) -> ResourceLimits:
        s = self.settings
        return ResourceLimits(
            seconds=seconds,
            memory_mb=s.limits.memory_mb,
            disk_mb=s.limits.disk_mb * disk_factor,
            pids=s.limits.pids,
            cpus=s.limits.cpus * cpu_share,
            output_bytes=s.limits.output_mb * 1024 * 1024,
        )
