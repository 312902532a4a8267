"""Services of a run, made from its settings."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from backends.sandbox.registry import open_sandbox
from backends.services import Services
from core.errors import UsageError
from core.settings.models import OFF
from languages.registry import LANGUAGES
from mergemill.execution.images.ledger import UsageLedger
from taskdb.artifacts import open_artifacts

if TYPE_CHECKING:
    from backends.llm.base import LanguageModel
    from backends.sandbox.base import Sandbox
    from backends.sandbox.images import ImageInfo, ImageStore
    from core.config import Settings
    from core.settings.machine import HostSettings, SandboxSettings
    from core.settings.models import LlmSettings
    from core.settings.storage import StorageSettings
    from taskdb.records import BuildPlan, Candidate


class _LazySandbox:
    """Sandbox that is opened when it is first used, so that commands that need no engine run where there is none."""

    def __init__(self, sandbox: SandboxSettings, storage: StorageSettings) -> None:
        self._sandbox, self._storage = sandbox, storage
        self._opened: Sandbox | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.open(), name)

    def open(self) -> Sandbox:
        """Return the sandbox, opened by the first call."""
        if self._opened is None:
            self._opened = _open_engine(self._sandbox, self._storage)
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

    if settings.source.language is not None and settings.source.language not in LANGUAGES:
        raise UsageError(f"--language: {settings.source.language} is unknown", advice=f"one of {', '.join(LANGUAGES)}")
    sandbox = (
        _open_engine(settings.sandbox, settings.storage)
        if engine
        else cast("Sandbox", _LazySandbox(settings.sandbox, settings.storage))
    )
    if engine:
        sandbox.reap()
    services = Services(
        settings=settings,
        sandbox=sandbox,
        clones=CloneStore(settings.storage.store_dir / "clones", settings.source.clones),
        artifacts=open_artifacts(settings.storage),
        model=make_model(settings.llm, settings.host),
    )
    return replace(services, source_images=LazySourceImages(services))


def make_model(llm: LlmSettings, host: HostSettings, *, temperature: float | None = None) -> LanguageModel | None:
    """Return the model of the settings, or None; `temperature`: None for the endpoint's own."""
    if llm.url == OFF:
        return None
    if llm.model is None:
        llm = llm.model_copy(update={"model": llm.simulator_model})
    from backends.llm.client import ChatModel  # noqa: PLC0415 - the SDK loads slowly

    return ChatModel(llm, host, temperature=temperature)


def _open_engine(sandbox: SandboxSettings, storage: StorageSettings) -> Sandbox:
    return open_sandbox(sandbox, UsageLedger(storage.store_dir).touch)
