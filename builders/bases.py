"""Base images, made from a registry's official image, from Debian, or from an interpreter of this machine.

A base's name contains the hash of its recipe, so an existing image is up to date. `ensure_base` is the entry point.
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

from backends.sandbox.images import ImageInfo
from backends.services import Services
from builders import catalog, interpreters
from builders.debootstrap import FinishScript, find_missing_requirement, open_root_file_system
from builders.host_settings import collect_host_settings
from core.errors import MachineError, Transient
from dockerfiles.render import read_resource, render_library_compilation
from languages.base import Release
from languages.draft import PlanDraft
from languages.registry import get_language as known_language

log = logging.getLogger(__name__)

REPOSITORY = "mergemill/base"
BASE_LABEL = "mergemill.base"
"""Label of every base and of the images made on it: language and version, `python3.11`."""
PYTHON_LABEL = "mergemill.python"
"""Label with the path of the interpreter: `/usr/bin/python3.11`."""
RECIPE_LABEL = "mergemill.recipe"
USER = "mergemill"
UV_PATH = "/usr/local/bin/uv"
FINISH_PATH = "/run/mergemill/finish.sh"
STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ROLLING_SUITES = frozenset({"sid"})
"""Debian releases that change from day to day."""
PLAIN_BASE = "debian"
"""Language in the name of a base without a language, on which toolchains are installed."""
PULL_SECONDS = 10.0
"""Timeout of a registry's first answer."""


@dataclass(frozen=True, kw_only=True)
class BaseRecipe:
    """A method to make a base: official, debian or host. `source` is the image, the suite or the interpreter."""

    language: str
    version: str
    method: str
    source: str
    release: Release
    python: str = ""
    """Path of the interpreter in the container, for languages that have an interpreter."""

    @property
    def name(self) -> str:
        """The image's name."""
        contents = [
            self.method,
            self.source,
            self.python,
            read_resource("finish.sh"),
            catalog.list_packages(self.release),
            self.env,
            installed_version("uv"),
            self.release.toolchain,
            self.release.probe,
            *([self.compilation] if self.compilation else []),
        ]
        # Whatever changes the image's content is part of its name, so an image is never replaced under its name.
        key = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:12]
        # The tag of an image may contain neither `+` nor `#`.
        word = self.language.replace("+", "p").replace("#", "sharp")
        return f"{REPOSITORY}:{word}{self.version}-{self.method}-{key}"

    @property
    def compilation(self) -> str:
        """The command that compiles the interpreter's standard library; empty where Debian's packages have done so."""
        return render_library_compilation(shlex.quote(self.python)) if self.python and self.method != "debian" else ""

    @property
    def env(self) -> dict[str, str]:
        """The image's environment."""
        return build_base_env(self.language)

    @property
    def labels(self) -> dict[str, str]:
        """The image's labels: language, interpreter and recipe."""
        return {
            BASE_LABEL: f"{self.language}{self.version}",
            PYTHON_LABEL: self.python,
            RECIPE_LABEL: f"{self.method}:{self.source}",
        }


def build_base_env(language: str) -> dict[str, str]:
    """Return the environment variables of a language's containers."""
    folders = () if language == PLAIN_BASE else known_language(language).bin_folders
    return {"LANG": "C.UTF-8", "PATH": ":".join([*folders, STANDARD_PATH])}


def list_recipes(language: str, release: Release, base_source: str) -> tuple[BaseRecipe, ...]:
    """Return the recipes that this machine supports, best first."""
    can_bootstrap = find_missing_requirement() is None
    known = list_known_recipes(language, release, base_source)
    return tuple(recipe for recipe in known if can_bootstrap or recipe.method == "official")


def list_known_recipes(language: str, release: Release, base_source: str) -> tuple[BaseRecipe, ...]:
    """Return the recipes of the bases that may exist on the engine, whichever machine made them, best first.

    Debian's own interpreter comes before that of this machine where the base for that has to be made anyway.
    """
    interpreter = _get_interpreter(language, release)
    official = BaseRecipe(
        language=language,
        version=release.version,
        method="official",
        source=catalog.get_official_image(release),
        release=release,
        python=f"/usr/local/bin/{interpreter}" if interpreter else "",
    )
    if base_source == "registry":
        return (official,)
    host = _create_host_recipe(language, release) if interpreter else None
    debian = _create_debian_recipe(language, release) if release.suite else None
    local = [recipe for recipe in (debian, host) if recipe]
    if release.suite != interpreters.detect_debian_suite():
        local.reverse()
    return tuple(local) if base_source == "debian" else (official, *local)


