"""Go: `go test`, modules as go.mod and go.sum pin them, the toolchain by CI, go.mod or the day."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from languages.base import Canary, Framework
from languages.go.plan import FALLBACKS, SWITCHES, defining_files, draft, render
from languages.go.releases import DEFAULT, RELEASES, ROOT

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

NAME, TITLE = "go", "Go"
SUFFIXES = (".go",)
TEST_PATTERNS = (
    r"_test\.go$",
    r"(^|/)testdata/",
    r"^test/.*\.go$",  # deeper down it is often a package that others import
)
RUNNER_PATTERNS: tuple[str, ...] = ()
CONFIG_PATTERNS: tuple[str, ...] = ()
TEST_FILE = r"_test\.go$"
KEPT_FOLDERS: tuple[str, ...] = ()
PATH = (f"{ROOT}/bin",)


_CANARY = r"""
    package="$(sed -n 's/^package \([A-Za-z0-9_]*\).*/\1/p' "$folder"/{*_test,*}.go 2>/dev/null | head -n 1)"
    printf 'package %s\n\nimport "testing"\n\nfunc Test_%s(t *testing.T) {\n' "${package:-canary}" "$word"
    printf '\tif 3*4 != %s {\n\t\tt.Fatal("it differs")\n\t}\n}\n' "$sum"
""".strip()


def _canary_name(_files: Sequence[str]) -> str:
    return '"zz_${word}_test.go"'


FRAMEWORKS = (
    Framework(
        name="go-test",
        shell=resources.files("languages.go").joinpath("gotest.sh.j2").read_text(encoding="utf-8"),
        report="gojson",
        canary=Canary(
            name=_canary_name,
            body=_CANARY,
        ),
    ),
)
