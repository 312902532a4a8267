"""Dependency layers that could not be made, remembered in the store: the next candidate that asks for the same knows.

One small file for each; it holds only for the base on which the build failed. Failures of the network are no failures.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from backends.sandbox.base import Ran
from backends.services import Services
from mergemill.errors import InputError

FOLDER = "failed-layers"


def recall(services: Services, name: str, base: str) -> Ran | None:
    """How the layer `name` failed on the image `base`, None when it was not tried or its log is gone."""
    try:
        said = json.loads(_file(services, name).read_text(encoding="utf-8"))
        if said["base"] != base:
            return None
        output = services.artifacts.text(said["log"])
    except (OSError, ValueError, KeyError, InputError):
        return None
    return Ran(exit_code=said["exit_code"], output=output, files={}, seconds=0.0, killed_by=None)


def remember(services: Services, name: str, base: str, ran: Ran) -> None:
    """Keep that the layer failed; not when it was killed, as another time or machine may have more to give."""
    if ran.killed_by is not None:
        return
    file = _file(services, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    said = {"base": base, "exit_code": ran.exit_code, "log": services.artifacts.put_text(ran.output)}
    scratch = file.with_suffix(".new")
    scratch.write_text(json.dumps(said), encoding="utf-8")
    scratch.replace(file)


def forget(store: Path) -> None:
    """Forget all failures below the folder of artifacts and clones, so that each is tried again."""
    shutil.rmtree(store / FOLDER, ignore_errors=True)


def _file(services: Services, name: str) -> Path:
    return services.settings.store_dir / FOLDER / f"{re.sub(r'[^A-Za-z0-9]', '_', name)}.json"
