"""A BuildPlan as a Dockerfile, for bundles: the same steps in the same order as the layers mergemill makes itself.

It needs an official image, the tree as an archive, and `finish.sh` and `settle.sh` of this folder. A plan is data, so
whoever can read plans can render them: this package is below all stages.
"""

from __future__ import annotations

import shlex
import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2

from languages.registry import language

if TYPE_CHECKING:
    from languages.base import Release
    from taskdb.records import BuildPlan

UV_VERSION = "0.13.9"
"""The uv that a rendered Dockerfile installs where its base has none."""


def text(name: str) -> str:
    """A file of this folder."""
    return resources.files("dockerfiles").joinpath(name).read_text(encoding="utf-8")


def pinned(image: str) -> str:
    """An image by digest where the catalog has one, else by its tag."""
    digest = _catalog()["digests"].get(image)
    return f"{image.partition(':')[0]}@{digest}" if digest else image


def base_packages() -> tuple[str, ...]:
    """Debian packages of every base."""
    return tuple(_catalog()["packages"]["debian"])


def official_image(plan: BuildPlan) -> str:
    """The official image for the plan's language and version, by digest where the catalog has one."""
    return pinned(_release(plan).official)


def _release(plan: BuildPlan) -> Release:
    return next(one for one in language(plan.language).RELEASES if one.version == plan.language_version)


def render(plan: BuildPlan, *, name: str, base: str, tree: str) -> str:
    """The Dockerfile of a plan.

    Args:
        plan: what to build.
        name: of the task, for the first line.
        base: image to start from; the build argument BASE replaces it.
        tree: name of the archive (.tar, .tar.gz) of the base tree, beside the Dockerfile.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(text), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,  # noqa: S701 - a Dockerfile, not HTML
    )  # fmt: skip
    environment.filters |= {"env": _env_word, "sh": shlex.quote}
    return environment.get_template("environment.Dockerfile.j2").render(
        plan=plan, name=name, base=base, tree=tree, packages=base_packages(), uv=UV_VERSION,
        release=_release(plan), path=language(plan.language).PATH,
    )  # fmt: skip


def _env_word(value: str) -> str:
    """A value as ENV takes it: quoted, without substitution."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


@cache
def _catalog() -> dict[str, Any]:
    return tomllib.loads(text("catalog.toml"))
