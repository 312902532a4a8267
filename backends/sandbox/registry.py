"""Sandbox backends by name. `SANDBOXES` is the complete list; a new backend is a module and a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from core.errors import MachineError, UsageError

if TYPE_CHECKING:
    from backends.sandbox.base import Sandbox
    from core.settings.machine import SandboxSettings

SANDBOXES: Mapping[str, str] = {
    "docker": "backends.sandbox.docker:create_sandbox",
    "kubernetes": "backends.sandbox.kubernetes.sandbox:create_sandbox",
    "bubblewrap": "backends.sandbox.bubblewrap:create_sandbox",
    "local": "backends.sandbox.local:create_sandbox",
}
"""Name of `--sandbox` -> factory `(sandbox, record_use) -> Sandbox`, as MODULE:FUNCTION. Imported when chosen."""


HOST_IMAGES: Mapping[str, str] = {"bubblewrap": "host", "local": "local"}
"""Backends without images -> the name of their only image, which is the programs of this machine."""


def find_host_image(name: str) -> str | None:
    """Return the image of a backend that has the programs of this machine, None for a backend with an image store."""
    return HOST_IMAGES.get(name)


def open_sandbox(sandbox: SandboxSettings, record_use: Callable[[str], None] = lambda _: None) -> Sandbox:
    """Open the sandbox that the settings name.

    Args:
        sandbox: its kind, and settings of that kind.
        record_use: function that is called with the name of every image that is used, each time.

    Raises:
        UsageError: there is no such backend, or the settings do not permit it.
        MachineError: this machine lacks something that the backend needs.
    """
    if sandbox.kind not in SANDBOXES:
        raise UsageError(f"--sandbox: {sandbox.kind} is unknown", advice=f"one of {', '.join(SANDBOXES)}")
    module, _, function = SANDBOXES[sandbox.kind].partition(":")
    try:
        factory = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        advice = f"pip install 'mergemill[{sandbox.kind}]'"
        raise MachineError(f"--sandbox {sandbox.kind} needs the package {error.name}", advice=advice) from error
    return cast("Sandbox", factory(sandbox, record_use))
