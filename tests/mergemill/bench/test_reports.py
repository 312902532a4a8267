"""Reports of runs: figures with intervals and bounds, groups, comparisons, and reasons that stop or mark them."""

from __future__ import annotations

import gc
import json
import re
import weakref
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError, UsageError
from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.comparisons import compare_pairs
from evaluation.statistics.intervals import compute_share_interval
from mergemill.bench import reports, results
from mergemill.bench.metrics import EffortMetric, Metric, PartsMetric, StatesMetric, load_metric
from mergemill.bench.reports import list_remarks, render_markdown
from mergemill.bench.results import ORIGINS, describe_size
from mergemill.bench.sets import freeze
from mergemill.execution.grader_version import compute_grader_version
from samplers.gateway.exchanges import Exchange
from taskdb.artifacts import Artifacts
from taskdb.queries.bench import list_runs
from taskdb.queries.families import unite_families
from taskdb.records import Kind
from taskdb.records.bench import BenchRun
from taskdb.records.oracles import MaterialSize, ReviewOracle
from taskdb.records.rollouts import Leak, ObservedState, Rollout, RolloutStatus, TrajectoryRole
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.bench.making import LIMITS, add_run, find_row, make_scored, make_set, report
from tests.mergemill.bench.test_held_out import add_relative
from tests.samplers.trajectories.making import SYSTEM, TASK, call
from tests.samplers.trajectories.test_build import exchange
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.test_rollouts import make_trajectory

OWN_METRIC = """
from mergemill.bench.metrics import Metric


class Lines(Metric):
    amounts = frozenset({"attempt"})

    def score(self, subject, rollout):
        return {"odd": float(rollout.attempt % 2), "attempt": rollout.attempt, "absent": None}

    def aggregate(self, values):
        return max(values)
"""


def solve_half(number: int, attempt: int) -> float:
    """Return 1 for every second subject, and for the others in the first of four runs."""
    return float(number % 2 == 0 or attempt == 1)


def test_figures_are_those_of_units_in_families(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 12)
    run = add_run(tmp_path, bench_set, tasks, solve_half)
    made = report(tmp_path, run)
    units = [1.0, 0.25] * 6
    share = compute_clustered_mean(units, [str(number) for number in range(12)])
    low, high = compute_share_interval(share) or (0, 0)
    row = find_row(made["figures"], column="resolved", group="")
    assert (row["mean"], row["low"], row["high"]) == (0.625, round(low, 6), round(high, 6))
    assert (row["n"], row["families"], row["bounds"]) == (12, 12, None)
    assert find_row(made["figures"], column="pass@2", group="")["mean"] == 0.75
    assert find_row(made["figures"], column="pass^4", group="")["mean"] == 0.5
    (described,) = made["runs"]
    assert (described["scored"], described["planned"], described["k"], described["flags"]) == (48, 48, 4, [])
    assert described["ends"] == {"done": 48}


def test_a_family_counts_once(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 11)
    with Store.open(make_url(tmp_path)) as store:
        tasks.append(add_relative(store, tasks[0], "terse", kind=Kind.TERSE, variant_of=tasks[0].name))
        bench_set = freeze(store, "first", tasks, LIMITS, held_out=False)
    row = find_row(report(tmp_path, add_run(tmp_path, bench_set, tasks, solve_half))["figures"], column="resolved")
    assert (row["n"], row["families"]) == (12, 11)
    families = unite_families({"a": frozenset("12"), "b": frozenset("3"), "c": frozenset("23"), "d": frozenset("4")})
    assert families == {"a": "a", "b": "a", "c": "a", "d": "d"}


def test_an_infrastructure_failure_is_never_0_and_gives_bounds(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 10)
    lost = {(0, 1), (0, 2), (3, 4)}
    run = add_run(tmp_path, bench_set, tasks, lambda *key: None if key in lost else 1.0)
    made = report(tmp_path, run)
    row = find_row(made["figures"], column="resolved")
    assert (row["mean"], row["n"], row["bounds"]) == (1.0, 10, [0.925, 1.0])
    (described,) = made["runs"]
    assert (described["scored"], described["planned"], described["incomplete"]) == (37, 40, 2)
    assert described["flags"] == ["incomplete"]
    assert any("37 of 40 rollouts scored" in line for line in list_remarks(made))


