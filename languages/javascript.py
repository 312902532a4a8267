"""JavaScript on Node: jest, vitest, mocha, ava, node:test, borp, tap; packages by npm, yarn or pnpm."""

from __future__ import annotations

from languages.node import fallbacks, files, frameworks, releases, switches
from languages.node.files import defining_files
from languages.node.plan import draft, render

__all__ = [
    "CONFIG_PATTERNS", "DEFAULT", "FALLBACKS", "FRAMEWORKS", "KEPT_FOLDERS", "NAME", "PATH", "RELEASES",
    "RUNNER_PATTERNS", "SUFFIXES", "SWITCHES", "TEST_FILE", "TEST_PATTERNS", "TITLE", "defining_files", "draft",
    "render",
]  # fmt: skip

NAME, TITLE = "javascript", "JavaScript"
SUFFIXES = (".js", ".jsx", ".mjs", ".cjs")
TEST_PATTERNS = (
    r"(^|/)__(tests|mocks|snapshots|fixtures)__/",
    r"[._-](test|tests|spec|specs)\.[cm]?[jt]sx?(\.snap|\.md)?$",
    r"\.test-d\.[cm]?tsx?$",
    r"^(test|spec|e2e|cypress)/",
    r"^packages/[^/]+/(test|spec)/",
    r"(^|/)(test|spec|e2e|cypress)/([^/]+/)*[^/]+\.([cm]?[jt]sx?|vue|snap)$",
    r"^tests?([-_.][^/]*)?\.[cm]?[jt]sx?$",
)
RUNNER_PATTERNS = (
    r"(^|/)(jest|vitest|ava|karma|playwright|cypress|wdio|wtr|web-test-runner)\.(config|conf|setup|workspace|projects|base)[^/]*$",
    r"(^|/)(jest|vitest|test|tests)[-_.]?setup[^/]*\.[cm]?[jt]sx?$",
    r"(^|/)\.(mocharc|taprc|borp|nycrc|c8rc)[^/]*$",
    r"(^|/)mocha\.opts$",
)
CONFIG_PATTERNS = (r"(^|/)package\.json$", r"(^|/)vite\.config\.[cm]?[jt]s$")
TEST_FILE = files.TEST_FILE
KEPT_FOLDERS = ("node_modules",)
PATH = (f"{releases.PREFIX}/bin",)
RELEASES, DEFAULT = releases.RELEASES, releases.DEFAULT
FRAMEWORKS = frameworks.FRAMEWORKS
SWITCHES = switches.SWITCHES
FALLBACKS = fallbacks.FALLBACKS
