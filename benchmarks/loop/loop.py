"""The stages of the loop, in order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.loop.expert import answer_as_expert
from benchmarks.loop.plan import LoopPlan
from benchmarks.loop.repository import BugFix, make_repository, plan_fixes
from benchmarks.loop.training import RANDOM, begin_model, fine_tune, read_reinforcement
from benchmarks.loop.workspace import StageReport, Workspace
from tests.samplers.scripted_model import ScriptedModel

OWNER, REPOSITORY = "ada", "depot"
EXPERT = "expert"
DEMONSTRATED, FILTERED, REINFORCED = "demonstrated", "filtered", "reinforced"
MODELS = {
    DEMONSTRATED: "before: SFT on the expert's trajectories",
    FILTERED: "then SFT on its own that passed",
    REINFORCED: "then RL",
}
"""Models that are measured, each trained from the one before."""
PIPELINE = ("--certify-exploits", "off", "--repeats", "1")
"""Left out for time: the audit's submissions, and repetitions of the runs before and after the fix."""
ALIKE = ("--max-patch-similarity", "1", "--max-statement-similarity", "1")
"""The changes are alike by design, which mining would reject."""
ROLLOUTS = (
    *("--scaffold", "react", "--token-ids", "vllm", "--rollout-turns", "6", "--workers", "4"),
    *("--sampling", "temperature=1.0", "--sampling", "max_tokens=64"),
)


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One run of the loop."""

    plan: LoopPlan
    space: Workspace

    @property
    def fixes(self) -> list[BugFix]:
        """Changes of the repository."""
        return plan_fixes(self.plan.n_train, self.plan.n_held_out)

    def list_tasks(self, *, held_out: bool) -> list[str]:
        """Return the names of tasks."""
        return [name_task(fix) for fix in self.fixes if fix.is_held_out == held_out]

    def run(self) -> dict[str, StageReport]:
        """Run all stages that are not done; return the reports of all."""
        stages = {
            "environment": self._install,
            "repository": self._make_repository,
            "pipeline": self._run_pipeline,
            "demonstrations": self._demonstrate,
            "model": self._begin_model,
            "sft-on-demonstrations": lambda: self._fine_tune(EXPERT, RANDOM, DEMONSTRATED),
            "sample-demonstrated": lambda: self._sample(DEMONSTRATED),
            "filter": lambda: self._export_messages(DEMONSTRATED),
            "sft-on-filtered": lambda: self._fine_tune(DEMONSTRATED, DEMONSTRATED, FILTERED),
            "sample-filtered": lambda: self._sample(FILTERED),
            "reinforcement": self._reinforce,
            "sample-reinforced": lambda: self._sample(REINFORCED),
        }
        return {name: self.space.run_stage(name, stage) for name, stage in stages.items()}

    def _install(self) -> dict[str, Any]:
        self.space.install_trainer()
        return {}

    def _make_repository(self) -> dict[str, Any]:
        make_repository(self.space.clear(self.space.out / OWNER / REPOSITORY), self.fixes)
        for held_out in (False, True):
            self._get_list(held_out=held_out).write_text("\n".join(self.list_tasks(held_out=held_out)) + "\n")
        return {"changes": len(self.fixes)}

    def _get_list(self, *, held_out: bool) -> Path:
        """Return the file of task names, for `--ids`."""
        return self.space.out / ("held-out.txt" if held_out else "train.txt")

    def _run_pipeline(self) -> dict[str, Any]:
        """Make certified tasks.

        Raises:
            SystemExit: not every change has become one.
        """
        self.space.run_mergemill("run", f"git:{OWNER}/{REPOSITORY}", *PIPELINE, *ALIKE)
        tasks = self.space.run_mergemill("tasks", "list", "--status", "certified")
        missing = {name_task(fix) for fix in self.fixes} - {task["name"] for task in tasks}
        if missing:
            raise SystemExit(f"not certified: {', '.join(sorted(missing))}")
        return {"certified": len(tasks)}

    def _demonstrate(self) -> dict[str, Any]:
        shown = self.list_tasks(held_out=False)[: self.plan.n_demonstrated]
        with ScriptedModel(answer_as_expert) as expert:
            self._run_sample(EXPERT, expert.url, shown, attempts=1)
        return self._export_messages(EXPERT)

    def _run_sample(self, model: str, url: str, tasks: Sequence[str], *, attempts: int) -> dict[str, Any]:
        words = ("--model", model, "--upstream", url, "--only", ",".join(tasks), "--attempts", str(attempts))
        return self.space.run_mergemill("sample", *ROLLOUTS, *words)[-1]

    def _export_messages(self, model: str) -> dict[str, Any]:
        """Select the rollouts of a model on tasks to train on, and export their conversations; return the counts."""
        on_train = ("--model", model, "--ids", str(self._get_list(held_out=False)))
        summary = self.space.run_mergemill("trajectories", "select", *on_train)[-1]
        export = (
            "trajectories",
            "export",
            "--format",
            "messages",
            "--out",
            str(self.space.clear(self._get_data(model))),
        )
        rows = self.space.run_mergemill(*export, *on_train)[-1]["rows"]
        return {"trajectories": summary["trajectories"], "selected": summary["selected"], "rows": rows}

    def _get_data(self, model: str) -> Path:
        return self.space.out / "data" / model

    def _find_rows(self, model: str) -> str:
        return str(next(iter(self._get_data(model).glob("*.jsonl"))))

    def _begin_model(self) -> dict[str, Any]:
        return begin_model(self.space, self._find_rows(EXPERT), layers=self.plan.layers, width=self.plan.width)

    def _fine_tune(self, data: str, model: str, made: str) -> dict[str, Any]:
        plan = self.plan
        epochs, until, rate = (
            (plan.demonstration_epochs, plan.demonstration_loss, plan.demonstration_rate)
            if made == DEMONSTRATED
            else (plan.filtered_epochs, 0.0, plan.filtered_rate)
        )
        return fine_tune(self.space, model, self._find_rows(data), made, epochs=epochs, until=until, rate=rate)

    def _sample(self, model: str) -> dict[str, Any]:
        """Sample all tasks: the reward of a model. Return numbers of the sampling."""
        with self.space.serve_model(model) as url:
            tasks = [name_task(fix) for fix in self.fixes]
            summary = self._run_sample(model, url, tasks, attempts=self.plan.attempts)
        return {name: summary[name] for name in ("statuses", "resolved", "requests", "completion_tokens")}

    def _reinforce(self) -> dict[str, Any]:
        plan, out = self.plan, self.space.clear(self.space.get_model(REINFORCED))
        settings = {
            "tasks": self.list_tasks(held_out=False),
            "steps": plan.rl_steps,
            "tasks_per_step": plan.rl_tasks,
            "attempts": plan.rl_attempts,
            "rate": plan.rl_rate,
            "sample": self.space.make_mergemill_command("sample", *ROLLOUTS),
            "export": self.space.make_mergemill_command(
                "trajectories", "export", "--format", "parquet", "--unselected"
            ),
            "model": plan.rl_model,
        }
        path = self.space.out / "rl.json"
        path.write_text(json.dumps(settings))
        files = ("--model", str(self.space.get_model(FILTERED)), "--settings", str(path), "--out", str(out))
        self.space.run_trainer("rl", *files)
        return read_reinforcement(self.space, REINFORCED)


def name_task(fix: BugFix) -> str:
    """Return the name of the task that a change becomes."""
    return f"{OWNER}__{REPOSITORY}-{fix.number}.bugfix"