def test_a_subject_that_was_never_scored_is_in_the_bounds_alone(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 4)
    run = add_run(tmp_path, bench_set, tasks, lambda number, _: None if number == 0 else 1.0, runs=2)
    row = find_row(report(tmp_path, run)["figures"], column="value")
    assert (row["mean"], row["n"], row["bounds"]) == (1.0, 3, [0.75, 1.0])
    nothing = add_run(tmp_path, bench_set, tasks, lambda *_: None, runs=2, checkpoint="none")
    assert report(tmp_path, nothing)["figures"] == []


def test_few_families_have_no_interval(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 9)
    row = find_row(report(tmp_path, add_run(tmp_path, bench_set, tasks, solve_half))["figures"], column="resolved")
    assert (row["low"], row["high"], row["mean"] is None) == (None, None, False)


def test_groups_have_figures_of_their_own(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 12)
    run = add_run(tmp_path, bench_set, tasks, solve_half)
    made = report(tmp_path, run, by=("language", "kind"), cutoff="2024-03-08")
    groups = [row["group"] for row in made["figures"] if row["column"] == "resolved"]
    assert groups == ["", "language=python", "kind=bugfix", "before 2024-03-08", "from 2024-03-08"]
    parts = [find_row(made["figures"], column="resolved", group=group)["n"] for group in groups]
    assert parts == [12, 12, 12, 6, 6]
    with pytest.raises(UsageError, match="--by: moon is unknown"):
        report(tmp_path, run, by=("moon",))


def test_a_run_has_a_cutoff_of_its_own_which_that_of_a_report_replaces(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 12)
    run = add_run(tmp_path, bench_set, tasks, solve_half)
    dated = BenchRun(**run.model_dump() | {"cutoff": "2024-03-08"})
    other = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="b")
    with Store.open(make_url(tmp_path)) as store:
        store.add(dated)
        assert [(stored.checkpoint, stored.cutoff) for stored in list_runs(store)] == [("", "2024-03-08"), ("b", "")]
    rows = [row for row in report(tmp_path, dated, other)["figures"] if row["column"] == "resolved"]
    names = [f"{row['run']}: {row['group']}" for row in rows]
    own = ["", "before 2024-03-08", "from 2024-03-08"]
    assert names == [*(f"first/react/m: {group}" for group in own), "first/react/m@b: "]
    rows = report(tmp_path, dated, cutoff="2024-03-03")["figures"]
    assert {row["group"] for row in rows} == {"", "before 2024-03-03", "from 2024-03-03"}


