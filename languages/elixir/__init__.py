"""Elixir: ExUnit by mix; packages from Hex as the lock file has them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from languages.base import Canary, Fallback, Framework
from languages.elixir.plan import COMPILE, TEST_FILE, draft, render, test_files, without_compile
from languages.elixir.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH, debian_packages
from languages.scripting.versions import next_version
from languages.tree import Tree
from taskdb.records import BuildPlan

__all__ = [
    "CONFIG_PATTERNS",
    "DEFAULT",
    "FALLBACKS",
    "FRAMEWORKS",
    "KEPT_FOLDERS",
    "NAME",
    "PATH",
    "RELEASES",
    "RUNNER_PATTERNS",
    "SUFFIXES",
    "SWITCHES",
    "TEST_FILE",
    "TEST_PATTERNS",
    "TITLE",
    "defining_files",
    "draft",
    "render",
]  # fmt: skip

NAME, TITLE = "elixir", "Elixir"
SUFFIXES = (".ex", ".exs")
TEST_PATTERNS = (r"(^|/)test/.*\.(exs?|eex|heex|json|txt)$", TEST_FILE)
RUNNER_PATTERNS = (r"(^|/)test_helper\.exs$",)
CONFIG_PATTERNS: tuple[str, ...] = ()
KEPT_FOLDERS = ("deps", "_build")
PATH: tuple[str, ...] = ()
SWITCHES = {DEBIAN_PACKAGES: SWITCH, COMPILE: "the project is compiled before the tests, so that a run starts warm"}
FALLBACKS: tuple[Fallback, ...] = (next_version, without_compile, debian_packages)


def _name(_files: Sequence[str]) -> str:
    return '"of_${word}_test.exs"'


FRAMEWORKS = (
    Framework(
        name="exunit",
        shell=resources.files("languages.elixir").joinpath("exunit.sh.j2").read_text(encoding="utf-8"),
        report="exunit",
        canary=Canary(
            name=_name,
            body=r"""printf 'defmodule Of%sTest do\n  use ExUnit.Case\n  test "is %s" do\n    assert 3 * 4 == %s\n"""
            r"""  end\nend\n' "$word" "$word" "$sum" """.rstrip(),
        ),
    ),
)


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files `*_test.exs`; with a plan those of its project."""
    return test_files(tree, plan.test.folder if plan else "")
