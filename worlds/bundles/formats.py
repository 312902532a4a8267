"""Formats of bundles. `FORMATS` lists them; each has a function that writes its files into an empty folder."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training_data.parquet import ParquetShards
from training_data.row_files import open_lines, replace_file
from training_data.sharegpt import make_dataset_info
from worlds.bundles import envscaler, harbor, rollout_rows, training_rows
from worlds.bundles.material import BundledScenario, BundledWorld, Row, WorldConversation
from worlds.bundles.training_rows import UnwritableScenarioError

ROWS_NAME = "train.jsonl"
UNSOLVED = "no solution is known"
NO_FOLDER = "its name cannot be that of a folder"
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


@dataclass
class BundleCounts:
    """What a bundle holds, and what its format could not hold: reason -> scenarios."""

    rows: int = 0
    scenarios: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def leave_out(self, reason: str) -> None:
        """Count a scenario, which was counted as one that is held, as left out."""
        self.scenarios -= 1
        self.left_out[reason] += 1


WriteBundle = Callable[[Sequence[BundledWorld], Path, BundleCounts], None]


@dataclass(frozen=True)
class BundleFormat:
    """A format. `data_files` are those of the data set on the hub, empty where it is none."""

    name: str
    summary: str
    write: WriteBundle
    data_files: str = ""


def write_envscaler(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write `environments.json`, `scenarios.json` and `trajectories.json`."""
    environments = {world.name: envscaler.build_environment(world) for world in worlds}
    pairs = [(world, one) for world in worlds for one in world.scenarios]
    scenarios = [envscaler.build_scenario(*pair) for pair in pairs]
    trajectories = [
        envscaler.build_trajectory(world, one, found) for world, one in pairs for found in one.conversations
    ]
    for name, content in (("environments", environments), ("scenarios", scenarios), ("trajectories", trajectories)):
        replace_file(folder / f"{name}.json", _dump(content))
    counts.scenarios = counts.rows = len(scenarios)


def write_alpaca(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write a row for each turn of the agent, and what LLaMA-Factory needs to train the last turn of each alone."""
    _write_rows(worlds, folder, counts, training_rows.build_alpaca_rows)
    replace_file(folder / "dataset_info.json", _dump(training_rows.ALPACA_INFO))
    replace_file(folder / "llamafactory.yaml", training_rows.ALPACA_TRAINING)


def write_sharegpt(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write a row for each conversation, with tools, and LLaMA-Factory's `dataset_info.json`."""
    _write_rows(worlds, folder, counts, lambda *items: [training_rows.build_sharegpt_row(*items)])
    info = make_dataset_info(training_rows.DATASET_NAME, has_tools=True)
    replace_file(folder / "dataset_info.json", _dump(info))


def write_messages(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write a row of OpenAI's messages for each conversation."""
    _write_rows(worlds, folder, counts, lambda *items: [training_rows.build_messages_row(*items)])


def write_harbor(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write a folder for each scenario."""
    for world, scenario, found in _iterate_solved(worlds, counts):
        if not _FOLDER.fullmatch(scenario.definition.name) or not _FOLDER.fullmatch(world.name):
            counts.leave_out(NO_FOLDER)
            continue
        for path, file in harbor.build_task(world, scenario, found.calls).items():
            target = folder / scenario.definition.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(0o755 if file.is_executable else 0o644)
        counts.rows += 1


def write_verl(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write `train.parquet` for verl's RLHFDataset."""
    with ParquetShards(folder / "train", rollout_rows.VERL_SCHEMA) as rows:
        for world, scenario, _ in _iterate_solved(worlds, counts):
            rows.add(rollout_rows.build_verl_row(world, scenario, rows.count))
    counts.rows = rows.count


def write_ragen(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write a row for each scenario."""
    _write_episodes(worlds, folder, counts, rollout_rows.build_ragen_row)


def write_nemo_gym(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write a row for each scenario."""
    _write_episodes(worlds, folder, counts, rollout_rows.build_nemo_gym_row)


FORMATS: Mapping[str, BundleFormat] = {
    one.name: one
    for one in (
        BundleFormat("envscaler", "EnvScaler's environments, scenarios and trajectories", write_envscaler),
        BundleFormat("alpaca", "LLaMA-Factory, a row for each turn", write_alpaca, ROWS_NAME),
        BundleFormat("sharegpt", "LLaMA-Factory, a row for each conversation, with tools", write_sharegpt, ROWS_NAME),
        BundleFormat("messages", "OpenAI's messages", write_messages, ROWS_NAME),
        BundleFormat("harbor", "Harbor tasks with an MCP server", write_harbor),
        BundleFormat("verl", "rows of verl", write_verl, "train.parquet"),
        BundleFormat("ragen", "rows for an environment of RAGEN", write_ragen, ROWS_NAME),
        BundleFormat("nemo-gym", "rows of NeMo-Gym", write_nemo_gym, ROWS_NAME),
    )
}


def _write_rows(
    worlds: Sequence[BundledWorld],
    folder: Path,
    counts: BundleCounts,
    build: Callable[[BundledWorld, BundledScenario, WorldConversation], list[Row]],
) -> None:
    with open_lines(folder / ROWS_NAME) as write:
        for world, scenario, _ in _iterate_solved(worlds, counts):
            try:
                rows = [row for found in scenario.conversations for row in build(world, scenario, found)]
            except UnwritableScenarioError as error:
                counts.leave_out(str(error))
                continue
            for row in rows:
                write(row)
                counts.rows += 1


def _write_episodes(
    worlds: Sequence[BundledWorld],
    folder: Path,
    counts: BundleCounts,
    build: Callable[[BundledWorld, BundledScenario, int], Row],
) -> None:
    with open_lines(folder / ROWS_NAME) as write:
        for world, scenario, _ in _iterate_solved(worlds, counts):
            write(build(world, scenario, counts.rows))
            counts.rows += 1


def _iterate_solved(
    worlds: Sequence[BundledWorld], counts: BundleCounts
) -> Iterator[tuple[BundledWorld, BundledScenario, WorldConversation]]:
    """Yield the scenarios with a conversation, and count them and the others."""
    for world in worlds:
        for scenario in world.scenarios:
            if scenario.conversation is None:
                counts.left_out[UNSOLVED] += 1
            else:
                counts.scenarios += 1
                yield world, scenario, scenario.conversation


def _dump(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
