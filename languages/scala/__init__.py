"""Scala: tests of sbt builds, with the test framework of the project, on the JDKs of Java."""

from __future__ import annotations

from languages.base import Framework, Language, read_packaged_file
from languages.habits import Habits
from languages.jvm.plan import select_next_jdk
from languages.jvm.releases import DEFAULT, RELEASES
from languages.scala.loading import HOOK
from languages.scala.plan import FRAMEWORK, create_draft, find_test_files, render_plan
from languages.scala.tests import CANARY, TEST_FILE

SCALA = Language(
    name="scala",
    title="Scala",
    suffixes=(".scala",),
    test_patterns=(r"(^|/)src/(test|it)/", r"^([^/]+/)?test/.*\.scala$"),
    runner_patterns=(r"(^|/)\.sbtopts$", r"(^|/)\.jvmopts$"),
    config_patterns=(r"(^|/)[^/]+\.sbt$", r"^([^/]+/)?project/([^/]+\.scala|build\.properties)$"),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name=FRAMEWORK,
            shell=read_packaged_file("languages.scala", "sbt.sh.j2"),
            report="jvm",
            canary=CANARY,
        ),
    ),
    fallbacks=(select_next_jdk,),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    exploit_files={".sbtopts": b"-Dsbt.version=0\n"},
    load_hook=HOOK,
    habits=Habits(
        test_commands=r"sbt .*test|(\S*/)?mill .*test",
        output=r"\bprintln\(",
        output_example='println("here")',
    ),
)
