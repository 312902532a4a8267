"""Base images: found, or made from a registry's official image, from Debian, or from an interpreter of this machine.

A base's name is the hash of its recipe, so an image that is there is the right one. `ensure_base` is the way in.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shlex
import tarfile
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version

import uv

from backends.sandbox.base import ImageInfo
from backends.services import Services
from builders import catalog, interpreters
from builders.borrowed import borrowed
from builders.debootstrap import Finishing, can_debootstrap, root_file_system
from dockerfiles.render import text
from languages.base import Release
from languages.draft import Draft
from languages.registry import language as known_language
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
STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOVING_SUITES = frozenset({"sid"})
"""Debian releases that change from day to day."""
PLAIN = "debian"
"""What a base is called that carries no language yet: toolchains are laid on it."""
PULL_SECONDS = 10.0
"""How long a registry may take to give its first answer."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to make a base. `kind` is official, debian or host; `source` the image, the suite or the interpreter."""

    language: str
    version: str
    kind: str
    source: str
    release: Release
    python: str = ""
    """Path of the interpreter in the box, for Python."""

    @property
    def name(self) -> str:
        """The image's name."""
        contents = [
            self.kind, self.source, self.python, text("finish.sh"), catalog.packages(self.release), self.env,
            installed_version("uv"), self.release.toolchain, self.release.probe,
        ]  # fmt: skip
        key = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:12]
        word = self.language.replace("+", "p")  # a tag has no plus
        return f"{REPOSITORY}:{word}{self.version}-{self.kind}-{key}"

    @property
    def env(self) -> dict[str, str]:
        """The image's environment."""
        return environment(self.language)

    @property
    def labels(self) -> dict[str, str]:
        """What the image says of itself."""
        return {
            LABEL: f"{self.language}{self.version}",
            PYTHON_LABEL: self.python,
            RECIPE_LABEL: f"{self.kind}:{self.source}",
        }


def environment(language: str) -> dict[str, str]:
    """The environment of a language's boxes."""
    folders = () if language == PLAIN else known_language(language).PATH
    return {"LANG": "C.UTF-8", "PATH": ":".join([*folders, STANDARD_PATH])}


def recipes(language: str, release: Release, base_source: str) -> tuple[Recipe, ...]:
    """The ways to make a base, best first. What this machine cannot do is not among them.

    Debian's own interpreter comes before one of this machine where the base for that has to be made anyway.
    """
    python = language == "python"
    official = Recipe(
        language=language, version=release.version, kind="official", source=catalog.official_image(release),
        release=release, python=f"/usr/local/bin/python{release.version}" if python else "",
    )  # fmt: skip
    if base_source == "registry":
        return (official,)
    ways = []
    if can_debootstrap() is None:
        host = _host_recipe(release) if python else None
        own = _debian_recipe(language, release) if release.suite else None
        ways = [way for way in (own, host) if way]
        if release.suite != interpreters.debian_suite():
            ways.reverse()
    return tuple(ways) if base_source == "debian" else (official, *ways)


def _debian_recipe(language: str, release: Release) -> Recipe:
    python = f"/usr/bin/python{release.version}" if language == "python" else ""
    return Recipe(
        language=language, version=release.version, kind="debian", source=release.suite or "", release=release,
        python=python,
    )  # fmt: skip


def _host_recipe(release: Release) -> Recipe | None:
    interpreter = interpreters.found().get(release.version)
    if interpreter is None or _carrier(interpreter) is None:
        return None
    source = f"{interpreter.prefix}@{release.version}.{interpreter.patch}"
    return Recipe(
        language="python", version=release.version, kind="host", source=source, release=release,
        python=interpreter.python,
    )  # fmt: skip


def _carrier(interpreter: interpreters.Interpreter) -> Release | None:
    """The release whose Debian base can take the interpreter in."""
    suite = "bookworm" if interpreter.standalone else interpreters.debian_suite()
    return next((one for one in catalog.releases("python") if one.suite == suite), None)


def available(language: str, services: Services) -> tuple[str, ...]:
    """Versions for which a base is here or can be made on this machine, oldest first.

    Whether a registry answers is tried once, by asking for the default version's image.
    """
    return tuple(
        one.version
        for one in catalog.releases(language)
        if _open_ways(language, one, services) or existing(language, one, services)
    )


def moving(language: str, services: Services) -> frozenset[str]:
    """Versions that this machine can only take from a Debian release that changes from day to day."""
    ways = {one.version: _open_ways(language, one, services) for one in catalog.releases(language)}
    return frozenset(v for v, open_ways in ways.items() if open_ways and open_ways[0].source in MOVING_SUITES)


