"""The models of a run: a connection for each temperature, and another for embeddings."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from backends.llm.base import LanguageModel
from backends.llm.client import ChatModel
from core.closable import Closable
from worlds.model_requests import ModelRole

if TYPE_CHECKING:
    from core.config import Settings
    from worlds.options import MakingOptions


class ModelPool(Closable):
    """Models of the endpoint of the settings. Threads may share it.

    Raises:
        MachineError: the CA bundle cannot be read.
    """

    def __init__(self, settings: Settings, options: MakingOptions) -> None:
        self._settings, self._options = settings, options
        self._lock = threading.Lock()
        self._models: dict[float | None, ChatModel] = {}
        url = settings.worlds_embedding_url or settings.llm
        self.embeddings = ChatModel(settings.model_copy(update={"llm": url})).get_model(options.embedding_model)

    @property
    def names(self) -> dict[ModelRole, str]:
        """Model of each role."""
        name = self._settings.model or ""
        return {
            ModelRole.WRITER: name,
            ModelRole.TESTER: self._options.tester_model or name,
            ModelRole.CHECKER: self._options.checker_model or name,
            ModelRole.SOLVER: self._options.solver_model or name,
        }

    def open(self, name: str, temperature: float | None) -> LanguageModel:
        """Return the model of a name at a temperature; None for the endpoint's own."""
        with self._lock:
            if temperature not in self._models:
                self._models[temperature] = ChatModel(self._settings, temperature=temperature)
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
