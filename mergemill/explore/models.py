"""The models of a run of exploring: a connection for each temperature, and the name of each role."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from backends.llm.base import LanguageModel
from backends.llm.client import ChatModel
from backends.llm.ledger import CallLedger, Pacer
from core.closable import Closable
from explorers.model_requests import ExplorerModels, ExplorerRole

if TYPE_CHECKING:
    from core.config import Settings


LEDGER_FOLDER, COMMAND = "explore", "mergemill explore"
"""Folder of the ledger in the store, and the command that writes to it."""


class ExplorerPool(Closable):
    """Models of the endpoint of the settings. Threads may share it.

    Raises:
        MachineError: the CA bundle cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._models: dict[float | None, ChatModel] = {}

    def open(self, name: str, temperature: float | None) -> LanguageModel:
        """Return the model of a name at a temperature; None for the endpoint's own."""
        with self._lock:
            if temperature not in self._models:
                settings = self._settings
                self._models[temperature] = ChatModel(settings.llm, settings.host, temperature=temperature)
            return self._models[temperature].get_model(name)

    def make_models(self, ledger: CallLedger) -> ExplorerModels:
        """Return the models of the roles, with the ledger of their answers."""
        llm, options = self._settings.llm, self._settings.explore
        name = llm.model or ""
        return ExplorerModels(
            open_model=self.open,
            names={
                ExplorerRole.WALKER: options.walker_model or name,
                ExplorerRole.WRITER: name,
                ExplorerRole.JUDGE: options.judge_model or name,
                ExplorerRole.RIVAL: options.rival_model or name,
            },
            solvers=options.solver_models or (name,),
            ledger=ledger,
            pacer=Pacer(0),
            attempts=options.attempts,
            temperature=options.temperature,
            answer_tokens=llm.answer_tokens,
            draw=options.draw,
        )

    def stop(self) -> None:
        """Cancel all current and future requests."""
        with self._lock:
            for model in self._models.values():
                model.stop()

    def close(self) -> None:
        """Close the connections."""
        for model in self._models.values():
            model.close()