def _open_ways(language: str, release: Release, services: Services) -> list[Recipe]:
    source = services.settings.base_source
    registry = source == "registry" or (source == "auto" and _registry_answers(language, services))
    return [way for way in recipes(language, release, source) if registry or way.kind != "official"]


def _registry_answers(language: str, services: Services) -> bool:
    image = catalog.official_image(catalog.release(language, catalog.default(language)))
    sandbox = services.sandbox
    return sandbox.image(image) is not None or sandbox.pull(image, seconds=PULL_SECONDS)


def existing(language: str, release: Release, services: Services) -> ImageInfo | None:
    """The base for a release that is here already, or None."""
    ways = recipes(language, release, services.settings.base_source)
    return next((info for way in ways if (info := services.sandbox.image(way.name))), None)


def bootstrap(language: str, versions: tuple[str, ...] | None, services: Services) -> list[ImageInfo]:
    """Bases for these versions, or the language's default. Raises as `ensure_base` does."""
    return [ensure_base(language, version, services) for version in versions or (catalog.default(language),)]


def ensure_base(language: str, version: str, services: Services) -> ImageInfo:
    """The base image, made when it is not there yet; one process at a time makes it, others of the engine wait.

    Raises:
        InputError: the catalog does not know language or version.
        MachineError: this machine can neither pull nor make it.
        Transient: the network or the engine failed.
    """
    release = catalog.release(language, version)
    if here := existing(language, release, services):
        return here
    with services.sandbox.lock(f"base-{language}{version}"):
        if here := existing(language, release, services):
            return here
        for way in recipes(language, release, services.settings.base_source):
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
    script = f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {install} && {_finishing(way)}"
    with tempfile.TemporaryFile() as tree:
        with tarfile.open(fileobj=tree, mode="w") as tar:
            tar.add(uv.find_uv_bin(), UV_PATH.lstrip("/"), filter=_as_root)
        tree.seek(0)
        return _built(way, way.source, script, tree, services, network=True)


def _debian(way: Recipe, services: Services) -> ImageInfo:
    """Make the suite, finish it and import it as one layer; two who need it at once make it once.

    A toolchain from a package registry is laid on a plain base of the suite.
    """
    with services.sandbox.lock(way.name):
        if here := services.sandbox.image(way.name):
            return here
        if way.release.toolchain:
            return _with_toolchain(way, services)
        packages = catalog.packages(way.release)
        finishing = Finishing(script=text("finish.sh"), arguments=(way.release.probe, way.python))
        with root_file_system(way.source, packages, uv.find_uv_bin(), finishing) as tar:
            services.sandbox.import_rootfs(tar, way.name, env=way.env, labels=way.labels)
        return _found(way, services)


def _with_toolchain(way: Recipe, services: Services) -> ImageInfo:
    """The suite with the release's packages, shared by all languages that ask for the same, then the toolchain."""
    plain = replace(way.release, version="", toolchain="", probe="true")
    under = replace(way, language=PLAIN, version=f"-{way.source}", release=plain)
    _debian(under, services)
    return _built(way, under.name, f"{{ {way.release.toolchain}\n}} && {_finishing(way)}", None, services, network=True)


def _host(way: Recipe, services: Services) -> ImageInfo | None:
    """Lay an interpreter of this machine on the base of its Debian release."""
    interpreter = interpreters.found()[way.version]
    carrier = _carrier(interpreter)
    if carrier is None or carrier.suite is None:
        return None
    under = _debian_recipe("python", carrier)
    _debian(under, services)
    with tempfile.TemporaryFile() as tree:
        interpreters.write_tar(interpreter, tree)
        tree.seek(0)
        return _built(way, under.name, _finishing(way), tree, services)


MAKERS = {"official": _official, "debian": _debian, "host": _host}


def _finishing(way: Recipe) -> str:
    return shlex.join(["sh", FINISH, way.release.probe, way.python])


def _built(
    way: Recipe, base: str, script: str, tree: io.BufferedRandom | None, services: Services, *, network: bool = False
) -> ImageInfo:
    """Run a finishing script on an image and keep the result under the recipe's name."""
    files, borrowed_env = borrowed(services.settings)
    ran, info = services.sandbox.build(
        base, ["sh", "-c", script], way.name, limits=services.build_limits(), tree=tree,
        files={FINISH: text("finish.sh").encode(), **files},
        env={"DEBIAN_FRONTEND": "noninteractive", **way.env, **borrowed_env},
        keep_env=way.env, labels=way.labels, network=network,
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


def settled_first(draft: Draft, moving: Collection[str]) -> Draft:
    """Of the versions that the evidence lists, those whose base stays as it is before the `moving` ones."""
    ordered = sorted(draft.versions, key=lambda one: (one.path == "(date)", one.value in moving))
    return replace(draft, versions=tuple(ordered))
