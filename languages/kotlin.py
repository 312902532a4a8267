"""Kotlin: JUnit, TestNG and kotlin.test through Maven or Gradle, in the images of Java."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from languages import parsing
from languages.habits import Habits
from languages.java import JAVA
from languages.jvm import plan, tests
from languages.jvm.loading import KOTLIN_HOOK
from languages.rewriting import Rewrites
from languages.signatures import SignatureSyntax

KOTLIN = replace(
    JAVA,
    name="kotlin",
    title="Kotlin",
    suffixes=(".kt", ".kts"),
    test_command="gradle test",
    syntaxes=(parsing.KOTLIN,),
    test_patterns=tests.test_source_patterns("kt"),
    test_file_pattern=tests.test_file_pattern("kt"),
    create_draft=partial(plan.create_draft, "kotlin", "kt"),
    find_test_files=partial(tests.find_test_files, "kt"),
    rewrites=Rewrites(),
    signatures=SignatureSyntax(),
    load_hook=KOTLIN_HOOK,
    counters=None,
    habits=Habits(
        test_commands=r"(\S*/)?(mvnw?|gradlew?)( \S+)* (test|check|verify|build)",
        output=r"\bprintln\(",
        output_example='println("here")',
    ),
)
