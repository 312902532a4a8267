"""Stages that all loops share: a model with random weights, its fine-tuning, and what reinforcement reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.loop.workspace import Workspace

RANDOM = "random"
"""Name of the model with random weights."""
TAUGHT, TRAINED = "taught", "trained"
"""Names of the models that rows have taught, and that rewards have trained after that."""


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """Sizes of a model, of its training, and of its measurement. This one is tiny."""

    layers: int = 2
    width: int = 192
    sft_epochs: int
    """At most."""
    sft_loss: float
    """Mean of five steps below which SFT ends: a model that is sure of all explores nothing."""
    sft_rate: float = 1e-3
    attempts: int
    """Rollouts of each task at each measurement."""
    rl_steps: int
    rl_attempts: int
    """Rollouts of each task in a step, which has all tasks."""
    rl_rate: float = 1e-4


def teach(space: Workspace, rows: str, plan: ModelPlan) -> dict[str, Any]:
    """Train the model with random weights on rows; errors and numbers as of `fine_tune`."""
    return fine_tune(space, RANDOM, rows, TAUGHT, epochs=plan.sft_epochs, until=plan.sft_loss, rate=plan.sft_rate)


def begin_model(space: Workspace, rows: str, *, layers: int, width: int) -> dict[str, Any]:
    """Make tokenizer and model for the rows of a file; return their sizes."""
    out = space.get_model(RANDOM)
    space.run_trainer("begin", "--data", rows, "--layers", str(layers), "--width", str(width), "--out", str(out))
    return dict(json.loads((out / "begin.json").read_text()))


def fine_tune(
    space: Workspace, model: str, rows: str, made: str, *, epochs: int, until: float, rate: float
) -> dict[str, Any]:
    """Train a model on the rows of a file; return numbers of the training.

    Args:
        space: the loop's folder.
        model: name of the model that is trained.
        rows: file of conversations.
        made: name of what it becomes.
        epochs: at most.
        until: loss below which the training ends.
        rate: learning rate.
    """
    out = space.get_model(made)
    files = ("--model", str(space.get_model(model)), "--data", rows, "--out", str(out))
    space.run_trainer("sft", *files, "--epochs", str(epochs), "--until", str(until), "--rate", str(rate))
    steps = [entry for entry in json.loads((out / "train.json").read_text()) if "loss" in entry]
    norms = [entry["grad_norm"] for entry in steps]
    return {
        "rows": len(Path(rows).read_text().splitlines()),
        "steps": len(steps),
        "tokens": int(steps[-1]["num_tokens"]),
        "loss": [round(steps[at]["loss"], 4) for at in (0, -1)],
        "gradient_norms": [round(norm, 4) for norm in (min(norms), max(norms))],
    }


def read_reinforcement(space: Workspace, model: str) -> dict[str, Any]:
    """Return the numbers that a training by rewards left in the folder of its model."""
    made = json.loads((space.get_model(model) / "train.json").read_text())
    steps = [entry for entry in made["log"] if "reward" in entry]
    return {
        "rewards": [round(entry["reward"], 3) for entry in steps],
        "gradient_norms": [round(entry["grad_norm"], 3) for entry in steps],
        "change": made["change"],
    }
