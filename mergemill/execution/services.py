"""Services of a run, made from its settings."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from backends.sandbox.registry import open_sandbox
from backends.services import Services
from core.config import OFF
from core.errors import UsageError
from languages.registry import LANGUAGES
from mergemill.execution.images.ledger import UsageLedger
from taskdb.artifacts import open_artifacts

if TYPE_CHECKING:
    from backends.llm.base import LanguageModel
    from backends.sandbox.base import Sandbox
    from backends.sandbox.images import ImageInfo, ImageStore
    from core.config import Settings
    from taskdb.records import BuildPlan, Candidate


class _LazySandbox:
    """Sandbox that is opened when it is first used, so that commands that need no engine run where there is none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: Sandbox | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.open(), name)

    def open(self) -> Sandbox:
        """Return the sandbox, opened by the first call."""
        if self._opened is None:
            self._opened = _open_engine(self._settings)
        return self._opened

    @property
    def images(self) -> ImageStore:
        """Image store of the sandbox; before the sandbox is opened, a function that opens it."""
        return cast("ImageStore", _LazyImageStore(self)) if self._opened is None else self._opened.images


class _LazyImageStore:
    """Image store of a sandbox that is not open yet."""

    def __init__(self, sandbox: _LazySandbox) -> None:
        self._sandbox = sandbox

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox.open().images, name)

    def hold(self) -> AbstractContextManager[None]:
        """Do nothing: no image is in use before the sandbox is opened."""
        return contextlib.nullcontext()


@dataclass(frozen=True)
class LazySourceImages:
    """Images of patched source trees; the builders are imported when the first is built."""

    services: Services

    def build(self, plan: BuildPlan, candidate: Candidate, setup_patch: bytes) -> ImageInfo | None:
        """Build the image of a patched tree; see `builders.patched_images.build_patched_image`."""
        from builders.patched_images import build_patched_image  # noqa: PLC0415 - queries need no builders

        return build_patched_image(plan, candidate, setup_patch, self.services)


def make_services(settings: Settings, *, engine: bool) -> Services:
    """Return the services of a run; `engine`: whether a Docker engine must answer now.

    Raises:
        MachineError: no engine answers.
        UsageError: `language` is unknown.
    """
    from backends.clones import CloneStore  # noqa: PLC0415 - queries need no GitPython

    if settings.language is not None and settings.language not in LANGUAGES:
        raise UsageError(f"--language: {settings.language} is unknown", advice=f"one of {', '.join(LANGUAGES)}")
    sandbox = _open_engine(settings) if engine else cast("Sandbox", _LazySandbox(settings))
    if engine:
        sandbox.reap()
    services = Services(
        settings=settings,
        sandbox=sandbox,
        clones=CloneStore(settings.store_dir / "clones", settings.clones),
        artifacts=open_artifacts(settings),
        model=make_model(settings),
    )
    return replace(services, source_images=LazySourceImages(services))


def make_model(settings: Settings, *, temperature: float | None = None) -> LanguageModel | None:
    """Return the model of the settings, or None; `temperature`: None for the endpoint's own."""
    if settings.llm == OFF:
        return None
    if settings.model is None:
        settings = settings.model_copy(update={"model": settings.simulator_model})
    from backends.llm.client import ChatModel  # noqa: PLC0415 - the SDK loads slowly

    return ChatModel(settings, temperature=temperature)


def _open_engine(settings: Settings) -> Sandbox:
    return open_sandbox(settings, UsageLedger(settings.store_dir).touch)
