"""The services of one run, made from its settings."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from backends.services import Services
from languages.registry import all_languages
from mergemill.config import OFF
from mergemill.errors import UsageError
from mergemill.images.ledger import Ledger
from taskdb.artifacts import Artifacts

if TYPE_CHECKING:
    from backends.llm.base import Model
    from backends.sandbox.base import ImageInfo, Sandbox
    from mergemill.config import Settings
    from taskdb.records import BuildPlan, Candidate


class _Later:
    """A sandbox that asks for the engine when it is first used: what needs none runs where there is none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = _engine(self._settings)
        return getattr(self._made, name)

    def holding(self) -> AbstractContextManager[None]:
        """Nothing is held where no engine was asked for."""
        return contextlib.nullcontext() if self._made is None else cast("Sandbox", self._made).holding()


@dataclass(frozen=True)
class LaterBoxes:
    """Boxes of patched trees, by the builders, who are loaded when the first is asked for."""

    services: Services

    def source(self, plan: BuildPlan, candidate: Candidate, setup_patch: bytes) -> ImageInfo | None:
        """As `builders.boxes.patched_box`."""
        from builders.boxes import patched_box  # noqa: PLC0415 - reading commands need no builders

        return patched_box(plan, candidate, setup_patch, self.services)


def make_services(settings: Settings, *, engine: bool) -> Services:
    """Services for a run; `engine`: whether a Docker engine must answer now.

    Raises:
        MachineError: none answers.
        UsageError: `language` is none that mergemill knows.
    """
    from backends.clones import Clones  # noqa: PLC0415 - reading commands don't pay for GitPython

    if settings.language is not None and settings.language not in all_languages():
        raise UsageError(f"--language: {settings.language} is unknown", advice=f"one of {', '.join(all_languages())}")
    sandbox = _engine(settings) if engine else cast("Sandbox", _Later(settings))
    if engine:
        sandbox.reap()
    services = Services(
        settings=settings,
        sandbox=sandbox,
        clones=Clones(settings.store_dir / "clones", settings.clones),
        artifacts=artifacts_of(settings),
        model=model_of(settings),
    )
    return replace(services, boxes=LaterBoxes(services))


def model_of(settings: Settings) -> Model | None:
    """The model that takes part, or None."""
    if settings.llm == OFF:
        return None
    from backends.llm.client import ChatModel  # noqa: PLC0415 - only who asks a model pays for the SDK

    return ChatModel(settings)


def artifacts_of(settings: Settings) -> Artifacts:
    """The artifact store beside the database."""
    return Artifacts(settings.store_dir / "artifacts")


def _engine(settings: Settings) -> Sandbox:
    from backends.sandbox.docker import DockerSandbox  # noqa: PLC0415 - reading commands don't pay for the SDK

    return DockerSandbox(used=Ledger(settings.store_dir).touch)
