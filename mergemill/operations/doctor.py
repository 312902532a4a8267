"""Checks of this machine's requirements. `CHECKS` is the complete list."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from pypi_simple import PYPI_SIMPLE_ENDPOINT

from builders import bases, debootstrap
from core.config import Settings
from core.errors import InputError, MachineError, MergemillError
from core.settings.models import OFF
from core.settings.storage import StorageSettings
from core.text import format_count
from languages.registry import LANGUAGES
from mergemill.execution.clusters import LOCAL, RAY, check_cluster_settings, open_cluster
from mergemill.operations.agent_checks import check_agent_programs, check_agent_python
from mergemill.operations.machine_checks import ANSWER_SECONDS, Machine, MachineCheck, build_check
from taskdb.artifacts import open_artifacts
from taskdb.schema.database import open_engine

FREE_MB = 5 * 1024
"""Megabytes that should be free for images, and for database and artifacts."""
INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
OLDEST_GIT = (2, 30)
NO_DATABASE = "not there yet"
"""Facts that are found of a database that the first command makes."""
MODELS_NAMED = 10
"""Models of an endpoint that are named where the requested model is missing."""


def check_python(_: Machine) -> MachineCheck:
    """Check for Python 3.11 or newer."""
    version = ".".join(map(str, sys.version_info[:3]))
    return build_check("python", f"{version}, {sys.executable}", sys.version_info >= (3, 11), "scripts/setup env")


def check_git(_: Machine) -> MachineCheck:
    """Check for a git that the miner supports."""
    if shutil.which("git") is None:
        return build_check("git", "not installed", False, "apt-get install -y git")
    version = subprocess.run(["git", "version"], capture_output=True, text=True, check=False).stdout.strip()
    numbers = re.search(r"(\d+)\.(\d+)", version)
    new_enough = numbers is not None and (int(numbers[1]), int(numbers[2])) >= OLDEST_GIT
    return build_check("git", version, new_enough, f"install git {'.'.join(map(str, OLDEST_GIT))} or newer")


def check_environment(_: Machine) -> MachineCheck:
    """Check that PyPI's package `verifiers` is absent: it and mergemill's would hide each other."""
    try:
        other = metadata.version("verifiers")
    except metadata.PackageNotFoundError:
        return build_check("environment", "no other package named verifiers", True)
    text = f"verifiers {other} of PyPI is installed and has the name of one of mergemill's packages"
    return build_check("environment", text, False, "install mergemill in an environment of its own: scripts/setup env")


def check_docker_engine(machine: Machine) -> MachineCheck:
    """Check that an engine answers."""
    engine = machine.engine
    if isinstance(engine, MachineError):
        return build_check("docker engine", str(engine), False, engine.advice)
    about = engine.images.get_engine_info()
    return build_check("docker engine", f"{about.version}, storage driver {about.storage_driver}", True)


def check_leftovers(machine: Machine) -> MachineCheck:
    """Check for containers of runs that were killed."""
    if isinstance(machine.engine, MachineError):
        return build_check("leftovers", "no engine", False, machine.engine.advice)
    count = len(machine.engine.find_orphans())
    text = (
        f"{format_count(count, 'container')} of runs that were killed"
        if count
        else "no containers of runs that were killed"
    )
    return build_check("leftovers", text, not count, "mergemill gc")


def check_docker_disk(machine: Machine) -> MachineCheck:
    """Check the disk space for images; that of an engine on another machine cannot be read."""
    if isinstance(machine.engine, MachineError):
        return build_check("docker disk", "no engine", False, machine.engine.advice)
    root = Path(machine.engine.images.get_engine_info().root)
    if not root.is_dir():
        return build_check("docker disk", f"{root} is not on this machine", True)
    return _check_free_space("docker disk", root, "mergemill images prune")


def check_base_images(machine: Machine) -> MachineCheck:
    """Check for base images."""
    if isinstance(machine.engine, MachineError):
        return build_check("base images", "no engine", False, machine.engine.advice)
    here = [
        f"{name} {release.version}"
        for name, known in LANGUAGES.items()
        for release in known.releases
        if bases.find_existing_base(name, release, machine.services)
    ]
    if here:
        return build_check("base images", ", ".join(here), True)
    return build_check("base images", "none", False, "scripts/setup base")


def check_base_source(machine: Machine) -> MachineCheck:
    """Check that further base images can be made."""
    versions = (
        bases.list_available_versions("python", machine.services)
        if not isinstance(machine.engine, MachineError)
        else ()
    )
    lacking = debootstrap.find_missing_requirement()
    text = f"python {', '.join(versions)} available" if versions else "no base image can be made"
    if lacking and machine.settings.host.base_source != "registry":
        text += f"; debootstrap is unavailable: {lacking}"
    return build_check("base source", text, bool(versions), "scripts/setup docker base")


def check_network_settings(machine: Machine) -> MachineCheck:
    """Check the CA bundle and proxy settings that builds are given."""
    named, ca_bundle = machine.settings.host.ca_bundle, machine.settings.host.find_ca_bundle()
    if named and not ca_bundle:
        return build_check("network settings", f"there is no CA bundle {named}", False, "correct --ca-bundle")
    given = sorted(machine.settings.host.inherit_environment())
    return build_check(
        "network settings", f"CA bundle {ca_bundle or 'of the images'}; {', '.join(given) or 'no proxy'}", True
    )


def check_package_index(machine: Machine) -> MachineCheck:
    """Check that PyPI, or the configured index, answers."""
    given = machine.settings.host.inherit_environment()
    url = next((given[name] for name in INDEX_VARIABLES if name in given), PYPI_SIMPLE_ENDPOINT)
    if problem := machine.find_problem(f"{url.rstrip('/')}/pip/"):
        fix = "set SSL_CERT_FILE, HTTPS_PROXY or PIP_INDEX_URL as your network needs"
        return build_check("package index", f"does not answer: {problem}", False, fix)
    return build_check("package index", "answers", True)


def check_github(machine: Machine) -> MachineCheck:
    """Check the tokens for GitHub's API and their remaining quotas; a missing token or an unreachable GitHub passes."""
    settings = machine.settings
    app = (settings.github.app_id, settings.github.app_key, settings.github.app_installation)
    if not (settings.github.find_tokens() or any(app)):
        return build_check("github", "no token is set; GITHUB_TOKEN is needed for pull requests", True)
    # PyGithub loads slowly, and without a token there is nothing to check.
    from miner.github.api import GitHubApi, RemainingQuota  # noqa: PLC0415
    from miner.github.auth import TOKEN_ADVICE  # noqa: PLC0415

    def format_quota(left: RemainingQuota) -> str:
        if left.problem:
            return f"{left.token}: {left.problem}"
        if left.points is None:
            return f"{left.token}: no limits"
        return f"{left.token}: {left.points} points and {left.requests} requests left"

    with GitHubApi(settings.github, settings.host, timeout=ANSWER_SECONDS) as api:
        remaining_quotas = api.fetch_remaining_quotas()
    return build_check(
        "github",
        "; ".join(map(format_quota, remaining_quotas)),
        not any(left.is_rejected for left in remaining_quotas),
        TOKEN_ADVICE,
    )


