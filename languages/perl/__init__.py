"""Perl: test files that print TAP, run by prove; modules from CPAN by cpanm, or Debian's packages of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

from languages.base import Canary, Fallback, Framework
from languages.draft import Draft
from languages.perl.plan import COMPILE, TEST_FILE, draft, render, test_files
from languages.perl.releases import DEFAULT, RELEASES
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

NAME, TITLE = "perl", "Perl"
SUFFIXES = (".pm", ".pl", ".t", ".xs", ".psgi")
TEST_PATTERNS = (r"^x?t/", r"(^|/)t/.*\.(t|pm|pl)$")
RUNNER_PATTERNS = (r"(^|/)\.proverc$",)
CONFIG_PATTERNS: tuple[str, ...] = ()
KEPT_FOLDERS: tuple[str, ...] = ()
PATH: tuple[str, ...] = ()
SWITCHES = {
    DEBIAN_PACKAGES: SWITCH,
    COMPILE: "Makefile.PL or Build.PL builds the C parts in the tree, and again before a run",
}


def without_compile(draft: Draft) -> Draft:
    """The C parts are not built: the project may do without them."""
    return replace(draft, switches=draft.switches - {COMPILE})


FALLBACKS: tuple[Fallback, ...] = (debian_packages, next_version, without_compile)


def _name(_files: Sequence[str]) -> str:
    return '"$word.t"'


FRAMEWORKS = (
    Framework(
        name="prove",
        shell=resources.files("languages.perl").joinpath("prove.sh.j2").read_text(encoding="utf-8"),
        report="tap",
        canary=Canary(
            name=_name,
            body=r"""printf 'use Test::More tests => 1;\nis(3 * 4, %s, "is %s");\n' "$sum" "$word" """.rstrip(),
        ),
    ),
)


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files `t/**/*.t`; with a plan those of its project."""
    if plan is None:
        return sorted(path for path in tree.entries if f"/{path}".find("/t/") >= 0 and path.endswith(".t"))
    return test_files(tree, plan.test.folder)
