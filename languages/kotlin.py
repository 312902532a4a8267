"""Kotlin: JUnit, TestNG and kotlin.test through Maven or Gradle, files by their reports."""

from __future__ import annotations

from languages.base import Fallback
from languages.draft import Context, Draft
from languages.jvm import plan as shared
from languages.jvm import tests
from languages.jvm.frameworks import FRAMEWORKS
from languages.jvm.plan import SWITCHES, render
from languages.jvm.releases import DEFAULT, RELEASES
from languages.tree import Tree
from taskdb.records import BuildPlan

__all__ = ["DEFAULT", "FRAMEWORKS", "RELEASES", "SWITCHES", "render"]

NAME, TITLE = "kotlin", "Kotlin"
SUFFIXES = (".kt", ".kts")
TEST_PATTERNS = tests.in_test_folder("kt")
RUNNER_PATTERNS = (r"(^|/)junit-platform\.properties$", r"(^|/)testng\.xml$", r"(^|/)\.mvn/")
CONFIG_PATTERNS = (r"(^|/)pom\.xml$", r"(^|/)([^/]+\.gradle(\.kts)?|gradle\.properties)$")
TEST_FILE = tests.test_file("kt")
KEPT_FOLDERS: tuple[str, ...] = ()
PATH: tuple[str, ...] = ()
FALLBACKS: tuple[Fallback, ...] = (shared.next_jdk,)


def draft(tree: Tree, context: Context) -> Draft:
    """All choices for the tree; raises NoPlanError where there are none."""
    return shared.draft(NAME, "kt", tree, context)


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files that define tests; with a plan those of its modules that Surefire takes in."""
    return tests.defining_files(tree, "kt", plan)
