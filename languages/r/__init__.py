"""R: packages with testthat; packages from a snapshot of CRAN or from Debian packages."""

from __future__ import annotations

from collections.abc import Sequence

from languages.base import Canary, Framework, Language, read_packaged_file
from languages.habits import Habits
from languages.loading import LoadHook, append_code
from languages.r.plan import FRAMEWORK, TEST_FILE, create_draft, list_test_files, render_plan
from languages.r.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH_DESCRIPTION, use_debian_packages
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan


def _name_canary(_files: Sequence[str]) -> str:
    return '"test-of-$word.R"'


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files `tests/testthat/test*.R`; with a plan those of its package."""
    return list_test_files(tree, plan.test.folder if plan else "")


R = Language(
    name="r",
    title="R",
    suffixes=(".r",),
    test_patterns=(TEST_FILE,),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name=FRAMEWORK,
            shell=read_packaged_file("languages.r", "testthat.sh.j2"),
            report="lines",
            canary=Canary(
                name=_name_canary,
                body=r"""printf 'test_that("is %s", {\n  expect_equal(3 * 4, %s)\n})\n' "$word" "$sum" """.rstrip(),
            ),
        ),
    ),
    switches={DEBIAN_PACKAGES: SWITCH_DESCRIPTION},
    fallbacks=(use_debian_packages, select_next_version),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    exploit_files={".Rprofile": b"quit(status = 0)\n"},
    load_hook=LoadHook(suffixes=(".R", ".r"), write=append_code("\nsystem({})\n")),
    habits=Habits(
        test_commands=r"Rscript .*test\S*|R CMD check",
        output=r"\b(print|cat)\(",
        output_example='print("here")',
    ),
)
