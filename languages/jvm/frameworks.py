"""Test frameworks of JVM projects."""

from __future__ import annotations

from importlib import resources

from languages.base import Framework
from languages.jvm.tests import CANARY

FRAMEWORKS = (
    Framework(
        name="gradle",
        report="jvm",
        canary=CANARY,
        shell=resources.files("languages.jvm").joinpath("gradle.sh.j2").read_text(encoding="utf-8"),
    ),
    Framework(
        name="maven",
        report="jvm",
        canary=CANARY,
        shell=resources.files("languages.jvm").joinpath("maven.sh.j2").read_text(encoding="utf-8"),
    ),
)