def _get_interpreter(language: str, release: Release) -> str:
    """Return the name of the interpreter's file; empty for languages without an interpreter."""
    return known_language(language).interpreter.format(version=release.version)


def _create_debian_recipe(language: str, release: Release) -> BaseRecipe:
    interpreter = _get_interpreter(language, release)
    return BaseRecipe(
        language=language,
        version=release.version,
        method="debian",
        source=release.suite or "",
        release=release,
        python=f"/usr/bin/{interpreter}" if interpreter else "",
    )


def _create_host_recipe(language: str, release: Release) -> BaseRecipe | None:
    interpreter = interpreters.find_interpreters().get(release.version)
    if interpreter is None or _find_carrier_release(language, interpreter) is None:
        return None
    source = f"{interpreter.prefix}@{release.version}.{interpreter.patch}"
    return BaseRecipe(
        language=language,
        version=release.version,
        method="host",
        source=source,
        release=release,
        python=interpreter.python,
    )


def _find_carrier_release(language: str, interpreter: interpreters.Interpreter) -> Release | None:
    """Return the release on whose Debian base the interpreter runs."""
    suite = "bookworm" if interpreter.standalone else interpreters.detect_debian_suite()
    return next((release for release in catalog.list_releases(language) if release.suite == suite), None)


def list_available_versions(language: str, services: Services) -> tuple[str, ...]:
    """Return the versions for which a base exists or can be made on this machine, oldest first.

    The registry is tested once, by a request for the default version's image.
    """
    return tuple(
        release.version
        for release in catalog.list_releases(language)
        if _list_usable_recipes(language, release, services) or find_existing_base(language, release, services)
    )


def list_rolling_versions(language: str, services: Services) -> frozenset[str]:
    """Return the versions that this machine can only install from a Debian release that changes from day to day."""
    by_version = {
        release.version: _list_usable_recipes(language, release, services)
        for release in catalog.list_releases(language)
    }
    return frozenset(v for v, recipes in by_version.items() if recipes and recipes[0].source in ROLLING_SUITES)


def _list_usable_recipes(language: str, release: Release, services: Services) -> list[BaseRecipe]:
    source = services.settings.host.base_source
    registry = source == "registry" or (source == "auto" and _is_registry_reachable(language, services))
    return [recipe for recipe in list_recipes(language, release, source) if registry or recipe.method != "official"]


def _is_registry_reachable(language: str, services: Services) -> bool:
    image = catalog.get_official_image(catalog.get_release(language, catalog.get_default_version(language)))
    images = services.images
    return images.inspect(image) is not None or images.pull(image, seconds=PULL_SECONDS)


def find_existing_base(language: str, release: Release, services: Services) -> ImageInfo | None:
    """Return the existing base for a release, or None."""
    recipes = list_known_recipes(language, release, services.settings.host.base_source)
    return next((info for recipe in recipes if (info := services.images.inspect(recipe.name))), None)


def ensure_bases(language: str, versions: tuple[str, ...] | None, services: Services) -> list[ImageInfo]:
    """Return bases for these versions, or for the language's default; each is made unless it exists.

    Raises:
        InputError, MachineError, Transient: as `ensure_base`.
    """
    return [
        ensure_base(language, version, services) for version in versions or (catalog.get_default_version(language),)
    ]


def ensure_base(language: str, version: str, services: Services) -> ImageInfo:
    """Return the base image; it is made unless it exists, by a single process of the engine while the others wait.

    Raises:
        InputError: the catalog has no such language or version.
        MachineError: this machine can neither pull nor make it.
        Transient: the network or the engine failed.
    """
    release = catalog.get_release(language, version)
    if existing := find_existing_base(language, release, services):
        return existing
    # Looked up again under the lock: another process may have made it in the meantime.
    with services.images.lock(f"base-{language}{version}"):
        if existing := find_existing_base(language, release, services):
            return existing
        for recipe in list_recipes(language, release, services.settings.host.base_source):
            log.info("making the base for %s %s (%s: %s)", language, version, recipe.method, recipe.source)
            if (image := MAKERS[recipe.method](recipe, services)) is not None:
                log.info("%s is ready", image.name)
                return image
    reason = (
        find_missing_requirement() or f"no registry answers and there is no Debian suite or interpreter for {version}"
    )
    raise MachineError(f"no base image for {language} {version}: {reason}", advice="scripts/setup base")


# --- the three methods -----------------------------------------------------------------------------


