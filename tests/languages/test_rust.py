from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from backends.tree import CommitTree
from builders.layers import can_install_offline
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.rust import RUST
from languages.rust.plan import LATE, compile_with_sources
from languages.rust.releases import release_date
from tests.languages.trees import build_tree

TEST = "#[test]\nfn it() {}\n"
ONE = '[package]\nname = "one"\nversion = "0.1.0"\nedition = "2021"\n'
BASE = {"Cargo.toml": ONE, "src/lib.rs": "", "tests/it.rs": TEST}


def build_draft(tree: CommitTree, day: str = "2025-06-15", *changed_paths: str) -> PlanDraft:
    versions = [release.version for release in RUST.releases]
    context = PlanningContext(list_available=lambda: versions, day=date.fromisoformat(day), changed_paths=changed_paths)
    return RUST.create_draft(tree, context)


def test_releases_come_every_six_weeks() -> None:
    assert release_date(31) == date(2018, 12, 6)
    assert release_date(70) == date(2023, 6, 1)
    assert release_date(85) == date(2025, 2, 20)


@pytest.mark.parametrize(
    ("files", "day", "version"),
    [
        ({}, "2025-06-15", "1.85"),
        ({}, "2023-08-01", "1.70"),
        ({"rust-toolchain.toml": '[toolchain]\nchannel = "1.76.0"\n'}, "2025-06-15", "1.76"),
        ({"Cargo.toml": ONE.replace("2021", "2024")}, "2025-02-21", "1.85"),
        ({"Cargo.toml": ONE + 'rust-version = "1.86"\n'}, "2025-06-15", "1.87"),
        ({"Cargo.lock": "version = 4\n"}, "2024-06-01", "1.78"),
    ],
)
def test_the_compiler_is_stable_at_the_date_and_not_older_than_the_project_requires(
    tmp_path: Path, files: dict[str, str], day: str, version: str
) -> None:
    assert build_draft(build_tree(tmp_path, BASE | files), day).versions[0].value == version


def test_a_package_with_only_tests_gets_a_stub_for_compiling_dependencies(tmp_path: Path) -> None:
    suite = {
        "Cargo.toml": ONE + '[workspace]\nmembers = ["suite", "tools"]\n',
        "suite/Cargo.toml": ONE.replace("one", "suite"),
        "suite/tests/help/mod.rs": "",
        "suite/tests/test_a.rs": TEST,
        "suite/tests/test_b.rs": TEST,
        "tools/Cargo.toml": ONE.replace("one", "tools"),
        "tools/src/bin/a.rs": "fn main() {}\n",
    }
    draft = build_draft(build_tree(tmp_path, BASE | suite))
    stubs = next(evidence.value.split() for evidence in draft.evidence if evidence.choice == "stub_sources")
    assert stubs == ["src/lib.rs", "suite/tests/test_a.rs", "tools/src/bin/a.rs"]


def test_dependencies_that_require_the_tree_itself_can_be_compiled_with_its_sources(tmp_path: Path) -> None:
    plain = build_draft(build_tree(tmp_path / "plain", BASE))
    assert compile_with_sources(plain) == plain
    root = ONE + '[patch.crates-io]\none = { path = "." }\nother = { git = "https://example.org/other" }\n'
    draft = build_draft(build_tree(tmp_path / "patched", BASE | {"Cargo.toml": root}))
    early, late = RUST.render_plan(draft), RUST.render_plan(compile_with_sources(draft))
    assert [evidence.value for evidence in draft.evidence if evidence.choice == "patched"] == ["one"]
    assert any("--no-run" in step for step in early.dependency_steps)
    assert not any("--no-run" in step for step in late.dependency_steps)
    assert "--no-run --offline" in late.source_steps[-1]
    assert can_install_offline(late)


def test_the_tree_is_compiled_once_and_its_tests_need_not_compile(tmp_path: Path) -> None:
    """Only where dependencies are compiled with the tree, a failure is one of the build."""
    draft = build_draft(build_tree(tmp_path, BASE | {"Cargo.lock": "version = 3\n"}))
    early, late = RUST.render_plan(draft), RUST.render_plan(replace(draft, switches=draft.switches | {LATE}))
    (step,), (late_step,) = early.source_steps, late.source_steps
    compile_tree = step.partition(" || true;")[0]
    assert "--no-run --offline --tests" in compile_tree
    assert late_step.startswith(f"{compile_tree}; done=$?;")
    assert late_step.endswith("[ $done = 0 ]")
    assert can_install_offline(early)


def test_a_lock_file_of_the_tree_needs_no_dated_index(tmp_path: Path) -> None:
    free = RUST.render_plan(build_draft(build_tree(tmp_path / "free", BASE)))
    locked = RUST.render_plan(build_draft(build_tree(tmp_path / "locked", BASE | {"Cargo.lock": "version = 3\n"})))
    assert any("pubtime" in step for step in free.dependency_steps)
    assert not any("pubtime" in step for step in locked.dependency_steps)
    assert free.source_steps == (
        ": --offline ; [ -e Cargo.lock ] || cp /opt/cargo/dated.lock Cargo.lock",
        *locked.source_steps,
    )


