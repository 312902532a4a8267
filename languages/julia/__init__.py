"""Julia: packages with test/runtests.jl; packages from the General registry."""

from __future__ import annotations

from languages.base import Framework, Language, read_packaged_file
from languages.habits import Habits
from languages.julia.plan import FRAMEWORK, create_draft, find_project_folder, render_plan
from languages.julia.releases import DEFAULT, RELEASES
from languages.julia.tests import TEST_FILE, list_test_files
from languages.loading import LoadHook, append_code, quote_interpolated
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return the files with tests that test/runtests.jl includes; with a plan those of its package."""
    return list_test_files(tree, plan.test.folder if plan else find_project_folder(tree, ()))


JULIA = Language(
    name="julia",
    title="Julia",
    suffixes=(".jl",),
    test_patterns=(TEST_FILE, r"(^|/)test/(Julia)?(Project|Manifest)\.toml$"),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name=FRAMEWORK,
            shell=read_packaged_file("languages.julia", "julia.sh.j2"),
            report="lines",
        ),
    ),
    fallbacks=(select_next_version,),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    load_hook=LoadHook(suffixes=(".jl",), write=append_code('\nrun(Cmd(["sh", "-c", {}]))\n', quote_interpolated("$"))),
    habits=Habits(
        test_commands=r"julia .*(test|runtests)\S*",
        output=r"\bprintln\(|@show\b",
        output_example='println("here")',
    ),
)
