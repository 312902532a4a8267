"""Programs of scaffolds: the image that they are installed in, and the store made of it."""

from __future__ import annotations

from backends.services import Services
from samplers.programs.program import PYTHON_VERSION
from samplers.programs.store import ProgramBase, ProgramStore


def make_program_store(services: Services) -> ProgramStore:
    """Return the store of programs on the engine of the services."""
    return ProgramStore(services, lambda: _open_base(services))


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
