"""What this machine has and lacks, and the command that mends it. Reading CHECKS is reading what is looked at."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

import requests
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from builders import bases, debootstrap
from languages.registry import all_languages
from mergemill.config import OFF, Settings
from mergemill.errors import InputError, MachineError, MergemillError
from mergemill.services import make_services
from taskdb.schema import open_engine

FREE_MB = 5 * 1024
"""Megabytes that should be free where images, and where database and artifacts lie."""
INDEX_SECONDS = 10
INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
OLDEST_GIT = (2, 30)
MODELS_NAMED = 10
"""Of an endpoint's models, how many are named where the wanted one is not among them."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing looked at. `detail` is what was found, `fix` the command or step that mends it; empty when ok."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Machine:
    """What the checks look at."""

    settings: Settings

    @cached_property
    def services(self) -> Services:
        """Services whose engine is asked for when it is first used."""
        return make_services(self.settings, engine=False)

    @cached_property
    def engine(self) -> DockerSandbox | MachineError:
        """The engine, or why there is none."""
        try:
            return DockerSandbox()
        except MachineError as error:
            return error


def python(_: Machine) -> Check:
    """Python 3.11 or newer."""
    version = ".".join(map(str, sys.version_info[:3]))
    return _check("python", f"{version}, {sys.executable}", sys.version_info >= (3, 11), "scripts/setup env")


def git(_: Machine) -> Check:
    """A git that the miner can read with."""
    if shutil.which("git") is None:
        return _check("git", "not installed", False, "apt-get install -y git")
    said = subprocess.run(["git", "version"], capture_output=True, text=True, check=False).stdout.strip()
    numbers = re.search(r"(\d+)\.(\d+)", said)
    new_enough = numbers is not None and (int(numbers[1]), int(numbers[2])) >= OLDEST_GIT
    return _check("git", said, new_enough, f"install git {'.'.join(map(str, OLDEST_GIT))} or newer")


def environment(_: Machine) -> Check:
    """Whether mergemill has an environment of its own: PyPI's package `verifiers` and ours would hide one another."""
    try:
        other = metadata.version("verifiers")
    except metadata.PackageNotFoundError:
        return _check("environment", "no foreign package named verifiers", True)
    found = f"verifiers {other} of PyPI is installed here and has the name of one of our folders"
    return _check("environment", found, False, "install mergemill in an environment of its own: scripts/setup env")


def docker_engine(machine: Machine) -> Check:
    """Whether an engine answers."""
    engine = machine.engine
    if isinstance(engine, MachineError):
        return _check("docker engine", str(engine), False, engine.advice)
    about = engine.about()
    return _check("docker engine", f"{about.version}, storage driver {about.storage_driver}", True)


def leftovers(machine: Machine) -> Check:
    """Whether containers of runs that were killed are still there."""
    if isinstance(machine.engine, MachineError):
        return _check("leftovers", "no engine", False, machine.engine.advice)
    count = len(machine.engine.orphans())
    found = f"{count} containers of runs that were killed" if count else "no containers of runs that were killed"
    return _check("leftovers", found, not count, "mergemill images list (as every command that needs the engine)")


def docker_disk(machine: Machine) -> Check:
    """Room for images. An engine elsewhere is not looked into."""
    if isinstance(machine.engine, MachineError):
        return _check("docker disk", "no engine", False, machine.engine.advice)
    root = Path(machine.engine.about().root)
    if not root.is_dir():
        return _check("docker disk", f"{root} is not on this machine", True)
    return _room("docker disk", root, "mergemill images prune")


def base_images(machine: Machine) -> Check:
    """Whether there are base images, or the means to make them."""
    if isinstance(machine.engine, MachineError):
        return _check("base images", "no engine", False, machine.engine.advice)
    here = [
        f"{name} {one.version}"
        for name, known in all_languages().items()
        for one in known.RELEASES
        if bases.existing(name, one, machine.services)
    ]
    if here:
        return _check("base images", ", ".join(here), True)
    return _check("base images", "none", False, "scripts/setup base")


def base_source(machine: Machine) -> Check:
    """Whether further bases can be made."""
    versions = bases.available("python", machine.services) if not isinstance(machine.engine, MachineError) else ()
    lacking = debootstrap.can_debootstrap()
    found = f"python {', '.join(versions)} can be had" if versions else "no base can be made"
    if lacking and machine.settings.base_source != "registry":
        found += f"; Debian's way is closed: {lacking}"
    return _check("base source", found, bool(versions), "scripts/setup docker base")


