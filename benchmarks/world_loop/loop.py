"""The stages of the loop, in order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.loop.training import TAUGHT, TRAINED, begin_model, read_reinforcement, teach
from benchmarks.loop.workspace import StageReport, Workspace
from benchmarks.world_loop.expert import SolutionPlayer
from benchmarks.world_loop.plan import WorldLoopPlan
from benchmarks.world_loop.scenarios import (
    DEMONSTRATED,
    MEASURED,
    REINFORCED,
    DrawnScenario,
    draw_scenarios,
    write_worlds,
)
from tests.samplers.scripted_model import ScriptedModel

EXPERT = "expert"
MODELS = {TAUGHT: "before: SFT on solutions", TRAINED: "then RL"}
"""Models that are measured, each trained from the one before."""
STEP = "step"
"""Prefix of the names under which the rollouts of RL are recorded."""
LICENSE = "Apache-2.0"
"""Of the worlds that ship."""
ROLLOUTS = (
    *("--environment", "synthetic", "--scaffold", "dialogue", "--user", "scripted", "--token-ids", "vllm"),
    *("--rollout-turns", "8"),
    *("--workers", "4", "--sampling", "temperature=1.0", "--sampling", "max_tokens=48"),
)
SYNTHETIC = ("--environment", "synthetic")


@dataclass(frozen=True)
class WorldLoop:
    """One run of the loop."""

    plan: WorldLoopPlan
    space: Workspace

    @cached_property
    def scenarios(self) -> dict[str, list[DrawnScenario]]:
        """Purpose -> scenarios."""
        return draw_scenarios(self.plan.scenarios, self.plan.families)

    def list_names(self, purpose: str) -> list[str]:
        """Return the names of a purpose's scenarios in the database."""
        return [scenario.full_name for scenario in self.scenarios[purpose]]

    def run(self) -> dict[str, StageReport]:
        """Run all stages that are not done; return the reports of all."""
        stages = {
            "environment": self._install,
            "scenarios": self._import_scenarios,
            "demonstrations": self._demonstrate,
            "model": self._begin_model,
            "sft": self._fine_tune,
            "sample-before": lambda: self._sample(TAUGHT),
            "reinforcement": self._reinforce,
            "sample-after": lambda: self._sample(TRAINED),
        }
        return {name: self.space.run_stage(name, stage) for name, stage in stages.items()}

    def _install(self) -> dict[str, Any]:
        self.space.install_trainer()
        return {}

    def _import_scenarios(self) -> dict[str, Any]:
        """Bring worlds and scenarios into the database, through all gates.

        Raises:
            SystemExit: not every scenario has passed them.
        """
        drawn = [scenario for scenarios in self.scenarios.values() for scenario in scenarios]
        folders = write_worlds(self.space.clear(self.space.out / "worlds"), drawn)
        # The worlds are to be judged by the states that they ship with, which show every tool at work.
        environments = self._export_bundle("environments", [folder.name for folder in folders])
        scenarios = self._export_bundle("scenarios", [str(folder) for folder in folders])
        events = self.space.run_mergemill("worlds", "import", environments, scenarios, "--license", LICENSE)
        passed = {event["name"] for event in events if event["ok"]}
        missing = {scenario.full_name for scenario in drawn} - passed
        if missing:
            raise SystemExit(f"not certified: {', '.join(sorted(missing))}; see {self.space.out / 'log.txt'}")
        return {purpose: len(scenarios) for purpose, scenarios in self.scenarios.items()}

    def _export_bundle(self, name: str, words: Sequence[str]) -> str:
        """Export worlds in EnvScaler's form; return the file of a name."""
        bundle = self.space.clear(self.space.out / "bundles" / name)
        export = ("--format", "envscaler", "--uncertified", "--out", str(bundle))
        self.space.run_mergemill("worlds", "export", *words, *export)
        return str(bundle / f"{name}.json")

    def _demonstrate(self) -> dict[str, Any]:
        with ScriptedModel(SolutionPlayer(self.scenarios[DEMONSTRATED])) as expert:
            self._run_sample(EXPERT, expert.url, self.list_names(DEMONSTRATED), attempts=1)
        self.space.run_mergemill("trajectories", "select", *SYNTHETIC, "--model", EXPERT, "--select-min-value", "1")
        out = self.space.clear(self.space.out / "data")
        export = ("trajectories", "export", *SYNTHETIC, "--model", EXPERT, "--format", "messages", "--out", str(out))
        rows = self.space.run_mergemill(*export)[-1]["rows"]
        if rows != len(self.scenarios[DEMONSTRATED]):
            raise SystemExit(f"{rows} rows of {len(self.scenarios[DEMONSTRATED])} solutions; see log.txt")
        return {"rows": rows}

    def _run_sample(self, model: str, url: str, names: Sequence[str], *, attempts: int) -> dict[str, Any]:
        words = ("--model", model, "--upstream", url, "--only", ",".join(names), "--attempts", str(attempts))
        return self.space.run_mergemill("sample", *ROLLOUTS, *words)[-1]

    @property
    def _rows(self) -> str:
        return str(self.space.out / "data" / "train.jsonl")

    def _begin_model(self) -> dict[str, Any]:
        return begin_model(self.space, self._rows, layers=self.plan.layers, width=self.plan.width)

    def _fine_tune(self) -> dict[str, Any]:
        return teach(self.space, self._rows, self.plan)

    def _sample(self, model: str) -> dict[str, Any]:
        """Sample the scenarios of RL, and those in which nothing is learned; return numbers of the sampling."""
        names = [*self.list_names(REINFORCED), *self.list_names(MEASURED)]
        with self.space.serve_model(model) as url:
            summary = self._run_sample(model, url, names, attempts=self.plan.attempts)
        return {name: summary[name] for name in ("statuses", "resolved", "requests", "completion_tokens")}

    def _reinforce(self) -> dict[str, Any]:
        plan, out = self.plan, self.space.clear(self.space.get_model(TRAINED))
        export = ("trajectories", "export", *SYNTHETIC, "--format", "parquet", "--unselected")
        names = self.list_names(REINFORCED)
        settings = {
            "tasks": names,
            "steps": plan.rl_steps,
            "tasks_per_step": len(names),
            "attempts": plan.rl_attempts,
            "rate": plan.rl_rate,
            "sample": self.space.make_mergemill_command("sample", *ROLLOUTS),
            "export": self.space.make_mergemill_command(*export),
            "model": STEP,
        }
        path = self.space.out / "rl.json"
        path.write_text(json.dumps(settings))
        files = ("--model", str(self.space.get_model(TAUGHT)), "--settings", str(path), "--out", str(out))
        self.space.run_trainer("rl", *files)
        return read_reinforcement(self.space, TRAINED)
