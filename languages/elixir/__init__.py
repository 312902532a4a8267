"""Elixir: ExUnit by mix; packages from Hex as pinned by the lock file."""

from __future__ import annotations

from collections.abc import Sequence

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.controls import COMMON_OPPOSITES, ControlSites, pair_words
from languages.elixir.plan import COMPILE, TEST_FILE, create_draft, drop_compile, list_test_files, render_plan
from languages.elixir.releases import DEFAULT, RELEASES
from languages.habits import Habits
from languages.loading import LoadHook, append_code, quote_interpolated
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH_DESCRIPTION, use_debian_packages
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan


def _name_canary(_files: Sequence[str]) -> str:
    return '"of_${word}_test.exs"'


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files `*_test.exs`; with a plan those of its project."""
    return list_test_files(tree, plan.test.folder if plan else "")


ELIXIR = Language(
    name="elixir",
    title="Elixir",
    suffixes=(".ex", ".exs"),
    test_patterns=(r"(^|/)test/.*\.(exs?|eex|heex|json|txt)$", TEST_FILE),
    runner_patterns=(r"(^|/)test_helper\.exs$",),
    test_file_pattern=TEST_FILE,
    kept_folders=("deps", "_build"),
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="exunit",
            shell=read_packaged_file("languages.elixir", "exunit.sh.j2"),
            report="exunit",
            canary=Canary(
                name=_name_canary,
                body=r"""printf 'defmodule Of%sTest do\n  use ExUnit.Case\n  test "is %s" do\n"""
                r"""    assert 3 * 4 == %s\n  end\nend\n' "$word" "$word" "$sum" """.rstrip(),
            ),
        ),
    ),
    switches={
        DEBIAN_PACKAGES: SWITCH_DESCRIPTION,
        COMPILE: "the project is compiled before the tests",
    },
    fallbacks=(select_next_version, drop_compile, use_debian_packages),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    test_command="mix test",
    syntaxes=(parsing.ELIXIR,),
    controls=ControlSites(
        condition_calls=frozenset({"assert"}),
        opposites={**COMMON_OPPOSITES, **pair_words((("assert", "refute"),))},
        exceptions=("ArgumentError", "RuntimeError", "KeyError", "ArithmeticError"),
    ),
    exploit_files={".iex.exs": b"System.halt(0)\n"},
    load_hook=LoadHook(
        suffixes=(".ex", ".exs"),
        write=append_code('\nSystem.cmd("sh", ["-c", {}])\n', quote_interpolated("#")),
    ),
    habits=Habits(
        test_commands=r"mix test",
        output=r"\bIO\.(puts|inspect)\b",
        output_example='IO.puts("here")',
    ),
)
