"""Programs of scaffolds: the image that they are installed in, and the store made of it."""

from __future__ import annotations

from collections.abc import Sequence

from backends.services import Services
from core.config import Settings
from mergemill.services import make_services
from samplers.programs.program import PYTHON_VERSION
from samplers.programs.store import ProgramBase, ProgramStore
from samplers.scaffolds.registry import load_scaffold


def make_program_store(services: Services) -> ProgramStore:
    """Return the store of programs on the engine of the services."""
    return ProgramStore(services, lambda: _open_base(services))


def install_programs(names: Sequence[str], settings: Settings) -> list[str]:
    """Install the programs of some scaffolds and return the volumes of all that is installed.

    Raises:
        UsageError: a name is no scaffold.
        MachineError: a program cannot be installed.
    """
    scaffolds = [load_scaffold(name) for name in names]
    store = make_program_store(make_services(settings, engine=True))
    for scaffold in scaffolds:
        store.ensure(scaffold.program)
    return [volume.name for volume in store.list_installed()]


def remove_programs(names: Sequence[str], settings: Settings) -> list[str]:
    """Remove the programs of some scaffolds, all for no names, and return the volumes that were removed."""
    store = make_program_store(make_services(settings, engine=True))
    return [volume.name for volume in store.remove(names)]


def _open_base(services: Services) -> ProgramBase:
    """Return the base image with the Python that programs run on, made where it is missing.

    Raises:
        MachineError: this machine can neither pull nor make it.
        Transient: the network or the engine failed.
    """
    from builders.bases import PYTHON_LABEL, build_base_env, ensure_base  # noqa: PLC0415 - queries need no builders
    from builders.host_settings import collect_host_settings  # noqa: PLC0415

    image = ensure_base("python", PYTHON_VERSION, services)
    files, env = collect_host_settings(services.settings)
    env = build_base_env("python") | env
    return ProgramBase(image=image.name, python=image.labels[PYTHON_LABEL], files=files, env=env)
