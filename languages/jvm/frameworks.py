"""Test frameworks of JVM projects."""

from __future__ import annotations

from languages.base import Framework, read_packaged_file
from languages.jvm.tests import CANARY
from languages.repetition import TestPrograms

FRAMEWORKS = (
    Framework(
        name="gradle",
        report="jvm",
        canary=CANARY,
        shell=read_packaged_file("languages.jvm", "gradle.sh.j2"),
    ),
    Framework(
        name="maven",
        report="jvm",
        canary=CANARY,
        shell=read_packaged_file("languages.jvm", "maven.sh.j2"),
        programs=TestPrograms(tests=r".*\.java::[\w:]+"),
    ),
)
