"""TypeScript: planned as JavaScript is, in the same boxes. Runners compile on the way, or a build step does before."""

from __future__ import annotations

from languages import javascript
from languages.javascript import defining_files, draft, render

__all__ = [
    "CONFIG_PATTERNS", "DEFAULT", "FALLBACKS", "FRAMEWORKS", "KEPT_FOLDERS", "NAME", "PATH", "RELEASES",
    "RUNNER_PATTERNS", "SUFFIXES", "SWITCHES", "TEST_FILE", "TEST_PATTERNS", "TITLE", "defining_files", "draft",
    "render",
]  # fmt: skip

NAME, TITLE = "typescript", "TypeScript"
SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte")
TEST_PATTERNS = javascript.TEST_PATTERNS
RUNNER_PATTERNS = javascript.RUNNER_PATTERNS
CONFIG_PATTERNS = javascript.CONFIG_PATTERNS
TEST_FILE = javascript.TEST_FILE
KEPT_FOLDERS = javascript.KEPT_FOLDERS
PATH = javascript.PATH
RELEASES, DEFAULT = javascript.RELEASES, javascript.DEFAULT
FRAMEWORKS = javascript.FRAMEWORKS
SWITCHES = javascript.SWITCHES
FALLBACKS = javascript.FALLBACKS