def test_reviews_are_grouped_by_the_size_of_their_material(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        tasks = []
        for number, size in enumerate((12_000, 999_999, 700, 5_000, None), start=1):
            material = MaterialSize(files=2, n_bytes=size) if size is not None else None
            oracle = ReviewOracle(target="clean", files="f" * 64, diff=None, defects=(), material=material)
            fields = {"kind": Kind.REVIEW, "oracle": oracle, "name": f"ada__greet-{number}.review-1"}
            tasks.append(add_lineage(store, number, task_fields=fields))
        bench_set = freeze(store, "first", tasks, LIMITS, held_out=False)
    made = report(tmp_path, add_run(tmp_path, bench_set, tasks, solve_half), by=("material_bytes",))
    groups = [row["group"].partition("=")[2] for row in made["figures"] if row["column"] == "resolved"]
    assert groups == ["", "-", "0 to 999", "5000 to 9999", "10000 to 19999", "500000 or more"]
    assert [describe_size(size) for size in (999, 1000, 500_000)] == ["0 to 999", "1000 to 1999", "500000 or more"]


def test_the_page_of_the_server_names_every_fact_that_groups() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guide" / "query" / "serve.md").read_text()
    grouped = page.partition("`?by=")[2].partition(" groups")[0]
    assert set(re.findall(r"\w+", grouped)) - {"or"} == set(ORIGINS)


def test_a_comparison_is_paired_and_corrected(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 12)
    base = add_run(tmp_path, bench_set, tasks, lambda number, _: float(number < 3), checkpoint="a")
    better = add_run(tmp_path, bench_set, tasks, lambda number, _: float(number < 9), checkpoint="b")
    other = add_run(tmp_path, bench_set, tasks, lambda number, _: float(number < 4), checkpoint="c")
    made = report(tmp_path, better, other, against=base)
    expected = compare_pairs(
        [float(n < 3) for n in range(12)], [float(n < 9) for n in range(12)], [str(n) for n in range(12)]
    )
    assert expected is not None
    row = find_row(made["differences"], run="first/react/m@b", column="resolved")
    assert (row["against"], row["difference"], row["n"], row["families"]) == ("first/react/m@a", 0.5, 12, 12)
    assert (row["low"], row["high"]) == (round(expected.low, 6), round(expected.high, 6))
    assert row["detectable"] == round(expected.detectable, 6)
    assert row["p_holm"] == pytest.approx(2 * row["p"])
    assert find_row(made["differences"], run="first/react/m@c", column="value")["p_holm"] == 0.5
    assert [described["run"][-1] for described in made["runs"]] == ["b", "c", "a"]


def test_a_comparison_stops_at_another_version_of_the_grader(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 3)
    base = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="a")
    later = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="b", grader="2")
    assert report(tmp_path, later)["runs"][0]["graders"] == ["2"]
    with pytest.raises(InputError, match=r"changed-grader: ada__greet-1.bugfix was graded by 1, 2") as raised:
        report(tmp_path, later, against=base)
    assert raised.value.advice == "mergemill bench regrade first/react/m@b first/react/m@a"


def test_an_unknown_version_of_the_grader_is_named_and_compared_with_unknown_ones_alone(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 3)
    base = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="a", grader="")
    later = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="b", grader="")
    made = report(tmp_path, later, against=base)
    assert [(run["graders"], run["flags"][-1]) for run in made["runs"]] == [([], "unknown-grader")] * 2
    assert find_row(made["differences"], column="resolved")["difference"] == 0.0
    assert all(remark.endswith("unknown-grader)") for remark in list_remarks(made)[1:])
    known = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="c", grader=compute_grader_version())
    assert "unknown-grader" not in report(tmp_path, known)["runs"][0]["flags"]
    with pytest.raises(InputError, match=r"changed-grader: .* an unknown version, 0\.") as raised:
        report(tmp_path, known, against=base)
    assert raised.value.advice == "mergemill bench regrade first/react/m@a"


def test_the_advice_at_another_version_names_the_runs_of_any_scaffold(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 2)
    known = add_run(tmp_path, bench_set, tasks, solve_half, grader=compute_grader_version())
    for fields, advice in (
        ({"scaffold": "noop", "model": ""}, "mergemill bench regrade first/noop"),
        ({"scaffold": "predictions", "model": "theirs"}, "mergemill bench regrade first/predictions/theirs"),
    ):
        base = add_run(tmp_path, bench_set, tasks, solve_half, grader="", **fields)
        with pytest.raises(InputError, match="changed-grader") as raised:
            report(tmp_path, known, against=base)
        assert raised.value.advice == advice


@pytest.mark.parametrize(("grader", "more"), [("2", []), ("", ["unknown-grader"])])
def test_scores_of_two_versions_in_one_run_are_marked(grader: str, more: list[str], tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 2)
    rollouts = [make_scored(tasks[0], 1, 1.0), make_scored(tasks[1], 1, 0.0, grader=grader)]
    run = BenchRun(
        parent=bench_set.id,
        name="first",
        scaffold="react",
        scaffold_version="1",
        model="m",
        runs=1,
        rollouts=tuple(rollout.id for rollout in rollouts),
    )
    with Store.open(make_url(tmp_path)) as store:
        store.add(*rollouts, run)
    assert report(tmp_path, run)["runs"][0]["flags"] == ["mixed-graders", *more]


