"""C++: CMake, Meson and Autotools; ctest, GoogleTest, Automake's harness."""

from __future__ import annotations

from languages.base import Fallback
from languages.draft import Context, Draft
from languages.native import plan as shared
from languages.native.frameworks import FRAMEWORKS
from languages.native.plan import SWITCHES, render
from languages.native.releases import DEFAULT, RELEASES
from languages.native.tests import RUNNER_PATTERNS, TEST_FILE, TEST_PATTERNS, defining_files
from languages.tree import Tree

__all__ = [
    "DEFAULT",
    "FRAMEWORKS",
    "RELEASES",
    "RUNNER_PATTERNS",
    "SWITCHES",
    "TEST_FILE",
    "TEST_PATTERNS",
    "defining_files",
    "render",
]  # fmt: skip

NAME, TITLE = "c++", "C++"
SUFFIXES = (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp")
CONFIG_PATTERNS: tuple[str, ...] = ()
KEPT_FOLDERS: tuple[str, ...] = ()
PATH: tuple[str, ...] = ()
FALLBACKS: tuple[Fallback, ...] = (shared.without_ci_packages, shared.next_compiler)


def draft(tree: Tree, context: Context) -> Draft:
    """All choices for the tree; raises NoPlanError where there are none."""
    return shared.draft(NAME, tree, context)
