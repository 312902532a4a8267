"""The stages of the loop, in order."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.loop.training import TAUGHT, TRAINED, begin_model, read_reinforcement, teach
from benchmarks.loop.workspace import MERGEMILL, StageReport, Workspace
from benchmarks.simulated_loop.plan import SimulatedLoopPlan
from benchmarks.simulated_loop.shop import play_case, write_cases, write_conversation, write_shop
from tests.samplers.scripted_model import ScriptedModel

MODELS = {TAUGHT: "before: SFT on simulated conversations", TRAINED: "then GRPO on simulated episodes"}
"""Models that are measured, each trained from the one before."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
ALIKE = ("--simulate-near-duplicates", "1", "--simulate-scenarios", "off", "--simulate-failures", "0")
"""The conversations are alike by design, which the last step would drop; nothing is drawn besides their numbers."""


@dataclass(frozen=True)
class SimulatedLoop:
    """One run of the loop."""

    plan: SimulatedLoopPlan
    space: Workspace

    def run(self) -> dict[str, StageReport]:
        """Run all stages that are not done; return the reports of all."""
        stages = {
            "environment": self._install,
            "rows": self.simulate,
            "model": self._begin_model,
            "sft": self._fine_tune,
            "play-before": lambda: self._play(TAUGHT),
            "reinforcement": self._reinforce,
            "play-after": lambda: self._play(TRAINED),
        }
        return {name: self.space.run_stage(name, stage) for name, stage in stages.items()}

    def _install(self) -> dict[str, Any]:
        self.space.install_trainer()
        return {}

    @property
    def _material(self) -> tuple[str, ...]:
        return ("--seeds", str(self.space.out / "seeds.json"), "--domain", str(self.space.out / "shop"))

    def simulate(self) -> dict[str, Any]:
        """Write pack and seeds; simulate conversations to train on."""
        out = self.space.clear(self.space.out / "rows")
        write_shop(self.space.clear(self.space.out / "shop"))
        write_cases(self.space.out / "seeds.json")
        with ScriptedModel(write_conversation) as simulator:
            words = ("--per-seed", str(self.plan.per_seed), "--simulate-prefilter", "off", "--simulate-pause", "0")
            model = ("--llm", simulator.url, "--model", "script", "--out", str(out))
            summary = self.space.run_mergemill("simulate", "sft", *self._material, *words, *ALIKE, *model)[-1]
        return {"rows": summary["kept"], "dropped": summary["dropped"]}

    @property
    def _rows(self) -> str:
        return str(self.space.out / "rows" / "messages" / "train.jsonl")

    def _begin_model(self) -> dict[str, Any]:
        return begin_model(self.space, self._rows, layers=self.plan.layers, width=self.plan.width)

    def _fine_tune(self) -> dict[str, Any]:
        return teach(self.space, self._rows, self.plan)

    @contextmanager
    def serve(self, name: str) -> Iterator[str]:
        """Serve the tasks with the scripted simulator; yield the address. Records are in `episodes/NAME`."""
        out = self.space.clear(self.space.out / "episodes" / name)
        with ScriptedModel(play_case) as simulator:
            words = ("--port", "0", "--llm", simulator.url, "--model", "script", "--episode-rewrites", "0")
            command = [*MERGEMILL, "simulate", "env", *self._material, *words, "--out", str(out)]
            server = subprocess.Popen(command, cwd=self.space.out, stderr=subprocess.PIPE, text=True)
            with server:
                try:
                    yield _read_address(server)
                finally:
                    server.terminate()

    def _play(self, model: str) -> dict[str, Any]:
        """Play all tasks with a model."""
        path = self.space.out / f"{model}.json"
        with self.serve(model) as url:
            words = ("--tasks", ",".join(list_tasks(url)), "--attempts", str(self.plan.attempts), "--out", str(path))
            self.space.run_trainer("episodes", "--model", str(self.space.get_model(model)), "--url", url, *words)
        body = json.loads(path.read_text())
        rewards = [reward for reward in body["rewards"] if reward is not None]
        return {
            "episodes": len(body["rewards"]),
            "unscored": len(body["rewards"]) - len(rewards),
            "rewarded": sum(reward == 1 for reward in rewards),
            "calls": body["n_calls"],
            "valid": body["n_calls"] - body["n_refused"],
        }

    def _reinforce(self) -> dict[str, Any]:
        plan, out = self.plan, self.space.clear(self.space.get_model(TRAINED))
        with self.serve("reinforcement") as url:
            tasks = list_tasks(url)
            settings = {"tasks": tasks, "steps": plan.rl_steps, "tasks_per_step": len(tasks)}
            path = self.space.out / "rl.json"
            path.write_text(json.dumps(settings | {"attempts": plan.rl_attempts, "rate": plan.rl_rate}))
            files = ("--model", str(self.space.get_model(TAUGHT)), "--settings", str(path), "--out", str(out))
            self.space.run_trainer("rl_episodes", "--url", url, *files)
        return read_reinforcement(self.space, TRAINED)


def _read_address(server: subprocess.Popen[str]) -> str:
    lines = []
    for line in server.stderr or ():
        lines.append(line)
        if match := ADDRESS.search(line):
            return match[0]
    raise SystemExit(f"mergemill simulate env has ended: {''.join(lines)}")


def list_tasks(url: str) -> list[str]:
    """Return the ids of a server's tasks."""
    with urllib.request.urlopen(f"{url}/tasks", timeout=60) as answer:  # noqa: S310 - our own server
        return [task["id"] for task in json.loads(answer.read())]
