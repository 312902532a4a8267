"""Base images: found, or made from a registry's official image, from Debian, or from an interpreter of this machine.

A base's name is the hash of its recipe, so an image that is there is the right one. `ensure_base` is the way in.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.metadata import version as installed_version

import uv

from backends.sandbox.base import ImageInfo
from backends.services import Services
from builders import catalog, interpreters
from builders.debootstrap import can_debootstrap, root_file_system
from mergemill.errors import MachineError, Transient

log = logging.getLogger(__name__)

REPOSITORY = "mergemill/base"
LABEL = "mergemill.base"
"""Label of every base and of the images made on it: language and version, `python3.11`."""
PYTHON_LABEL = "mergemill.python"
"""Label with the path of the interpreter: `/usr/bin/python3.11`."""
RECIPE_LABEL = "mergemill.recipe"
USER = "mergemill"
UV_PATH = "/usr/local/bin/uv"
FINISH = "/run/mergemill/finish.sh"
ENV = {
    "LANG": "C.UTF-8",
    "PATH": "/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
MOVING_SUITES = frozenset({"sid"})
"""Debian releases that change from day to day."""
PULL_SECONDS = 10.0
"""How long a registry may take to give its first answer."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to make a base. `kind` is official, debian or host; `source` the image, the suite or the interpreter."""

    language: str
    version: str
    kind: str
    source: str
    python: str
    """Path of the interpreter in the box."""

    @property
    def name(self) -> str:
        """The image's name."""
        contents = [
            self.kind, self.source, self.python, catalog.text("finish.sh"), catalog.packages(self.language), ENV,
            installed_version("uv"),
        ]  # fmt: skip
        key = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:12]
        return f"{REPOSITORY}:{self.language}{self.version}-{self.kind}-{key}"

    @property
    def labels(self) -> dict[str, str]:
        """What the image says of itself."""
        return {
            LABEL: f"{self.language}{self.version}",
            PYTHON_LABEL: self.python,
            RECIPE_LABEL: f"{self.kind}:{self.source}",
        }


def recipes(release: catalog.Release, base_source: str) -> tuple[Recipe, ...]:
    """The ways to make a base, best first. What this machine cannot do is not among them.

    Debian's own interpreter comes before one of this machine where the base for that has to be made anyway.
    """
    official = _recipe(release, "official", release.image, f"/usr/local/bin/python{release.version}")
    if base_source == "registry":
        return (official,)
    ways = []
    if can_debootstrap() is None:
        host = _host_recipe(release)
        own = release.suite and _recipe(release, "debian", release.suite, f"/usr/bin/python{release.version}")
        ways = [way for way in (own, host) if way]
        if release.suite != interpreters.debian_suite():
            ways.reverse()
    return tuple(ways) if base_source == "debian" else (official, *ways)


def _recipe(release: catalog.Release, kind: str, source: str, python: str) -> Recipe:
    return Recipe(language=release.language, version=release.version, kind=kind, source=source, python=python)


def _host_recipe(release: catalog.Release) -> Recipe | None:
    interpreter = interpreters.found().get(release.version)
    if interpreter is None or _carrier(interpreter) is None:
        return None
    source = f"{interpreter.prefix}@{release.version}.{interpreter.patch}"
    return _recipe(release, "host", source, interpreter.python)


def _carrier(interpreter: interpreters.Interpreter) -> catalog.Release | None:
    """The release whose Debian base can take the interpreter in."""
    suite = "bookworm" if interpreter.standalone else interpreters.debian_suite()
    return next((one for one in catalog.releases("python") if one.suite == suite), None)


def available(language: str, services: Services) -> tuple[str, ...]:
    """Versions for which a base is here or can be made on this machine, oldest first.

    Whether a registry answers is tried once, by asking for the default version's image.
    """
    return tuple(
        one.version for one in catalog.releases(language) if _open_ways(one, services) or existing(one, services)
    )


def moving(language: str, services: Services) -> frozenset[str]:
    """Versions that this machine can only take from a Debian release that changes from day to day."""
    ways = {one.version: _open_ways(one, services) for one in catalog.releases(language)}
    return frozenset(v for v, open_ways in ways.items() if open_ways and open_ways[0].source in MOVING_SUITES)


def _open_ways(release: catalog.Release, services: Services) -> list[Recipe]:
    source = services.settings.base_source
    registry = source == "registry" or (source == "auto" and _registry_answers(release.language, services))
    return [way for way in recipes(release, source) if registry or way.kind != "official"]


