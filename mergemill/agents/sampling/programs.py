"""Programs of scaffolds: the image that they are installed in, and the store made of it."""

from __future__ import annotations

from collections.abc import Sequence

from backends.sandbox.images import ImageInfo
from backends.services import Services
from core.config import Settings
from mergemill.execution.services import make_services
from samplers.programs.program import PYTHON_VERSION
from samplers.programs.store import ProgramBase, ProgramStore
from samplers.scaffolds.base import Scaffold
from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold


def make_program_store(services: Services) -> ProgramStore:
    """Return the store of programs on the engine of the services."""
    return ProgramStore(services, lambda: _open_base(services))


def install_programs(names: Sequence[str], settings: Settings) -> list[str]:
    """Install the programs of some scaffolds and return the volumes of all that is installed.

    Raises:
        UsageError: a name is not a scaffold.
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


def find_missing_programs(services: Services) -> tuple[list[Scaffold], list[Scaffold]]:
    """Return the scaffolds that can run at once, and those whose program, or the portable Python, is not installed."""
    from builders.bases import find_existing_base  # noqa: PLC0415 - as below
    from builders.catalog import get_release  # noqa: PLC0415

    scaffolds = [load_scaffold(name) for name in SCAFFOLDS]
    image = find_existing_base("python", get_release("python", PYTHON_VERSION), services)
    if image is None:
        return [], scaffolds
    store, base = make_program_store(services), _describe_base(image, services)
    there = [scaffold for scaffold in scaffolds if store.has_volumes(scaffold.program, base)]
    return there, [scaffold for scaffold in scaffolds if scaffold not in there]


def _open_base(services: Services) -> ProgramBase:
    """Return the base image with the Python that programs run on, made where it is missing.

    Raises:
        MachineError: this machine can neither pull nor make it.
        Transient: the network or the engine failed.
    """
    from builders.bases import ensure_base  # noqa: PLC0415 - queries need no builders

    return _describe_base(ensure_base("python", PYTHON_VERSION, services), services)


def _describe_base(image: ImageInfo, services: Services) -> ProgramBase:
    from builders.bases import PYTHON_LABEL, build_base_env  # noqa: PLC0415 - as above
    from builders.host_settings import collect_host_settings  # noqa: PLC0415

    files, env = collect_host_settings(services.settings.host)
    env = build_base_env("python") | env
    return ProgramBase(image=image.name, python=image.labels[PYTHON_LABEL], files=files, env=env)
