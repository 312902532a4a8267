"""Scripted models in all roles, for tests of single steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backends.llm.ledger import CallLedger, Pacer
from backends.llm.meter import UsageMeter
from core.config import Settings
from core.settings.worlds import WorldsSettings
from mergemill.worlds.making.models import ModelPool
from tests.samplers.scripted_model import ScriptedModel
from worlds.model_requests import RoleModels


@contextlib.contextmanager
def open_models(
    model: ScriptedModel, folder: Path, **changes: Any
) -> Iterator[tuple[RoleModels, WorldsSettings, UsageMeter]]:
    """Yield the models, options and a meter; `changes` are settings."""
    settings = Settings(llm=model.url, model="scripted", **changes)
    options = settings.worlds
    with CallLedger(folder, "mergemill worlds") as ledger, ModelPool(settings.llm, settings.host, options) as pool:
        models = RoleModels(
            open_model=pool.open,
            names=pool.names,
            ledger=ledger,
            pacer=Pacer(0),
            answer_tokens=settings.llm.answer_tokens,
            draw=options.draw,
        )
        yield models, options, UsageMeter()