def _registry_answers(language: str, services: Services) -> bool:
    release = catalog.release(language, catalog.defaults(language)[0])
    sandbox = services.sandbox
    return sandbox.image(release.image) is not None or sandbox.pull(release.image, seconds=PULL_SECONDS)


def existing(release: catalog.Release, services: Services) -> ImageInfo | None:
    """The base for a release that is here already, or None."""
    ways = recipes(release, services.settings.base_source)
    return next((info for way in ways if (info := services.sandbox.image(way.name))), None)


def bootstrap(language: str, versions: tuple[str, ...] | None, services: Services) -> list[ImageInfo]:
    """Bases for these versions, or the catalog's defaults. Raises as `ensure_base` does."""
    return [ensure_base(language, version, services) for version in versions or catalog.defaults(language)]


def ensure_base(language: str, version: str, services: Services) -> ImageInfo:
    """The base image, made when it is not there yet; one process at a time makes it, others of the engine wait.

    Raises:
        InputError: the catalog does not know language or version.
        MachineError: this machine can neither pull nor make it.
        Transient: the network or the engine failed.
    """
    release = catalog.release(language, version)
    if here := existing(release, services):
        return here
    with services.sandbox.lock(f"base-{language}{version}"):
        if here := existing(release, services):
            return here
        for way in recipes(release, services.settings.base_source):
            log.info("making the base for %s %s (%s: %s)", language, version, way.kind, way.source)
            if (made := MAKERS[way.kind](way, services)) is not None:
                log.info("%s is ready", made.name)
                return made
    reason = can_debootstrap() or f"no registry answers and there is no Debian suite or interpreter for {version}"
    raise MachineError(f"no base image for {language} {version}: {reason}", advice="scripts/setup base")


# --- the three ways --------------------------------------------------------------------------------


def _official(way: Recipe, services: Services) -> ImageInfo | None:
    """Pull the official image and finish it; None when no registry answers."""
    if services.sandbox.image(way.source) is None and not services.sandbox.pull(way.source, seconds=PULL_SECONDS):
        return None
    install = " ".join(catalog.packages())
    script = (
        f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {install} && sh {FINISH} {way.python}"
    )
    with tempfile.TemporaryFile() as tree:
        with tarfile.open(fileobj=tree, mode="w") as tar:
            tar.add(uv.find_uv_bin(), UV_PATH.lstrip("/"), filter=_as_root)
        tree.seek(0)
        return _built(way, way.source, script, tree, services)


def _debian(way: Recipe, services: Services) -> ImageInfo:
    """Make the suite, finish it and import it as one layer; two who need it at once make it once."""
    with services.sandbox.lock(way.name):
        if here := services.sandbox.image(way.name):
            return here
        packages = catalog.packages(way.language)
        finish = catalog.text("finish.sh")
        with root_file_system(way.source, packages, uv.find_uv_bin(), finish, way.python) as tar:
            services.sandbox.import_rootfs(tar, way.name, env=ENV, labels=way.labels)
        return _found(way, services)


def _host(way: Recipe, services: Services) -> ImageInfo | None:
    """Lay an interpreter of this machine on the base of its Debian release."""
    interpreter = interpreters.found()[way.version]
    carrier = _carrier(interpreter)
    if carrier is None or carrier.suite is None:
        return None
    under = _recipe(carrier, "debian", carrier.suite, f"/usr/bin/python{carrier.version}")
    _debian(under, services)
    with tempfile.TemporaryFile() as tree:
        interpreters.write_tar(interpreter, tree)
        tree.seek(0)
        return _built(way, under.name, f"sh {FINISH} {way.python}", tree, services)


MAKERS = {"official": _official, "debian": _debian, "host": _host}


def _built(way: Recipe, base: str, script: str, tree: io.BufferedRandom, services: Services) -> ImageInfo:
    """Run a finishing script on an image and keep the result under the recipe's name."""
    ran, info = services.sandbox.build(
        base, ["sh", "-c", script], way.name, limits=services.build_limits(), tree=tree,
        files={FINISH: catalog.text("finish.sh").encode()},
        env={"DEBIAN_FRONTEND": "noninteractive", **services.settings.inherited_environment()},
        keep_env=ENV, labels=way.labels, network=way.kind == "official",
    )  # fmt: skip
    if info is None:
        raise Transient(f"the base {way.name} could not be finished: {ran.output[-400:].strip()}")
    return info


def _found(way: Recipe, services: Services) -> ImageInfo:
    info = services.sandbox.image(way.name)
    if info is None:
        raise Transient(f"the image {way.name} was imported and is not there")
    return info


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755
    return entry
