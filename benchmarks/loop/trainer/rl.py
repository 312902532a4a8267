"""Reinforcement learning with TRL: rollouts and rewards are mergemill's, the loss is CISPO of `mergemill_client`.

    python -m benchmarks.loop.trainer.rl --model DIR --settings FILE.json --out DIR

For each step the model, as it is then, is served from this process; `mergemill sample` runs agents on it and grades
what they leave, and `mergemill trajectories export` hands over tokens, masks and rewards. A rollout without a reward
(the infrastructure failed) gives no advantage.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from mergemill_client.training.trl import ObjectiveTrainer
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig

from benchmarks.loop.trainer.decoding import Sampler
from benchmarks.loop.trainer.rows import TokenisedRollout, read_rollouts
from benchmarks.loop.trainer.server import ModelServer

EPS_HIGH = 4.0
"""Upper bound of CISPO's weights, less 1."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Sizes of a training."""

    tasks: list[str]
    steps: int
    tasks_per_step: int
    attempts: int
    rate: float


@dataclass(frozen=True, kw_only=True)
class RlSettings(TrainingSettings):
    """What the loop hands over."""

    sample: list[str]
    """Command that samples, without tasks, attempts, model and upstream."""
    export: list[str]
    """Command that exports tokens, without model and folder."""
    model: str
    """Prefix of the names under which the steps are recorded."""


class RolloutSource:
    """TRL's `rollout_func`: the prompts are names of tasks, each as often as it is attempted."""

    def __init__(self, settings: RlSettings, sampler: Sampler, url: str, out: Path) -> None:
        self.settings, self.sampler, self.url, self.out = settings, sampler, url, out
        self.step = 0

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """Return tokens, masks, log-probabilities and rewards of one rollout for each prompt."""
        del trainer
        self.sampler.forget()
        model = f"{self.settings.model}-{self.step}"
        folder = self.out / "rollouts" / model
        attempts = max(Counter(prompts).values())
        tasks = ",".join(dict.fromkeys(prompts))
        words = ["--model", model, "--only", tasks, "--attempts", str(attempts), "--upstream", self.url]
        subprocess.run([*self.settings.sample, *words], check=True)
        subprocess.run([*self.settings.export, "--model", model, "--out", str(folder)], check=True)
        played = read_rollouts(folder)
        self.step += 1
        seen: Counter[str] = Counter()
        rollouts = []
        for task in prompts:
            seen[task] += 1
            rollouts.append(played.get((task, seen[task])) or TokenisedRollout.make_missing(self.sampler.tokenizer))
        return make_columns(rollouts)


def make_columns(rollouts: Sequence[TokenisedRollout]) -> dict[str, list[Any]]:
    """Return what TRL wants of a `rollout_func`; `value` goes to the reward function."""
    return {
        "prompt_ids": [rollout.prompt for rollout in rollouts],
        "completion_ids": [rollout.completion for rollout in rollouts],
        "env_mask": [rollout.mask for rollout in rollouts],
        "logprobs": [rollout.logprobs for rollout in rollouts],
        "value": [rollout.value for rollout in rollouts],
    }


def give_reward(value: list[float | None], **_: Any) -> list[float | None]:
    """Return the rewards as mergemill graded them."""
    return value


def make_config(settings: TrainingSettings, out: Path) -> GRPOConfig:
    """Return TRL's settings: one update of the weights for each sampling."""
    return GRPOConfig(
        output_dir=str(out / "trainer"),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.attempts,
        gradient_accumulation_steps=settings.tasks_per_step,
        num_generations=settings.attempts,
        learning_rate=settings.rate,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=True,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        seed=0,
    )


def measure_change(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> float:
    """Return the norm of the difference of two sets of weights."""
    return float(torch.sqrt(sum(((after[name] - before[name]) ** 2).sum() for name in before)))


def train(
    folder: Path,
    settings: TrainingSettings,
    out: Path,
    make_source: Callable[[Sampler], Callable[[list[str], Any], dict[str, list[Any]]]],
    **objective: Any,
) -> None:
    """Train a model; write it, its tokenizer and `train.json`.

    Args:
        folder: of the model.
        settings: sizes.
        out: folder for what is written.
        make_source: returns TRL's `rollout_func` for a sampler of the weights as they are.
        objective: of `ObjectiveTrainer`.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    trainer = ObjectiveTrainer(
        model,
        reward_funcs=give_reward,
        args=make_config(settings, out),
        train_dataset=Dataset.from_list([{"prompt": task} for task in settings.tasks]),
        processing_class=tokenizer,
        rollout_func=make_source(Sampler(model, tokenizer, seed=1)),
        **objective,
    )
    trainer.train()
    trainer.save_model(str(out))
    change = measure_change(before, {name: value.detach() for name, value in model.named_parameters()})
    (out / "train.json").write_text(json.dumps({"change": change, "log": trainer.state.log_history}))


def main() -> None:
    """Write the trained model, its tokenizer and `train.json` to the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--settings", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = RlSettings(**json.loads(options.settings.read_text()))
    with contextlib.ExitStack() as stack:

        def make_source(sampler: Sampler) -> RolloutSource:
            server = stack.enter_context(ModelServer(sampler))
            return RolloutSource(settings, sampler, server.url, options.out)

        train(options.model, settings, options.out, make_source, objective="cispo", eps_high=EPS_HIGH)


if __name__ == "__main__":
    main()