def test_runs_of_several_sets_are_refused(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 3)
    with Store.open(make_url(tmp_path)) as store:
        smaller = freeze(store, "first", tasks[:2], LIMITS, held_out=False)
    runs = [add_run(tmp_path, chosen, tasks[:2], solve_half) for chosen in (bench_set, smaller)]
    with pytest.raises(InputError, match="of several sets"):
        report(tmp_path, *runs)


@pytest.mark.parametrize(("words", "k"), [(("ls", "ls"), 1), (("ls", "id"), 2)])
def test_runs_that_are_equal_token_for_token_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str], k: int
) -> None:
    def load_exchanges(rollout: Rollout, artifacts: Artifacts) -> list[Exchange]:
        del artifacts
        return [exchange(0, [SYSTEM, TASK], call(0, words[rollout.attempt - 1]))]

    monkeypatch.setattr(results, "load_exchanges", load_exchanges)
    bench_set, tasks = make_set(tmp_path, 10)
    run = add_run(tmp_path, bench_set, tasks, lambda number, _: float(number < 5), runs=2, requests=1)
    made = report(tmp_path, run)
    (described,) = made["runs"]
    assert (described["k"], described["flags"]) == (k, ["runs-identical"] if k == 1 else [])
    assert (described["scored"], described["planned"]) == (10 * k, 10 * k)
    assert find_row(made["figures"], column="resolved")["mean"] == 0.5
    assert ("pass@2" in {row["column"] for row in made["figures"]}) == (k == 2)


def test_amounts_have_medians_and_parts_have_columns(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 12)
    leak = Leak(name="git-history", exchange=0, quote="git log")
    run = add_run(tmp_path, bench_set, tasks, solve_half, parts={"recall": 0.5}, leaks=(leak,))
    made = report(tmp_path, run, metrics=(EffortMetric(), PartsMetric()))
    row = find_row(made["figures"], column="requests")
    assert (row["median"], row["low"], row["high"]) == (5.5, 5.5, 5.5)
    assert find_row(made["figures"], column="parts.recall")["mean"] == 0.5
    assert made["runs"][0]["leaks"] == {"git-history": 48}


def test_a_report_counts_broken_rules_ends_and_leaks(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 4)
    leak = Leak(name="dns", exchange=0, quote="dig")
    run = add_run(tmp_path, bench_set, tasks, solve_half, runs=1, leaks=(leak,))
    with Store.open(make_url(tmp_path)) as store:
        rollouts = [store.get(Rollout, key) for key in run.rollouts]
        broken = {"loops": 3.0, "tool_errors": 0.9, "tool_error_run": 9.0, "repeats": 0.1}
        store.add(
            make_trajectory(rollouts[0], metrics=broken),
            make_trajectory(rollouts[1], metrics={"loops": 2.0}),
            # Two roots of a rollout break a rule: it is a rollout.
            *(make_trajectory(rollouts[2], root, metrics={"loops": 5.0}) for root in (0, 1)),
            make_trajectory(rollouts[3], metrics={"loops": 5.0}, role=TrajectoryRole.SUB_AGENT),
        )
    made = report(tmp_path, run)
    assert made["runs"][0]["quality"] == {"measured": 3, "rules": {"loops": 2, "tool_errors": 1}}
    lines = list_remarks(made)
    assert "first/react/m: leaks: dns 4" in lines
    assert "first/react/m: of 3 conversations, that break rules of selection: loops 2, tool_errors 1" in lines
    assert not any("ended by" in line for line in lines)
    late = {"status": RolloutStatus.FAILED, "reason": "turn-limit", "checkpoint": "late"}
    made = report(tmp_path, add_run(tmp_path, bench_set, tasks, solve_half, runs=1, **late))
    assert made["runs"][0]["quality"] == {"measured": 0, "rules": {}}
    assert list_remarks(made)[2:] == ["first/react/m@late: ended by turn-limit 4"]


