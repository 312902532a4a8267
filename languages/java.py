"""Java: JUnit and TestNG through Maven or Gradle."""

from __future__ import annotations

from functools import partial

from languages import parsing
from languages.base import Language
from languages.controls import ControlSites
from languages.habits import Habits
from languages.jvm import plan, tests
from languages.jvm.counters import COUNTERS
from languages.jvm.frameworks import FRAMEWORKS
from languages.jvm.loading import JAVA_HOOK
from languages.jvm.releases import DEFAULT, RELEASES
from languages.messages import PATTERN_CALLS, MessageChecks
from languages.rewriting import SIGNS, Rewrites
from languages.signatures import SignatureSyntax
from languages.weak_tests import WeakTestSyntax

JAVA = Language(
    name="java",
    title="Java",
    suffixes=(".java",),
    test_patterns=tests.test_source_patterns("java"),
    runner_patterns=(r"(^|/)junit-platform\.properties$", r"(^|/)testng\.xml$", r"(^|/)\.mvn/"),
    config_patterns=(r"(^|/)pom\.xml$", r"(^|/)([^/]+\.gradle(\.kts)?|gradle\.properties)$"),
    test_file_pattern=tests.test_file_pattern("java"),
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=FRAMEWORKS,
    switches=plan.SWITCHES,
    fallbacks=(plan.select_changed_modules, plan.select_translation, plan.select_next_jdk),
    excluding_options=(r"^-D(skip|maven\.test|test=|it\.test|surefire\.(skip|exclude)|fail)",),
    version_files=(r"(^|/)(pom\.xml|build\.gradle(\.kts)?)$",),
    create_draft=partial(plan.create_draft, "java", "java"),
    render_plan=plan.render_plan,
    find_test_files=partial(tests.find_test_files, "java"),
    test_command="mvn -q test",
    syntaxes=(parsing.JAVA,),
    controls=ControlSites(
        exceptions=(
            "IllegalArgumentException",
            "IllegalStateException",
            "UnsupportedOperationException",
            "NullPointerException",
        )
    ),
    weak_tests=WeakTestSyntax(
        skips=r"\bassum(e|ing)\w*$|\b(Enabled|Disabled)If\w*",
        lookups=r"\bClass\.forName\(|\bisPresent\(|\bServiceLoader\b|\bwhich\(",
        missing=r"\b(ClassNotFoundException|NoClassDefFoundError)\b",
    ),
    messages=MessageChecks(pattern_calls=rf"{PATTERN_CALLS}|hasMessageMatching"),
    signatures=SignatureSyntax(are_types_first=True),
    rewrites=Rewrites(signs=SIGNS),
    exploit_files={
        ".mvn/maven.config": b"-DskipTests\n",
        ".mvn/jvm.config": b"-Dmaven.test.failure.ignore=true\n",
        "gradle.properties": b"org.gradle.jvmargs=-Dignore=true\n",
    },
    exploit_programs=("mvn",),
    load_hook=JAVA_HOOK,
    counters=COUNTERS,
    habits=Habits(
        test_commands=r"(\S*/)?(mvnw?|gradlew?)( \S+)* (test|check|verify|build)",
        output=r"\bSystem\.(out|err)\.print",
        output_example='System.out.println("here");',
    ),
)
