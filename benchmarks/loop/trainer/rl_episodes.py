"""Reinforcement learning with TRL on episodes of `mergemill simulate env`; an episode without a reward moves nothing.

    python -m benchmarks.loop.trainer.rl_episodes --model DIR --settings FILE.json --url URL --out DIR

The loss is GRPO of `mergemill_client`. What was played in each step is in `episodes.jsonl` of the folder.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mergemill_client.simulated import SimulatedEnvironment, connect

from benchmarks.loop.trainer.decoding import Sampler
from benchmarks.loop.trainer.episodes import play_episode
from benchmarks.loop.trainer.rl import TrainingSettings, make_columns, train

EPS = 0.2
"""Ratios of probabilities are between 1 - EPS and 1 + EPS."""


class EpisodeSource:
    """TRL's `rollout_func`: the prompts are ids of tasks, each as often as it is attempted."""

    def __init__(self, sampler: Sampler, server: SimulatedEnvironment, log: Path) -> None:
        self.sampler, self.server, self.log = sampler, server, log
        self.step = 0

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """Return tokens, masks, log-probabilities and rewards of one episode for each prompt."""
        del trainer
        self.sampler.forget()
        played = [play_episode(self.sampler, self.server, task) for task in prompts]
        with self.log.open("a") as log:
            for task, episode in zip(prompts, played, strict=True):
                value = episode.rollout.value
                log.write(
                    json.dumps({"step": self.step, "task": task, "episode": episode.episode, "value": value}) + "\n"
                )
        self.step += 1
        return make_columns([episode.rollout for episode in played])


def main() -> None:
    """Write the trained model, its tokenizer, `train.json` and `episodes.jsonl` to the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--settings", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings = TrainingSettings(**json.loads(options.settings.read_text()))
    server, log = connect(options.url), options.out / "episodes.jsonl"
    train(
        options.model,
        settings,
        options.out,
        lambda sampler: EpisodeSource(sampler, server, log),
        objective="grpo",
        eps_high=EPS,
        eps_low=EPS,
    )


if __name__ == "__main__":
    main()
