"""Rust: `cargo test`, crates pinned by Cargo.lock or resolved as of the change's date."""

from __future__ import annotations

from collections.abc import Sequence

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.controls import ControlSites
from languages.habits import Habits
from languages.messages import CONTAIN_CALLS, MessageChecks
from languages.repetition import TestPrograms
from languages.rust.counters import COUNTERS
from languages.rust.criterion import list_benchmark_names
from languages.rust.loading import HOOK
from languages.rust.plan import FALLBACKS, SWITCHES, create_draft, render_plan
from languages.rust.releases import DEFAULT, PATH, RELEASES
from languages.rust.sources import find_test_files


def _name_canary(_files: Sequence[str]) -> str:
    return '"canary_$word.rs"'


RUST = Language(
    name="rust",
    title="Rust",
    suffixes=(".rs",),
    test_patterns=(
        r"(^|/)tests\.rs$",
        r"(^|/)test_[^/]*\.rs$",
        r"(^|/)[^/]*_tests?\.rs$",
        r"(^|/)snapshots/[^/]*\.snap$",
    ),
    benchmark_patterns=(r"(^|/)benches/.*\.rs$",),
    runner_patterns=(
        r"(^|/)\.cargo/config(\.toml)?$",
        r"(^|/)\.config/nextest\.toml$",
    ),
    test_file_pattern=r"(^|/)tests/.*\.rs$|(^|/)(tests|test_[^/]*|[^/]*_tests?)\.rs$",
    bin_folders=PATH,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="cargo-test",
            shell=read_packaged_file("languages.rust", "cargo.sh.j2"),
            report="cargo",
            # A separate integration test target; packages with `autotests = false` do not collect it.
            canary=Canary(
                name=_name_canary,
                body=r"""printf '#[test]\nfn test_%s() {\n    assert_eq!(3 * 4, %s);\n}\n' "$word" "$sum" """.rstrip(),
            ),
            programs=TestPrograms(
                tests=r"(.*/)?tests/[^/]+\.rs::[\w:]+",  # those of sources belong to the submission
                benchmark_files=r"(.*/)?benches/.*\.rs",
                list_benchmarks=list_benchmark_names,
            ),
        ),
    ),
    switches=SWITCHES,
    fallbacks=FALLBACKS,
    reserved_variables=(r"RUSTC(_WRAPPER)?", "CARGO"),
    version_files=(r"(^|/)(Cargo\.toml|rust-toolchain(\.toml)?)$",),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    test_command="cargo test",
    syntaxes=(parsing.RUST,),
    controls=ControlSites(condition_calls=frozenset({"assert"}), max_instances=1000, instance_seconds=0.01),
    messages=MessageChecks(contain_calls=rf"{CONTAIN_CALLS}|should_panic"),
    exploit_files={".cargo/config.toml": b'[target.x86_64-unknown-linux-gnu]\nrunner = "true"\n'},
    exploit_programs=("cargo",),
    load_hook=HOOK,
    counters=COUNTERS,
    habits=Habits(
        test_commands=r"cargo (\S+ )*(test|nextest)",
        output=r"\be?println!|\bdbg!",
        output_example='println!("here");',
        function_example="\nfn added_by_hand(mut x: i32) -> i32 {\n{body}\n    x\n}",
    ),
)