def test_an_old_toolchain_downloads_crates_with_a_newer_cargo(tmp_path: Path) -> None:
    plan = RUST.render_plan(build_draft(build_tree(tmp_path, BASE), "2021-11-20"))
    assert plan.language_version == "1.56"
    assert any("vendor" in step for step in plan.dependency_steps)


def test_the_ci_command_that_covers_most_code_is_selected(tmp_path: Path) -> None:
    ci = (
        "jobs:\n  test:\n    strategy:\n      matrix:\n        features: [a, 'a b']\n    steps:\n"
        "      - run: cargo test --no-default-features\n      - run: cargo test --features '${{ matrix.features }}'\n"
        "      - run: cargo test --doc --all-features\n      - run: cargo +nightly test --all-features\n"
    )
    draft = build_draft(build_tree(tmp_path, BASE | {".github/workflows/ci.yml": ci}))
    assert draft.test.argv == ("cargo", "test", "--features", "a b")
    (evidence,) = [evidence for evidence in draft.evidence if evidence.choice == "test.argv"]
    assert (evidence.path, evidence.line) == (".github/workflows/ci.yml", 8)


def test_a_change_in_a_member_is_tested_there_too(tmp_path: Path) -> None:
    root = ONE + '[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/not"]\n'
    files = BASE | {
        "Cargo.toml": root,
        "crates/two/Cargo.toml": ONE.replace("one", "two"),
        "crates/two/src/lib.rs": TEST,
        "crates/not/Cargo.toml": ONE.replace("one", "not"),
        "crates/not/src/lib.rs": TEST,
    }
    tree = build_tree(tmp_path, files)
    draft = build_draft(tree, "2025-06-15", "crates/two/src/lib.rs")
    assert "--workspace" in draft.test.argv
    assert RUST.find_test_files(tree, RUST.render_plan(draft)) == ["crates/two/src/lib.rs", "tests/it.rs"]
    assert RUST.find_test_files(tree, RUST.render_plan(build_draft(tree))) == ["tests/it.rs"]


def test_files_of_modules_with_a_path_are_expected_where_one_of_their_guards_is_met(tmp_path: Path) -> None:
    library = (
        '#[cfg(with_neon)]\n#[path = "neon.rs"]\nmod fast;\n#[path = "parts/wide.rs"]\n#[cfg(with_avx)]\nmod fast;\n'
        '#[cfg(test)]\n#[path = "usual.rs"]\nmod fast;\n#[cfg(windows)]\n#[path = "usual.rs"]\nmod other;\n'
    )
    names = ("neon", "parts/wide", "usual", "fast")
    tree = build_tree(tmp_path, BASE | {"src/lib.rs": library} | {f"src/{name}.rs": TEST for name in names})
    test_files = RUST.find_test_files(tree, RUST.render_plan(build_draft(tree)))
    assert test_files == ["src/fast.rs", "src/usual.rs", "tests/it.rs"]


def test_files_of_other_systems_and_features_are_not_expected(tmp_path: Path) -> None:
    library = (
        '#[cfg(windows)]\nmod windows;\n#[cfg(feature = "on")]\nmod on;\n#[cfg(feature = "off")]\npub mod off;\n'
        "#[cfg(test)]\nmod checks;\n"
    )
    files = BASE | {
        "Cargo.toml": ONE + '[features]\ndefault = ["on"]\non = []\noff = []\n'
        '[[test]]\nname = "far"\nrequired-features = ["off"]\n',
        "src/lib.rs": library,
        "src/windows/mod.rs": TEST,
        "src/on.rs": TEST,
        "src/off.rs": TEST,
        "src/checks.rs": TEST,
        "tests/far.rs": TEST,
        "tests/mac.rs": '#![cfg(target_os = "macos")]\n' + TEST,
        "tests/common/mod.rs": TEST,
        "benches/speed.rs": TEST,
    }
    tree = build_tree(tmp_path, files)
    assert RUST.find_test_files(tree, RUST.render_plan(build_draft(tree))) == [
        "src/checks.rs",
        "src/on.rs",
        "tests/it.rs",
    ]


def test_lints_of_a_newer_compiler_do_not_fail_the_build(tmp_path: Path) -> None:
    ci = "env:\n  RUSTFLAGS: -Dwarnings --cfg tokio_unstable\njobs:\n  a:\n    steps:\n      - run: cargo test\n"
    draft = build_draft(build_tree(tmp_path, BASE | {".github/workflows/ci.yml": ci}))
    assert dict(draft.env)["RUSTFLAGS"] == "--cfg tokio_unstable --cap-lints=warn"


def test_a_tree_without_tests_has_no_plan(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError):
        build_draft(build_tree(tmp_path, {"Cargo.toml": ONE, "src/lib.rs": ""}))
