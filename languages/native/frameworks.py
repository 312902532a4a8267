"""How the tests of C and C++ projects are started."""

from __future__ import annotations

from importlib import resources

from languages.base import Framework


def _shell(name: str) -> str:
    return resources.files("languages.native").joinpath(name).read_text(encoding="utf-8")


FRAMEWORKS = (
    Framework(name="ctest", shell=_shell("ctest.sh.j2"), report="ctest"),
    Framework(name="googletest", shell=_shell("ctest.sh.j2"), report="googletest"),
    Framework(name="meson", shell=_shell("meson.sh.j2"), report="junit"),
    Framework(name="automake", shell=_shell("automake.sh.j2"), report="lines"),
)
"""Canaries there are none: a build takes in no file that it does not name."""
