"""Benchmarks of criterion: which names are found in a file, how they are repeated, and when a run of one counts."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from backends.git import GitRepository
from derivers.base import KindRejection
from derivers.counters import add_counters
from derivers.performance import PerformanceMeasurement
from guest.harness import HARNESS_FOLDER
from languages.parsing import create_parser
from languages.paths import is_benchmark, is_part_of_tests, is_protected, is_source, is_test_file
from languages.rust.criterion import list_benchmarks
from mutation.grammars import find_grammar
from taskdb.records.lineage import Lineage
from tests import records
from tests.helpers import TinyRepo

FILE = "benches/speed.rs"
MAIN = "criterion_group!(benches, bench);\ncriterion_main!(benches);\n"


def list_names(body: str) -> list[str]:
    grammar = find_grammar(FILE)
    assert grammar is not None
    source = f"fn bench(c: &mut Criterion) {{\n{body}\n}}\n{MAIN}"
    root = create_parser(grammar.syntax).parse(source.encode()).root_node
    return [benchmark.name for benchmark in list_benchmarks(root)]


def count(source: str) -> str:
    return add_counters({FILE: source.encode()})[FILE].decode()


def load_rounds() -> ModuleType:
    spec = importlib.util.spec_from_file_location("timed_rounds", HARNESS_FOLDER / "workload/timed_rounds.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROUNDS = load_rounds()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('c.bench_function("sum", |b| b.iter(sum));', ["sum"]),
        ('c.bench_function(r#"sum it"#, move |b| { b.iter(sum) });', ["sum it"]),
        ('c.bench_function("one", |b| b.iter(sum)).bench_function("two", |b| b.iter(sum));', ["two", "one"]),
        ('c.sample_size(10).bench_function("sum", |b| b.iter(sum));', ["sum"]),
        ('let mut g = c.benchmark_group("g"); g.bench_function("sum", |b| b.iter(sum));', ["g/sum"]),
        ('c.benchmark_group("g").sample_size(10).bench_function("sum", |b| b.iter(sum));', ["g/sum"]),
        (
            """let mut g = c.benchmark_group("g"); g.bench_function("a", |b| b.iter(sum)); g.finish();
            let mut g = c.benchmark_group("h"); g.bench_function("a", |b| b.iter(sum));""",
            ["g/a", "h/a"],
        ),
        ('let mut own = Criterion::default().sample_size(10); own.bench_function("a", |b| b.iter(sum));', ["a"]),
        ('c.bench_with_input(BenchmarkId::new("sum", 5), &5, |b, n| b.iter(|| n + 1));', ["sum/*"]),
        (
            """let mut g = c.benchmark_group("g");
            for n in 0..9 { g.bench_with_input(BenchmarkId::from_parameter(n), &n, |b, n| b.iter(|| n + 1)); }""",
            ["g/*"],
        ),
        # names or groups that the source does not state, and code that is no closure
        ('c.bench_function(&format!("sum {}", 5), |b| b.iter(sum));', []),
        ('c.bench_function("a\\"b", |b| b.iter(sum));', []),
        ('c.bench_function("sum", bench_sum);', []),
        ('let mut g = c.benchmark_group(name); g.bench_function("sum", |b| b.iter(sum));', []),
        ('other.bench_function("sum", |b| b.iter(sum));', []),
        ('// c.bench_function("sum", |b| b.iter(sum));', []),
        (f'c.bench_function("{"s" * 101}", |b| b.iter(sum));', []),
    ],
)
def test_names_are_those_that_the_source_states(body: str, names: list[str]) -> None:
    assert list_names(body) == names


def test_a_group_of_another_function_says_nothing() -> None:
    grammar = find_grammar(FILE)
    assert grammar is not None
    source = (
        b'fn a(c: &mut Criterion) { let mut g = c.benchmark_group("g"); run(&mut g); }\n'
        b'fn run(g: &mut BenchmarkGroup<WallTime>) { g.bench_function("sum", |b| b.iter(sum)); }\n'
    )
    assert list_benchmarks(create_parser(grammar.syntax).parse(source).root_node) == []


def test_the_closure_of_a_benchmark_is_repeated_and_its_function_counts_from_zero() -> None:
    text = count(
        "fn bench(c: &mut Criterion) {\n    let rows: Vec<u8> = (0..9).collect();\n"
        '    c.bench_function("sum", |b| b.iter(|| sum(&rows)));\n}\n\nfn other() {}\n' + MAIN
    )
    work = "crate::mergemill_work"
    assert f"fn bench(c: &mut Criterion) {{ {work}::restart(); {work}::count(1);" in text
    assert f"fn other() {{ {work}::count(1); }}" in text
    assert f"let rows: Vec<u8> = {work}::size((0..9).collect());" in text
    loop = f"{{ let _mergemill_work = {work}::Write; for _ in 0..{work}::runs() {{ {work}::count(1); "
    assert f'c.bench_function("sum", |b| {loop}b.iter(|| sum(&rows)); }} }});' in text
    assert "pub fn runs()" in text


def test_files_of_other_programs_are_not_repeated() -> None:
    text = count('fn bench(c: &mut Criterion) { c.bench_function("sum", |b| b.iter(sum)); }\n')
    assert "runs() {" not in text.partition("mod mergemill_work")[0]
    assert "restart" not in text.partition("mod mergemill_work")[0]


@pytest.mark.parametrize(
    ("name", "printed", "is_matched"),
    [
        ("sum", "sum", True),
        ("sum", "sums", False),
        ("sum", "a sum", False),
        ("g/sum it (all) + [x]", "g/sum it (all) + [x]", True),
        ("a.b", "axb", False),
        ("g/*", "g/10", True),
        ("g/*", "g/f/10", False),
        ("g/*", "g", False),
        ("", "sum", False),
    ],
)
def test_the_filter_matches_one_name(name: str, printed: str, is_matched: bool) -> None:
    pattern = ROUNDS.make_criterion_filter(name)
    assert (re.search(pattern, printed) is not None) is is_matched
    assert "\\ " not in pattern  # Rust has no such escape


@pytest.mark.parametrize(
    ("output", "has_passed"),
    [
        ("Gnuplot not found, using plotters backend\nTesting g/sum\nSuccess\n\n", True),
        ("", False),
        ("Testing g/sum\n", False),
        ("Testing g/sum\nSuccess\nTesting g/max\nSuccess\n", False),
        ("Testing g/sum\nthread 'main' panicked at benches/speed.rs:7:9:\n", False),
        ("test sum ... ok\n", False),
        ("Success\n", False),
    ],
)
def test_a_benchmark_passes_when_it_is_executed(output: str, has_passed: bool) -> None:
    assert bool(ROUNDS.has_criterion_passed(output, "g/sum")) is has_passed


def test_all_parameters_of_a_benchmark_must_pass() -> None:
    assert ROUNDS.has_criterion_passed("Testing g/1\nSuccess\nTesting g/2\nSuccess\n", "g/*")
    assert not ROUNDS.has_criterion_passed("Testing g/1\nSuccess\nTesting g/2\n", "g/*")


def test_files_of_benchmarks_belong_to_no_submission_and_no_run_of_tests() -> None:
    for path in ("benches/speed.rs", "crates/one/benches/speed/main.rs"):
        assert (is_benchmark(path), is_protected(path), is_source(path), is_test_file(path)) == (
            True,
            True,
            False,
            False,
        )
        assert not is_part_of_tests(path)
    for path in ("tests/benches/mod.rs", "tests/data.json", "conftest.py"):
        assert is_part_of_tests(path)
    assert not is_part_of_tests("src/lib.rs")
    for path in ("src/benches.rs", "benches/speed.py", "tests/benches/mod.rs", "src/lib.rs"):
        assert not is_benchmark(path)


@pytest.mark.parametrize("is_touched", [True, False])
def test_benchmarks_of_the_change_are_timed_first(
    is_touched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = TinyRepo(tmp_path / "repo")
    program = 'fn bench(c: &mut Criterion) {{ c.bench_function("{name}", |b| b.iter(sum)); }}\n' + MAIN
    files = {f"benches/{name}.rs": program.format(name=name) for name in ("one", "two")}
    base = repo.commit("Start", files | {"benches/util.rs": program.format(name="no").replace("criterion_main", "x")})
    pull = records.make_pull_request(base_commit=base)
    candidate = records.make_candidate(pull, language="rust", test_files=("benches/two.rs",) if is_touched else ())
    plan = records.PLAN.model_copy(
        update={"test": records.PLAN.test.model_copy(update={"framework": "cargo-test", "folder": ""})}
    )
    environment = records.make_environment(candidate, plan=plan)
    verification = records.make_verification(environment, PASS_TO_PASS=("tests/it.rs::it", "src/lib.rs::tests::it"))
    attempts: list[tuple[str, ...]] = []

    def build_workload(_: PerformanceMeasurement, tests: tuple[str, ...], clock: str) -> KindRejection:
        attempts.append(tests)
        return KindRejection("no-workload", clock)

    monkeypatch.setattr(PerformanceMeasurement, "_build_workload", build_workload)
    nothing = cast("Any", None)
    measurement = PerformanceMeasurement(
        lineage=Lineage(candidate=candidate, environment=environment, verification=verification),
        services=nothing,
        pool=nothing,
    )
    vars(measurement).update(repository=GitRepository(repo.path), test_patch=b"")
    assert isinstance(measurement.derive(), KindRejection)
    everything = ("benches/one.rs::one", "benches/two.rs::two", "tests/it.rs::it")
    near = ("benches/two.rs::two",)
    assert attempts == ([near, everything, near] if is_touched else [everything])
