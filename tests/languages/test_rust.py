from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.tree import Tree
from builders.layers import offline_first
from languages import rust
from languages.draft import Context, Draft, NoPlanError
from languages.rust.plan import with_the_sources
from languages.rust.releases import released
from tests.languages.trees import tree_of

TEST = "#[test]\nfn it() {}\n"
ONE = '[package]\nname = "one"\nversion = "0.1.0"\nedition = "2021"\n'
BASE = {"Cargo.toml": ONE, "src/lib.rs": "", "tests/it.rs": TEST}


def drafted(tree: Tree, day: str = "2025-06-15", *touched: str) -> Draft:
    versions = [release.version for release in rust.RELEASES]
    context = Context(available=lambda: versions, day=date.fromisoformat(day), touched=touched)
    return rust.draft(tree, context)


def test_releases_come_every_six_weeks() -> None:
    assert released(31) == date(2018, 12, 6)
    assert released(70) == date(2023, 6, 1)
    assert released(85) == date(2025, 2, 20)


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
def test_the_compiler_is_the_days_but_no_older_than_the_project(
    tmp_path: Path, files: dict[str, str], day: str, version: str
) -> None:
    assert drafted(tree_of(tmp_path, BASE | files), day).versions[0].value == version


def test_a_package_of_tests_alone_has_a_source_when_dependencies_are_compiled(tmp_path: Path) -> None:
    suite = {
        "Cargo.toml": ONE + '[workspace]\nmembers = ["suite", "tools"]\n',
        "suite/Cargo.toml": ONE.replace("one", "suite"),
        "suite/tests/help/mod.rs": "", "suite/tests/test_a.rs": TEST, "suite/tests/test_b.rs": TEST,
        "tools/Cargo.toml": ONE.replace("one", "tools"), "tools/src/bin/a.rs": "fn main() {}\n",
    }  # fmt: skip
    made = drafted(tree_of(tmp_path, BASE | suite))
    stubs = next(one.value.split() for one in made.evidence if one.choice == "stub_sources")
    assert stubs == ["src/lib.rs", "suite/tests/test_a.rs", "tools/src/bin/a.rs"]


def test_what_dependencies_ask_of_the_tree_itself_can_be_compiled_with_its_sources(tmp_path: Path) -> None:
    plain = drafted(tree_of(tmp_path / "plain", BASE))
    assert with_the_sources(plain) == plain
    root = ONE + '[patch.crates-io]\none = { path = "." }\nother = { git = "https://example.org/other" }\n'
    made = drafted(tree_of(tmp_path / "patched", BASE | {"Cargo.toml": root}))
    early, late = rust.render(made), rust.render(with_the_sources(made))
    assert [one.value for one in made.evidence if one.choice == "patched"] == ["one"]
    assert any("--no-run" in step for step in early.dependency_steps)
    assert not any("--no-run" in step for step in (*late.dependency_steps, *early.source_steps))
    assert "--no-run --offline" in late.source_steps[-1]
    assert offline_first(late)


def test_a_lock_file_of_the_tree_needs_no_dated_index(tmp_path: Path) -> None:
    free = rust.render(drafted(tree_of(tmp_path / "free", BASE)))
    locked = rust.render(drafted(tree_of(tmp_path / "locked", BASE | {"Cargo.lock": "version = 3\n"})))
    assert any("pubtime" in step for step in free.dependency_steps)
    assert not any("pubtime" in step for step in locked.dependency_steps)
    assert (len(free.source_steps), locked.source_steps) == (1, ())


def test_an_old_toolchain_gets_its_crates_by_a_newer_cargo(tmp_path: Path) -> None:
    plan = rust.render(drafted(tree_of(tmp_path, BASE), "2021-11-20"))
    assert plan.language_version == "1.56"
    assert any("vendor" in step for step in plan.dependency_steps)


def test_the_line_of_ci_that_tests_the_most_is_taken(tmp_path: Path) -> None:
    ci = (
        "jobs:\n  test:\n    strategy:\n      matrix:\n        features: [a, 'a b']\n    steps:\n"
        "      - run: cargo test --no-default-features\n      - run: cargo test --features '${{ matrix.features }}'\n"
        "      - run: cargo test --doc --all-features\n      - run: cargo +nightly test --all-features\n"
    )
    made = drafted(tree_of(tmp_path, BASE | {".github/workflows/ci.yml": ci}))
    assert made.test.argv == ("cargo", "test", "--features", "a b")
    (evidence,) = [one for one in made.evidence if one.choice == "test.argv"]
    assert (evidence.path, evidence.line) == (".github/workflows/ci.yml", 8)


def test_a_change_in_a_member_is_tested_there_too(tmp_path: Path) -> None:
    root = ONE + '[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/not"]\n'
    files = BASE | {
        "Cargo.toml": root, "crates/two/Cargo.toml": ONE.replace("one", "two"), "crates/two/src/lib.rs": TEST,
        "crates/not/Cargo.toml": ONE.replace("one", "not"), "crates/not/src/lib.rs": TEST,
    }  # fmt: skip
    tree = tree_of(tmp_path, files)
    made = drafted(tree, "2025-06-15", "crates/two/src/lib.rs")
    assert "--workspace" in made.test.argv
    assert rust.defining_files(tree, rust.render(made)) == ["crates/two/src/lib.rs", "tests/it.rs"]
    assert rust.defining_files(tree, rust.render(drafted(tree))) == ["tests/it.rs"]


def test_files_of_other_systems_and_features_are_not_waited_for(tmp_path: Path) -> None:
    library = (
        '#[cfg(windows)]\nmod windows;\n#[cfg(feature = "on")]\nmod on;\n#[cfg(feature = "off")]\npub mod off;\n'
        "#[cfg(test)]\nmod checks;\n"
    )
    files = BASE | {
        "Cargo.toml": ONE + '[features]\ndefault = ["on"]\non = []\noff = []\n'
        '[[test]]\nname = "far"\nrequired-features = ["off"]\n',
        "src/lib.rs": library, "src/windows/mod.rs": TEST, "src/on.rs": TEST, "src/off.rs": TEST,
        "src/checks.rs": TEST, "tests/far.rs": TEST, "tests/mac.rs": '#![cfg(target_os = "macos")]\n' + TEST,
        "tests/common/mod.rs": TEST, "benches/speed.rs": TEST,
    }  # fmt: skip
    tree = tree_of(tmp_path, files)
    assert rust.defining_files(tree, rust.render(drafted(tree))) == ["src/checks.rs", "src/on.rs", "tests/it.rs"]


def test_lints_that_a_newer_compiler_knows_stop_no_build(tmp_path: Path) -> None:
    ci = "env:\n  RUSTFLAGS: -Dwarnings --cfg tokio_unstable\njobs:\n  a:\n    steps:\n      - run: cargo test\n"
    made = drafted(tree_of(tmp_path, BASE | {".github/workflows/ci.yml": ci}))
    assert dict(made.env)["RUSTFLAGS"] == "--cfg tokio_unstable --cap-lints=warn"


def test_a_tree_without_tests_has_no_plan(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError):
        drafted(tree_of(tmp_path, {"Cargo.toml": ONE, "src/lib.rs": ""}))
