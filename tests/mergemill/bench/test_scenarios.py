"""Sets with tasks and scenarios: pairs of scaffolds, from the frozen set to the compared report.

Scenarios are played, with a scripted model, in a server of worlds without a container; rollouts of tasks, which need
one, have given values here, and real ones in `tests/samplers/test_known_skill.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import UsageError
from core.settings.group import replace_values
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import SampleRequest, list_pending
from mergemill.bench.running import BenchRequest, run_bench, split_scaffold
from taskdb.artifacts import open_artifacts
from taskdb.records import Kind, Task
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.rollouts import Rollout
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.bench.making import find_row, make_scored
from tests.samplers.scripted_model import ScriptedModel
from tests.samplers.worlds.database import add_world, make_settings
from tests.samplers.worlds.local_server import needs_root, open_local_server
from tests.samplers.worlds.player import ScenarioPlayer
from tests.taskdb.lineages import add_lineage
from worlds.examples.loading import load_example_scenarios, load_example_world

MODEL = "m"
VALUES = {("react", "bugfix"): 1.0, ("react", "test-writing"): 0.5, ("mini-swe-agent", "bugfix"): 0.0}
"""Scaffold and kind of a task -> value of its rollouts; 0 for others."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a database with a bug fix, a task of writing tests, and two scenarios."""
    made = make_settings(tmp_path)
    with Store.open(made.storage.db) as store:
        for number, kind in enumerate((Kind.BUGFIX, Kind.TEST_WRITING), 1):
            add_lineage(store, number, task_fields={"kind": kind, "name": f"ada__greet-{number}.{kind.value}"})
        definitions = load_example_scenarios("library_loans")[:2]
        add_world(store, open_artifacts(made.storage), load_example_world("library_loans"), definitions)
    return made


@pytest.fixture
def run_tasks_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sampling of tasks store rollouts of the values in VALUES."""

    def sample(request: SampleRequest, settings: Settings, _: SamplingProgress) -> int:
        with Store.open(settings.storage.db) as store:
            tasks = store.get_many(Task, request.filters.ids or ())
            for pending in list_pending(store, list(tasks.values()), request)[1]:
                plan, task = pending.plan, tasks[pending.plan.task]
                fields = {"plan": plan.key, "scaffold": plan.scaffold, "scaffold_version": plan.scaffold_version}
                value = VALUES.get((plan.scaffold, task.kind.value), 0.0)
                store.add(make_scored(task, plan.attempt, value, **fields))
        return 0

    monkeypatch.setattr("mergemill.agents.sampling.run.run_sampling", sample)


def run_set(settings: Settings, *scaffolds: str) -> tuple[BenchRun, ...]:
    with Store.open(settings.storage.db) as store:
        bench_set = store.load_all(BenchSet)[-1]
        request = BenchRequest(bench_set=bench_set, scaffolds=scaffolds, model=MODEL, runs=2)
        runs, code = run_bench(store, request, settings, SamplingProgress, open_local_server)
    assert code == 0
    return tuple(runs)


@needs_root
@pytest.mark.usefixtures("run_tasks_by_hand")
def test_a_set_with_tasks_and_scenarios_is_frozen_run_and_compared(settings: Settings, tmp_path: Path) -> None:
    db = ("--db", settings.storage.db)
    freeze = ("bench", "freeze", "both", "--environment", "verified,synthetic", "--out", "both.json", *db)
    done = run_mergemill(*freeze, cwd=tmp_path)
    assert (done.exit_code, done.stdout) == (0, "both 1: 4 subjects in both.json\n"), done.stderr
    with ScriptedModel(ScenarioPlayer()) as model:
        upstream = replace_values(settings, {"upstream": model.url})
        base, other = run_set(upstream, "react+tools", "mini-swe-agent+tools")
        n_requests = len(model.requests)
        assert [run.id for run in run_set(upstream, "react+tools", "mini-swe-agent+tools")] == [base.id, other.id]
        assert len(model.requests) == n_requests
    assert (base.scaffold, other.scaffold) == ("react+tools", "mini-swe-agent+tools")
    assert (len(base.rollouts), len(other.rollouts)) == (8, 8)
    assert len({*base.rollouts} & {*other.rollouts}) == 4  # the scenarios are played once
    with Store.open(settings.storage.db) as store:
        assert len(store.load_all(Rollout)) == 12
    assert run_mergemill("bench", "show", "both.json", *db, cwd=tmp_path).exit_code == 0
    words = ("bench", "report", f"both/mini-swe-agent+tools/{MODEL}", "--against", f"both/react+tools/{MODEL}")
    reported = run_mergemill(*words, "--metric", "value", "--by", "kind", "--format", "json", *db, cwd=tmp_path)
    made = json.loads(reported.stdout)
    assert [(run["scored"], run["planned"], run["flags"]) for run in made["runs"]] == [(8, 8, [])] * 2
    means = {(row["run"].split("/")[1], row["group"]): row["mean"] for row in made["figures"]}
    assert means == {
        ("react+tools", ""): 0.875,
        ("react+tools", "kind=bugfix"): 1.0,
        ("react+tools", "kind=test-writing"): 0.5,
        ("react+tools", "kind=scenario"): 1.0,
        ("mini-swe-agent+tools", ""): 0.5,
        ("mini-swe-agent+tools", "kind=bugfix"): 0.0,
        ("mini-swe-agent+tools", "kind=test-writing"): 0.0,
        ("mini-swe-agent+tools", "kind=scenario"): 1.0,
    }
    assert find_row(made["differences"], column="value")["difference"] == -0.375


@pytest.mark.parametrize(
    ("word", "kinds", "advice"),
    [
        ("react", (True, True), "such as react+tools"),
        ("my:Agent", (True, True), "such as my:Agent+tools"),
        ("tools", (True, True), "such as react+tools"),
        ("react+tools", (True, False), "--scaffold react"),
        ("react+tools", (False, True), "--scaffold tools"),
    ],
)
def test_scaffolds_that_do_not_suit_a_set_are_refused_with_those_that_do(
    word: str, kinds: tuple[bool, bool], advice: str
) -> None:
    with pytest.raises(UsageError) as raised:
        split_scaffold(word, has_tasks=kinds[0], has_scenarios=kinds[1])
    assert (raised.value.advice, f"--scaffold {word}" in str(raised.value)) == (advice, True)


@pytest.mark.parametrize(
    ("word", "kinds", "pair"),
    [
        ("oracle", (True, True), ("oracle", "oracle")),
        ("my:Agent+tools", (True, True), ("my:Agent", "tools")),
        ("react", (True, False), ("react", "")),
        ("tools", (False, True), ("", "tools")),
    ],
)
def test_a_word_names_the_scaffold_of_each_sort_of_subject(
    word: str, kinds: tuple[bool, bool], pair: tuple[str, str]
) -> None:
    assert split_scaffold(word, has_tasks=kinds[0], has_scenarios=kinds[1]) == pair