def check_model(machine: Machine) -> MachineCheck:
    """Check that the endpoint of --llm answers and has the model."""
    settings = machine.settings
    if settings.llm.url == OFF:
        return build_check("model", "off; --llm URL --model NAME selects one", True)
    # The SDK loads slowly, and without an endpoint there is nothing to check.
    from backends.llm.client import ChatModel  # noqa: PLC0415

    endpoint = ChatModel(settings.llm, settings.host)
    try:
        names = endpoint.list_models()
    finally:
        endpoint.close()
    if names and settings.llm.model not in names:
        some = ", ".join(names[:MODELS_NAMED])
        return build_check(
            "model", f"{settings.llm.url} answers and has no {settings.llm.model}", False, f"--model: {some}"
        )
    return build_check("model", f"{settings.llm.url} answers{f' and has {settings.llm.model}' if names else ''}", True)


def check_database(machine: Machine) -> MachineCheck:
    """Check that the database opens; a database that does not exist yet passes."""
    try:
        open_engine(machine.settings.storage.db, create=False).dispose()
    except InputError as error:
        missing = (
            machine.settings.storage.db.startswith("sqlite:///")
            and not _locate_database_file(machine.settings.storage).exists()
        )
        return build_check("database", NO_DATABASE if missing else str(error), missing, error.advice or "choose --db")
    except MergemillError as error:
        return build_check("database", str(error), False, error.advice)
    # The part of a URL before `@` may hold a password.
    return build_check("database", machine.settings.storage.db.partition("@")[2] or machine.settings.storage.db, True)