def test_the_drift_of_states_is_a_metric_of_the_rollouts_that_have_it(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 10)
    states = tuple(ObservedState(exchange=number, tree=tree) for number, tree in enumerate("aabab"))
    made = report(tmp_path, add_run(tmp_path, bench_set, tasks, solve_half, states=states), metrics=(StatesMetric(),))
    figures = {row["column"]: row.get("mean", row.get("median")) for row in made["figures"]}
    assert figures == {"states.unchanged": 0.25, "states.returned": 0.5, "states.steps": 4.0, "states.returns": 2.0}
    unseen = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="unseen")
    assert report(tmp_path, unseen, metrics=(load_metric("states"),))["figures"] == []


def test_a_metric_of_a_users_own_is_a_class(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 10)
    add_run(tmp_path, bench_set, tasks, solve_half)
    (tmp_path / "own_metric.py").write_text(OWN_METRIC)
    words = ("bench", "report", "first/react/m", "--metric", "own_metric:Lines", "--format", "json")
    done = run_mergemill(*words, "--db", make_url(tmp_path), cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    figures = {row["column"]: row for row in done.json["figures"]}
    assert set(figures) == {"odd", "attempt"}
    assert (figures["odd"]["mean"], figures["attempt"]["median"]) == (1.0, 4.0)


def test_bad_metrics_are_a_line(tmp_path: Path) -> None:
    for word, line in (("moon", "unknown"), ("json:loads", "no complete subclass"), ("x:y", "cannot be loaded")):
        with pytest.raises(UsageError, match=line):
            load_metric(word)

    class Big(Metric):
        def score(self, subject: object, rollout: object) -> dict[str, float | None]:
            return {"big": 7.0}

    bench_set, tasks = make_set(tmp_path, 2)
    with pytest.raises(InputError, match="big has values beyond 0 and 1"):
        report(tmp_path, add_run(tmp_path, bench_set, tasks, solve_half), metrics=(Big(),))


def test_a_report_is_the_same_in_every_form_and_each_time(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 12)
    run = add_run(tmp_path, bench_set, tasks, lambda n, a: None if n == a == 1 else solve_half(n, a), checkpoint="b")
    base = add_run(tmp_path, bench_set, tasks, solve_half, checkpoint="a")
    words = (
        "bench",
        "report",
        "first/react/m@b",
        "--against",
        base.id[:10],
        "--by",
        "kind",
        "--db",
        make_url(tmp_path),
    )
    for name in ("json", "markdown", "table"):
        done = [run_mergemill(*words, "--format", name, cwd=tmp_path) for _ in range(2)]
        assert done[0].exit_code == 0, done[0].stderr
        assert done[0].stdout == done[1].stdout
    made = report(tmp_path, run, against=base, by=("kind",))
    text = render_markdown(made)
    assert text.startswith("# first\n\n- first 1: 12 subjects in 12 families\n- first/react/m@b: 47 of 48")
    assert "## Differences" in text
    assert "nan" not in json.dumps(made).lower()
    wrong = run_mergemill(*words, "--format", "xml", cwd=tmp_path)
    assert (wrong.exit_code, "--format: xml is unknown" in wrong.stderr) == (2, True)
    missing = run_mergemill("bench", "report", "none", "--db", make_url(tmp_path), cwd=tmp_path)
    assert (missing.exit_code, "there is no run none" in missing.stderr) == (3, True)


def test_a_report_holds_the_rollouts_of_one_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not searched for garbage, for which half of the time of reading them goes."""
    bench_set, tasks = make_set(tmp_path, 3)
    runs = [add_run(tmp_path, bench_set, tasks, solve_half, checkpoint=word) for word in "abc"]
    held: list[weakref.ref[results.RunResults]] = []
    load = results.load_results

    def load_and_count(*words: Any) -> results.RunResults:
        assert [known() for known in held if known() is not None] == []
        assert not gc.isenabled()
        loaded = load(*words)
        held.append(weakref.ref(loaded))
        return loaded

    monkeypatch.setattr(reports, "load_results", load_and_count)
    assert len(report(tmp_path, *runs)["runs"]) == len(held) == 3
    assert gc.isenabled()