def _make_official_base(recipe: BaseRecipe, services: Services) -> ImageInfo | None:
    """Pull the official image and finish it; return None when no registry answers."""
    if services.images.inspect(recipe.source) is None and not services.images.pull(recipe.source, seconds=PULL_SECONDS):
        return None
    install = " ".join(catalog.list_packages())
    packages = f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {install}"
    script = f"{packages} && {_build_finish_command(recipe)}"
    with tempfile.TemporaryFile() as tree:
        with tarfile.open(fileobj=tree, mode="w") as tar:
            tar.add(uv.find_uv_bin(), UV_PATH.lstrip("/"), filter=_set_root_owner)
        tree.seek(0)
        return _build_base_image(recipe, recipe.source, script, tree, services, network=True)


def _make_debian_base(recipe: BaseRecipe, services: Services) -> ImageInfo:
    """Make the suite, finish it and import it as a layer, under a lock so that it is made once.

    A toolchain from a package registry is installed on a plain base of the suite.
    """
    with services.images.lock(recipe.name):
        if existing := services.images.inspect(recipe.name):
            return existing
        if recipe.release.toolchain:
            return _make_toolchain_base(recipe, services)
        packages = catalog.list_packages(recipe.release)
        finishing = FinishScript(script=read_resource("finish.sh"), arguments=(recipe.release.probe, recipe.python))
        with open_root_file_system(recipe.source, packages, uv.find_uv_bin(), finishing) as tar:
            services.images.import_rootfs(tar, recipe.name, env=recipe.env, labels=recipe.labels)
        return _require_image(recipe, services)


def _make_toolchain_base(recipe: BaseRecipe, services: Services) -> ImageInfo:
    """Make the suite with the release's packages, shared by languages with the same ones, then add the toolchain."""
    plain = replace(recipe.release, version="", toolchain="", probe="true")
    suite = replace(recipe, language=PLAIN_BASE, version=f"-{recipe.source}", release=plain)
    _make_debian_base(suite, services)
    script = f"{{ {recipe.release.toolchain}\n}} && {_build_finish_command(recipe)}"
    return _build_base_image(recipe, suite.name, script, None, services, network=True)


def _make_host_base(recipe: BaseRecipe, services: Services) -> ImageInfo | None:
    """Copy an interpreter of this machine onto the base of its Debian release."""
    interpreter = interpreters.find_interpreters()[recipe.version]
    carrier = _find_carrier_release(recipe.language, interpreter)
    if carrier is None or carrier.suite is None:
        return None
    suite = _create_debian_recipe(recipe.language, carrier)
    _make_debian_base(suite, services)
    with tempfile.TemporaryFile() as tree:
        interpreters.write_tar(interpreter, tree)
        tree.seek(0)
        return _build_base_image(recipe, suite.name, _build_finish_command(recipe), tree, services)


MAKERS = {"official": _make_official_base, "debian": _make_debian_base, "host": _make_host_base}


def _build_finish_command(recipe: BaseRecipe) -> str:
    command = shlex.join(["sh", FINISH_PATH, recipe.release.probe, recipe.python])
    return f"{command} && {recipe.compilation}" if recipe.compilation else command


def _build_base_image(
    recipe: BaseRecipe,
    base: str,
    script: str,
    tree: io.BufferedRandom | None,
    services: Services,
    *,
    network: bool = False,
) -> ImageInfo:
    """Run a finishing script on an image and commit the result under the recipe's name."""
    files, host_env = collect_host_settings(services.settings.host)
    result, info = services.images.build(
        base,
        ["sh", "-c", script],
        recipe.name,
        limits=services.build_limits(),
        tree=tree,
        files={FINISH_PATH: read_resource("finish.sh").encode(), **files},
        env={"DEBIAN_FRONTEND": "noninteractive", **recipe.env, **host_env},
        keep_env=recipe.env,
        labels=recipe.labels,
        network=network,
    )
    if info is None:
        raise Transient(f"the base {recipe.name} could not be finished: {result.output[-400:].strip()}")
    return info


def _require_image(recipe: BaseRecipe, services: Services) -> ImageInfo:
    info = services.images.inspect(recipe.name)
    if info is None:
        raise Transient(f"the image {recipe.name} is missing after its import")
    return info


def _set_root_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    # The owner on this machine would be an unknown user in the image.
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755
    return entry


def prefer_stable_versions(draft: PlanDraft, rolling: Collection[str]) -> PlanDraft:
    """Return the draft with its versions reordered: those of the evidence first, `rolling` versions last among them."""
    ordered = sorted(draft.versions, key=lambda version: (version.path == "(date)", version.value in rolling))
    return replace(draft, versions=tuple(ordered))
