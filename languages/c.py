"""C: CMake, Meson and Autotools; ctest, GoogleTest, Automake's harness."""

from __future__ import annotations

from functools import partial

from languages import parsing
from languages.base import Language
from languages.controls import COMMON_OPPOSITES, ControlSites, pair_words
from languages.habits import Habits
from languages.loading import LoadHook
from languages.native import plan
from languages.native.frameworks import FRAMEWORKS
from languages.native.loading import write_constructor
from languages.native.releases import DEFAULT, RELEASES
from languages.native.tests import RUNNER_PATTERNS, TEST_FILE, TEST_PATTERNS, find_test_files
from languages.weak_tests import WeakTestSyntax

OPPOSITES = pair_words(
    (
        ("EXPECT_EQ", "EXPECT_NE"),
        ("ASSERT_EQ", "ASSERT_NE"),
        ("EXPECT_TRUE", "EXPECT_FALSE"),
        ("ASSERT_TRUE", "ASSERT_FALSE"),
        ("CHECK", "CHECK_FALSE"),
        ("REQUIRE", "REQUIRE_FALSE"),
    )
)
"""Macros of GoogleTest, Catch2 and doctest."""

C = Language(
    name="c",
    title="C",
    suffixes=(".c", ".h"),
    test_patterns=TEST_PATTERNS,
    runner_patterns=RUNNER_PATTERNS,
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=FRAMEWORKS,
    switches=plan.SWITCHES,
    fallbacks=(plan.drop_ci_packages, plan.report_programs, plan.select_next_compiler),
    create_draft=partial(plan.create_draft, "c"),
    render_plan=plan.render_plan,
    find_test_files=find_test_files,
    test_command="make check",
    weak_tests=WeakTestSyntax(
        skips=r"\bGTEST_SKIP\b|\bTEST_IGNORE\w*|^SKIP$",
        lookups=r"\bdlopen\(|\bwhich\b",
    ),
    syntaxes=(parsing.C,),
    controls=ControlSites(opposites={**COMMON_OPPOSITES, **OPPOSITES}, condition_calls=frozenset({"assert"})),
    exploit_files={"CTestCustom.cmake": b'set(CTEST_CUSTOM_TESTS_IGNORE ".*")\n'},
    load_hook=LoadHook(suffixes=(".c", ".h"), write=write_constructor),
    habits=Habits(
        output=r"\bprintf\(",
        output_example='printf("here\\n");',
    ),
)
