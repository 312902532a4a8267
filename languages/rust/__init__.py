"""Rust: `cargo test`, crates as Cargo.lock pins them or as they were on the change's day."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from languages.base import Canary, Framework
from languages.rust.plan import FALLBACKS, SWITCHES, draft, render
from languages.rust.releases import DEFAULT, PATH, RELEASES
from languages.rust.sources import defining_files

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

NAME, TITLE = "rust", "Rust"
SUFFIXES = (".rs",)
TEST_PATTERNS = (
    r"(^|/)tests\.rs$",
    r"(^|/)test_[^/]*\.rs$",
    r"(^|/)[^/]*_tests?\.rs$",
    r"(^|/)snapshots/[^/]*\.snap$",
)
RUNNER_PATTERNS = (
    r"(^|/)\.cargo/config(\.toml)?$",
    r"(^|/)\.config/nextest\.toml$",
)
CONFIG_PATTERNS: tuple[str, ...] = ()
TEST_FILE = r"(^|/)tests/.*\.rs$|(^|/)(tests|test_[^/]*|[^/]*_tests?)\.rs$"
KEPT_FOLDERS: tuple[str, ...] = ()


def _canary_name(_files: Sequence[str]) -> str:
    return '"canary_$word.rs"'


FRAMEWORKS = (
    Framework(
        name="cargo-test",
        shell=resources.files("languages.rust").joinpath("cargo.sh.j2").read_text(encoding="utf-8"),
        report="cargo",
        # A target of its own beside the integration tests; packages that list theirs do not take it in.
        canary=Canary(
            name=_canary_name,
            body=r"""printf '#[test]\nfn test_%s() {\n    assert_eq!(3 * 4, %s);\n}\n' "$word" "$sum" """.rstrip(),
        ),
    ),
)