def certificates(machine: Machine) -> Check:
    """The CA bundle and proxy settings that builds are given."""
    named, found = machine.settings.ca_bundle, machine.settings.found_ca_bundle()
    if named and not found:
        return _check("network settings", f"there is no CA bundle {named}", False, "correct --ca-bundle")
    given = sorted(machine.settings.inherited_environment())
    return _check("network settings", f"CA bundle {found or 'of the images'}; {', '.join(given) or 'no proxy'}", True)


def package_index(machine: Machine) -> Check:
    """Whether PyPI, or the index set in its place, answers."""
    given = machine.settings.inherited_environment()
    url = next((given[name] for name in INDEX_VARIABLES if name in given), PYPI_SIMPLE_ENDPOINT)
    bundle = machine.settings.found_ca_bundle()
    try:
        requests.get(
            f"{url.rstrip('/')}/pip/", timeout=INDEX_SECONDS, verify=str(bundle) if bundle else True
        ).raise_for_status()
    except (OSError, ValueError) as error:
        fix = "set SSL_CERT_FILE, HTTPS_PROXY or PIP_INDEX_URL as your network needs"
        return _check("package index", f"does not answer: {error}", False, fix)
    return _check("package index", "answers", True)


def github(machine: Machine) -> Check:
    """The tokens for GitHub's API, and what is left of each. None is fine, and so is a GitHub out of reach."""
    settings = machine.settings
    app = (settings.github_app_id, settings.github_app_key, settings.github_app_installation)
    if not (settings.found_github_tokens() or any(app)):
        return _check("github", "no token is set; GITHUB_TOKEN is needed for pull requests", True)
    from miner.github.api import Api, Left  # noqa: PLC0415 - only who has a token pays for PyGithub
    from miner.github.auth import HOW  # noqa: PLC0415

    def told(left: Left) -> str:
        if left.problem:
            return f"{left.token}: {left.problem}"
        if left.points is None:
            return f"{left.token}: no limits"
        return f"{left.token}: {left.points} points and {left.requests} requests left"

    with Api(settings, timeout=INDEX_SECONDS) as api:
        found = api.left()
    return _check("github", "; ".join(map(told, found)), not any(left.refused for left in found), HOW)


def model(machine: Machine) -> Check:
    """Whether the endpoint of --llm answers and has the model."""
    settings = machine.settings
    if settings.llm == OFF:
        return _check("model", "off; --llm URL --model NAME lets one take part", True)
    from backends.llm.client import ChatModel  # noqa: PLC0415 - only who asks a model pays for the SDK

    endpoint = ChatModel(settings)
    try:
        names = endpoint.models()
    finally:
        endpoint.close()
    if names and settings.model not in names:
        some = ", ".join(names[:MODELS_NAMED])
        return _check("model", f"{settings.llm} answers and has no {settings.model}", False, f"--model: {some}")
    return _check("model", f"{settings.llm} answers{f' and has {settings.model}' if names else ''}", True)


def database(machine: Machine) -> Check:
    """Whether the database opens; one that is not there yet is fine."""
    try:
        open_engine(machine.settings.db, create=False).dispose()
    except InputError as error:
        missing = machine.settings.db.startswith("sqlite:///") and not _database_file(machine.settings).exists()
        return _check("database", "not there yet" if missing else str(error), missing, error.advice or "choose --db")
    except MergemillError as error:
        return _check("database", str(error), False, error.advice)
    return _check("database", machine.settings.db.partition("@")[2] or machine.settings.db, True)


def store_disk(machine: Machine) -> Check:
    """Room for database and artifacts."""
    folder = machine.settings.store_dir.absolute()
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    return _room("disk", there, "free disk space, or choose --store")


CHECKS: tuple[Callable[[Machine], Check], ...] = (
    python,
    git,
    environment,
    docker_engine,
    leftovers,
    docker_disk,
    base_images,
    base_source,
    certificates,
    package_index,
    github,
    model,
    database,
    store_disk,
)


def checks(settings: Settings) -> list[Check]:
    """All checks, in the order of CHECKS. A check that itself fails for the machine's sake is one that is not ok."""
    machine = Machine(settings)
    return [_run(check, machine) for check in CHECKS]


def _run(check: Callable[[Machine], Check], machine: Machine) -> Check:
    try:
        return check(machine)
    except MergemillError as error:
        return _check(check.__name__.replace("_", " "), str(error), False, error.advice)


def _check(name: str, detail: str, ok: bool, fix: str = "") -> Check:
    return Check(name=name, ok=ok, detail=detail, fix="" if ok else fix)


def _room(name: str, folder: Path, fix: str) -> Check:
    free = shutil.disk_usage(folder).free // (1024 * 1024)
    return _check(name, f"{free} MB free at {folder}", free >= FREE_MB, fix)


def _database_file(settings: Settings) -> Path:
    return Path(settings.db.removeprefix("sqlite:///"))
