"""The models of a run: a connection for each temperature, and another for embeddings."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from backends.llm.base import LanguageModel
from backends.llm.client import ChatModel
from core.closable import Closable
from worlds.model_requests import ModelRole

if TYPE_CHECKING:
    from core.settings.machine import HostSettings
    from core.settings.models import LlmSettings
    from core.settings.worlds import WorldsSettings


class ModelPool(Closable):
    """Models of the endpoint of the settings. Threads may share it.

    Raises:
        MachineError: the CA bundle cannot be read.
    """

    def __init__(self, llm: LlmSettings, host: HostSettings, worlds: WorldsSettings) -> None:
        self._llm, self._host, self._worlds = llm, host, worlds
        self._lock = threading.Lock()
        self._models: dict[float | None, ChatModel] = {}
        embeddings = llm.model_copy(update={"url": worlds.embedding_url or llm.url})
        self.embeddings = ChatModel(embeddings, host).get_model(worlds.embedding_model)

    @property
    def names(self) -> dict[ModelRole, str]:
        """Model of each role."""
        name = self._llm.model or ""
        return {
            ModelRole.WRITER: name,
            ModelRole.TESTER: self._worlds.tester_model or name,
            ModelRole.CHECKER: self._worlds.checker_model or name,
            ModelRole.SOLVER: self._worlds.solver_model or name,
        }

    def open(self, name: str, temperature: float | None) -> LanguageModel:
        """Return the model of a name at a temperature; None for the endpoint's own."""
        with self._lock:
            if temperature not in self._models:
                self._models[temperature] = ChatModel(self._llm, self._host, temperature=temperature)
            return self._models[temperature].get_model(name)

    def stop(self) -> None:
        """Cancel all current and future requests."""
        with self._lock:
            for model in (*self._models.values(), self.embeddings):
                model.stop()

    def close(self) -> None:
        """Close the connections."""
        for model in (*self._models.values(), self.embeddings):
            model.close()
