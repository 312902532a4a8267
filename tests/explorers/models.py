"""A scripted model in all roles, for tests of single gates: a function of role, sections and number of the request."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from backends.llm.ledger import CallLedger
from core.config import Settings
from explorers.model_requests import ExplorerModels
from mergemill.explore.models import ExplorerPool
from tests.explorers.scripted import find_role, read_sections
from tests.samplers import scripted_model
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn

Reply = Callable[[Mapping[str, str], int, ModelRequest], "Turn | dict[str, Any]"]


@dataclass
class ScriptedRoles:
    """Role -> its reply, a function of sections, number of the first request of its kind (from 1) and the request."""

    roles: dict[str, Reply] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def answer(self, request: ModelRequest) -> Turn:
        role = find_role(request)
        if request.place == 0:
            self.counts[role] += 1
        reply = self.roles[role](read_sections(request), self.counts[role], request)
        return reply if isinstance(reply, Turn) else Turn(text=json.dumps(reply, ensure_ascii=False))


@cache
def _open_server() -> tuple[ScriptedModel, ExplorerPool]:
    """Return a server and a client of it for all tests: a client takes longer to make than most tests."""
    model = ScriptedModel(lambda _: Turn(text="done"))
    return model.__enter__(), ExplorerPool(Settings(llm=model.url, model="scripted"))


def close_server() -> None:
    """Close the server, if a test opened it."""
    if _open_server.cache_info().currsize:
        model, pool = _open_server()
        pool.close()
        model.__exit__()
        _open_server.cache_clear()


@contextlib.contextmanager
def open_models(roles: ScriptedRoles, folder: Path) -> Iterator[ExplorerModels]:
    """Yield the models of all roles over HTTP, with a ledger of their own."""
    model, pool = _open_server()
    model.repair(roles.answer)
    # In few pieces: how streams are cut is tested elsewhere.
    with patch.object(scripted_model, "PIECE_TOKENS", 1000), CallLedger(folder / "ledger") as ledger:
        yield pool.make_models(ledger)
