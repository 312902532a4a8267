"""Plans of a run: which seed, scenario and failure each conversation has, and what the prompt holds of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import UsageError
from simulators.domains.pack import load_pack
from simulators.jobs import plan_jobs
from simulators.options import DEFAULT, PROFILES, SIMIA, apply_profile, resolve_options
from simulators.prompting import ConversationPrompts
from simulators.scenarios import FAILURES, NEW, SCENARIOS
from simulators.seeds.reading import read_seeds
from simulators.seeds.seed import Seed
from tests.simulators.making import write_seeds


@pytest.fixture
def seeds(tmp_path: Path) -> list[Seed]:
    return read_seeds(write_seeds(tmp_path / "seeds.json", range(10))).seeds


def test_each_seed_comes_as_often_as_every_other(seeds: list[Seed]) -> None:
    jobs = plan_jobs(seeds, PROFILES[DEFAULT], total=25)
    counts = Counter(job.seed.id for job in jobs)
    assert sorted(counts.values()) == [2] * 5 + [3] * 5
    assert [job.seed.id for job in jobs[:10]] == [seed.id for seed in seeds]
    assert Counter(job.seed.id for job in plan_jobs(seeds, PROFILES[DEFAULT], per_seed=4)) == {s.id: 4 for s in seeds}


def test_simia_draws_seeds_with_replacement(seeds: list[Seed]) -> None:
    jobs = plan_jobs(seeds, PROFILES[SIMIA], total=100)
    counts = Counter(job.seed.id for job in jobs)
    assert len(set(counts.values())) > 2
    other = plan_jobs(seeds, replace(PROFILES[SIMIA], draw=1), total=100)
    assert [job.name for job in jobs] == [job.name for job in plan_jobs(seeds, PROFILES[SIMIA], total=100)]
    assert [job.name for job in jobs] != [job.name for job in other]


@pytest.mark.parametrize("profile", [DEFAULT, SIMIA])
def test_a_longer_run_begins_with_the_jobs_of_a_shorter_one(seeds: list[Seed], profile: str) -> None:
    assert plan_jobs(seeds, PROFILES[profile], total=40)[:15] == plan_jobs(seeds, PROFILES[profile], total=15)


def test_scenarios_and_failures_are_drawn_by_seed_and_sample(seeds: list[Seed]) -> None:
    jobs = plan_jobs(seeds, PROFILES[DEFAULT], per_seed=60)
    scenarios = Counter(job.scenario.name for job in jobs)
    assert set(scenarios) == {scenario.name for scenario in SCENARIOS}
    assert min(scenarios.values()) > 60
    failing = [job.failure for job in jobs if job.failure]
    assert 30 < len(failing) < 100
    assert {scenario.name for scenario in failing} == {failure.name for failure in FAILURES}
    few = plan_jobs(seeds[3:4], PROFILES[DEFAULT], per_seed=60)
    assert few == [job for job in jobs if job.seed.id == seeds[3].id]
    plain = plan_jobs(seeds, replace(PROFILES[DEFAULT], scenarios=False, failures=0.0), per_seed=60)
    assert {(job.scenario, job.failure) for job in plain} == {(NEW, None)}


def test_one_of_both_numbers_is_needed(seeds: list[Seed]) -> None:
    for numbers in ({}, {"per_seed": 1, "total": 1}):
        with pytest.raises(UsageError, match="--per-seed and --total"):
            plan_jobs(seeds, PROFILES[DEFAULT], **numbers)


def test_a_prompt_has_tools_rules_example_and_scenario(seeds: list[Seed]) -> None:
    pack = load_pack("retail")
    job = replace(plan_jobs(seeds, PROFILES[DEFAULT], per_seed=1)[0], scenario=SCENARIOS[3], failure=FAILURES[0])
    system, user = ConversationPrompts(pack, "conversation-1").render(job)
    assert (system.role, user.role) == ("system", "user")
    for part in (
        pack.policy,
        job.seed.text,
        SCENARIOS[3].text,
        FAILURES[0].text,
        "Write about 22 blocks.",
        *pack.format.rules,
        *(f"- {name}: " for name in pack.tools),
    ):
        assert part in user.text
    assert '"enum": ["no longer needed", "ordered by mistake"]' in user.text
    simia = ConversationPrompts(pack, "simia-1").render(replace(job, scenario=NEW, failure=None))[1].text
    assert f"SYSTEM: {job.seed.conversation.system}\n\n{job.seed.text}" in simia
    assert "Write about 12 blocks" in simia
    assert "enum" not in simia
    assert "I will call\nthe function NAME" in simia


def test_a_seed_cannot_close_the_mark_around_it(seeds: list[Seed]) -> None:
    job = plan_jobs(seeds, PROFILES[DEFAULT], per_seed=1)[0]
    user = ConversationPrompts(load_pack("retail"), "conversation-1").render(job)[1].text
    mark = user.split("the mark ")[1].split(" ")[0]
    assert user.count(f"\n{mark}\n") == 4
    assert mark not in job.seed.text


def test_settings_take_the_place_of_the_profiles_values() -> None:
    settings = Settings.model_validate({"simulate_failures": 0.5, "simulate_scenarios": "on", "workers": 3})
    options = resolve_options(SIMIA, settings.simulation)
    assert (options.failures, options.scenarios, options.seen_ids, options.think) == (0.5, True, False, "text")
    applied = apply_profile(SIMIA, settings)
    assert (applied.cluster.workers, applied.llm.answer_tokens, applied.llm.timeout) == (3, 60_000, 500)
    off = Settings.model_validate({"simulate_seen_ids": "off", "simulate_benchmarks": "a.json, b.json"})
    options = resolve_options(DEFAULT, off.simulation)
    assert (options.seen_ids, options.scenarios, options.benchmarks) == (False, True, ("a.json", "b.json"))
    with pytest.raises(UsageError, match="--profile: frob is unknown"):
        resolve_options("frob", settings.simulation)
