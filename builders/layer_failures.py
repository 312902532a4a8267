"""Store of failed dependency layers, so that the next candidate with the same layer is rejected without a build.

A small file for each layer, valid only for the base on which the build failed. Network failures are not stored.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from backends.sandbox.execution import ExecResult
from backends.services import Services
from core.errors import InputError

FOLDER = "failed-layers"


def load_failure(services: Services, name: str, base: str) -> ExecResult | None:
    """Return the stored result of the layer `name` on the image `base`, or None if the log is missing, too."""
    try:
        stored = json.loads(_get_failure_file(services, name).read_text(encoding="utf-8"))
        if stored["base"] != base:
            return None
        output = services.artifacts.get_text(stored["log"])
    except (OSError, ValueError, KeyError, InputError):
        return None
    return ExecResult(exit_code=stored["exit_code"], output=output, files={}, seconds=0.0, killed_by=None)


def save_failure(services: Services, name: str, base: str, result: ExecResult) -> None:
    """Store the failure of a layer, unless a limit ended it, since another machine may have a higher limit."""
    if result.killed_by is not None:
        return
    file = _get_failure_file(services, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    failure = {"base": base, "exit_code": result.exit_code, "log": services.artifacts.put_text(result.output)}
    scratch = file.with_suffix(".new")
    scratch.write_text(json.dumps(failure), encoding="utf-8")
    scratch.replace(file)


def clear_failures(store: Path) -> None:
    """Delete all stored failures below the store's folder, so that each layer is tried again."""
    shutil.rmtree(store / FOLDER, ignore_errors=True)


def _get_failure_file(services: Services, name: str) -> Path:
    return services.settings.storage.store_dir / FOLDER / f"{re.sub(r'[^A-Za-z0-9]', '_', name)}.json"
