"""Dockerfiles of BuildPlans, for bundles, with the same steps in the same order as the layers that mergemill makes.

A rendered Dockerfile needs an official image, the tree as an archive, and `finish.sh` and `clean_tree.sh` of this
folder. The package is below all stages, so that every stage can render a plan.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from core.templates import make_environment
from languages.registry import get_language

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2

    from languages.base import Release
    from taskdb.records import BuildPlan

REVIEW_BASE = "python:3.12-slim-bookworm"
"""Official image from which the environment of a review starts."""
UV_VERSION = "0.13.9"
"""Version of uv that a rendered Dockerfile installs if its base has none."""
LIBRARY = """$({python} -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"""
UNCOMPILED_PATHS = "/(tests?|idlelib|site-packages)/"
"""Folders of a standard library that test runners do not import; some have files that no Python can compile."""


@cache
def read_resource(name: str) -> str:
    """Return the text of a file in this folder."""
    return resources.files("dockerfiles").joinpath(name).read_text(encoding="utf-8")


def pin_image(image: str) -> str:
    """Return the reference of an image, by digest where the catalog has a digest, else by its tag."""
    digest = _load_catalog()["digests"].get(image)
    return f"{image.partition(':')[0]}@{digest}" if digest else image


def list_base_packages() -> tuple[str, ...]:
    """Return the Debian packages of every base."""
    return tuple(_load_catalog()["packages"]["debian"])


def render_library_compilation(python: str) -> str:
    """Return the shell command that compiles the standard library of an interpreter to bytecode.

    Only Debian's packages come with bytecode. The tests' user cannot write it, so each test process would compile every
    module that it imports. `python`: the interpreter, as a word of the shell.
    """
    library = LIBRARY.format(python=python)
    return f"{{ {python} -m compileall -q -x '{UNCOMPILED_PATHS}' \"{library}\" > /dev/null || true; }}"


def find_official_image(plan: BuildPlan) -> str:
    """Return the official image for the plan's language and version, by digest where the catalog has a digest."""
    return pin_image(_find_release(plan).official)


def _find_release(plan: BuildPlan) -> Release:
    return next(release for release in get_language(plan.language).releases if release.version == plan.language_version)


def render_dockerfile(plan: BuildPlan, *, name: str, base: str, tree: str) -> str:
    """Return the Dockerfile of a plan.

    Args:
        plan: the plan to build.
        name: name of the task, for the first line.
        base: image to start from; the build argument BASE replaces it.
        tree: name of the archive (.tar, .tar.gz) of the base tree, beside the Dockerfile.
    """
    return _load_template("environment.Dockerfile.j2").render(
        plan=plan,
        name=_make_comment(name),
        base=base,
        tree=tree,
        packages=list_base_packages(),
        uv=UV_VERSION,
        release=_find_release(plan),
        path=get_language(plan.language).bin_folders,
        compile_library=render_library_compilation('"$PYTHON"'),
    )


def render_review_dockerfile(*, name: str, archive: str, folder: str, trees: Mapping[str, str]) -> str:
    """Return the Dockerfile of a review, whose environment is the material alone.

    Args:
        name: name of the task, for the first line.
        archive: name of the archive (.tar, .tar.gz) of the material, beside the Dockerfile.
        folder: folder where the material is unpacked.
        trees: folder -> name of the archive of the tree that is unpacked there, with the owners of the archive.
    """
    return _load_template("review.Dockerfile.j2").render(
        name=_make_comment(name), base=pin_image(REVIEW_BASE), archive=archive, folder=folder, trees=trees
    )


@cache
def _load_template(name: str) -> jinja2.Template:
    """Return a template of this folder, compiled once: compiling takes as long as everything else of an export."""
    environment = make_environment(read_resource)
    environment.filters["env"] = _quote_env_value
    return environment.get_template(name)


def _make_comment(text: str) -> str:
    """Return a text that stays on its line."""
    return "".join(character if character.isprintable() else " " for character in text)


def _quote_env_value(value: str) -> str:
    """Return a value quoted for ENV, without substitution."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


@cache
def _load_catalog() -> dict[str, Any]:
    return tomllib.loads(read_resource("catalog.toml"))