def check_artifacts(machine: Machine) -> MachineCheck:
    """Check that a shared store of artifacts can be written; a folder is checked by `check_store_disk`."""
    artifacts = open_artifacts(machine.settings.storage)
    if not isinstance(machine.settings.storage.artifact_place, Path):
        artifacts.check(writes=True)
    return build_check("artifacts", artifacts.place, True)


def check_store_disk(machine: Machine) -> MachineCheck:
    """Check the disk space for database and artifacts."""
    folder = machine.settings.storage.store_dir.absolute()
    # Before the first run the folder does not exist; it will be on the disk of its nearest parent.
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    return _check_free_space("disk", there, "free disk space, or choose --store")


def check_cluster(machine: Machine) -> MachineCheck:
    """Check that the nodes of --cluster can be used."""
    settings, problems = machine.settings, list[str]()
    has_database = check_database(machine).detail != NO_DATABASE
    with open_cluster(settings, engine=True, notify=problems.append, database=has_database) as cluster:
        text = "; ".join([cluster.describe(), *problems])
    advice = "repair the nodes that are left out: docs/guide/operate/clusters.md"
    return build_check("cluster", text, not problems, advice)


CHECKS: tuple[Callable[[Machine], MachineCheck], ...] = (
    check_python,
    check_git,
    check_environment,
    check_docker_engine,
    check_leftovers,
    check_docker_disk,
    check_base_images,
    check_base_source,
    check_network_settings,
    check_package_index,
    check_github,
    check_model,
    check_agent_python,
    check_agent_programs,
    check_database,
    check_artifacts,
    check_store_disk,
    check_cluster,
)
ENGINE_CHECKS = (
    check_docker_engine,
    check_leftovers,
    check_docker_disk,
    check_base_images,
    check_base_source,
    check_agent_python,
    check_agent_programs,
)
"""Checks of this machine's engine, which a driver does without where others work for it."""


def run_checks(settings: Settings) -> list[MachineCheck]:
    """Run all checks in order; an error of mergemill's during a check counts as a failed check.

    Those of the engine are left out where there is none and the nodes of a cluster have theirs.

    Raises:
        UsageError: a setting is malformed.
    """
    check_cluster_settings(settings.cluster)
    machine = Machine(settings)
    needs_engine = settings.cluster.address in (LOCAL, RAY) or not isinstance(machine.engine, MachineError)
    return [_run_check(check, machine) for check in CHECKS if needs_engine or check not in ENGINE_CHECKS]


def _run_check(check: Callable[[Machine], MachineCheck], machine: Machine) -> MachineCheck:
    try:
        return check(machine)
    except MergemillError as error:
        return build_check(check.__name__.removeprefix("check_").replace("_", " "), str(error), False, error.advice)


def _check_free_space(name: str, folder: Path, fix: str) -> MachineCheck:
    free = shutil.disk_usage(folder).free // (1024 * 1024)
    return build_check(name, f"{free} MB free at {folder}", free >= FREE_MB, fix)


def _locate_database_file(storage: StorageSettings) -> Path:
    return Path(storage.db.removeprefix("sqlite:///"))
