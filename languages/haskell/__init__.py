"""Haskell: test suites of cabal packages, with hspec and tasty; libraries from Hackage or from Debian packages."""

from __future__ import annotations

from languages.base import Framework, Language, read_packaged_file
from languages.habits import Habits
from languages.haskell.plan import FRAMEWORK, TEST_FILE, create_draft, find_project_folder, list_test_files, render_plan
from languages.haskell.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH_DESCRIPTION, use_debian_packages
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return the main files of test suites and specs of hspec-discover; with a plan those of its package."""
    return list_test_files(tree, plan.test.folder if plan else find_project_folder(tree, ()))


HASKELL = Language(
    name="haskell",
    title="Haskell",
    suffixes=(".hs", ".lhs"),
    test_patterns=(r"(^|/)(test|spec|unit)/.*\.l?hs$", r"(^|/)[^/]*Spec\.l?hs$"),
    runner_patterns=(r"(^|/)\.hspec(-\w+)?$",),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name=FRAMEWORK,
            shell=read_packaged_file("languages.haskell", "cabal.sh.j2"),
            report="lines",
        ),
    ),
    switches={DEBIAN_PACKAGES: SWITCH_DESCRIPTION},
    fallbacks=(use_debian_packages, select_next_version),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    exploit_files={".hspec": b"--dry-run\n"},
    habits=Habits(
        test_commands=r"(cabal|stack) (\S+ )*test",
        output=r"\b(putStrLn|traceShow|trace)\b",
        output_example="traceShow 1 $",
    ),
)
