"""Test frameworks of C and C++ projects."""

from __future__ import annotations

from languages.base import Framework, read_packaged_file


def _read_template(name: str) -> str:
    return read_packaged_file("languages.native", name)


FRAMEWORKS = (
    Framework(name="ctest", shell=_read_template("ctest.sh.j2"), report="ctest"),
    Framework(name="googletest", shell=_read_template("ctest.sh.j2"), report="googletest"),
    Framework(name="catch2", shell=_read_template("ctest.sh.j2"), report="cases"),
    Framework(name="programs", shell=_read_template("ctest.sh.j2"), report="cases"),
    Framework(name="meson", shell=_read_template("meson.sh.j2"), report="meson"),
    Framework(name="automake", shell=_read_template("automake.sh.j2"), report="lines"),
    Framework(name="make", shell=_read_template("make.sh.j2"), report="make"),
)
"""None of them supports canaries: a build compiles only files that it lists."""
