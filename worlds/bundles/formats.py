"""Formats of bundles. `FORMATS` lists them; each has a function that writes its files into an empty folder."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from training_data.formats import CONVERSATIONS as CONVERSATION_FORMATS
from training_data.formats import FORMATS as ROW_FORMATS
from training_data.row_files import replace_file
from training_data.sources import LeftOutError
from training_data.writer import RowWriter
from worlds.bundles import envscaler, harbor
from worlds.bundles.contents import BundledScenario, BundledWorld, WorldConversation
from worlds.bundles.format_names import SUMMARIES
from worlds.bundles.rollout_rows import EPISODES, make_episode
from worlds.bundles.training_rows import CONVERSATIONS, SolvedScenario

UNSOLVED = "no solution is known"
NO_FOLDER = "its name cannot be that of a folder"
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


@dataclass
class BundleCounts:
    """Numbers of rows and scenarios in a bundle.

    `left_out` has the scenarios that are not in it, by reason; `notes` warnings, with the scenarios that each is about.
    """

    rows: int = 0
    scenarios: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    notes: Mapping[str, int] = field(default_factory=dict)

    def leave_out(self, reason: str) -> None:
        """Count a scenario, which was counted as a scenario that is held, as left out."""
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
    pairs = [(world, scenario) for world in worlds for scenario in world.scenarios]
    scenarios = [envscaler.build_scenario(*pair) for pair in pairs]
    trajectories = [
        envscaler.build_trajectory(world, pair, conversation)
        for world, pair in pairs
        for conversation in pair.conversations
    ]
    for name, content in (("environments", environments), ("scenarios", scenarios), ("trajectories", trajectories)):
        replace_file(folder / f"{name}.json", _dump(content))
    counts.scenarios = counts.rows = len(scenarios)


def write_harbor(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts) -> None:
    """Write a folder for each scenario."""
    for world, scenario, conversation in _iterate_solved(worlds, counts):
        if not _FOLDER.fullmatch(scenario.definition.name) or not _FOLDER.fullmatch(world.name):
            counts.leave_out(NO_FOLDER)
            continue
        for path, file in harbor.build_task(world, scenario, conversation.calls).items():
            target = folder / scenario.definition.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(0o755 if file.is_executable else 0o644)
        counts.rows += 1


def write_conversations(
    worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts, *, format_name: str
) -> None:
    """Write the rows of all conversations; a scenario is left out where the format cannot hold one of its own."""
    with RowWriter(folder, ROW_FORMATS[format_name], CONVERSATIONS) as writer:
        for world, scenario, _ in _iterate_solved(worlds, counts):
            try:
                writer.add(*(SolvedScenario(world, scenario, conversation) for conversation in scenario.conversations))
            except LeftOutError as error:
                counts.leave_out(str(error))
    counts.rows = writer.count


def write_episodes(worlds: Sequence[BundledWorld], folder: Path, counts: BundleCounts, *, format_name: str) -> None:
    """Write a row for each scenario."""
    with RowWriter(folder, ROW_FORMATS[format_name], EPISODES) as writer:
        for world, scenario, _ in _iterate_solved(worlds, counts):
            writer.add(make_episode(world, scenario))
    counts.rows = writer.count


OWN_FORMATS: Mapping[str, WriteBundle] = {"envscaler": write_envscaler, "harbor": write_harbor}
"""Formats that hold more than rows."""


def _make_format(name: str, summary: str) -> BundleFormat:
    if name in OWN_FORMATS:
        return BundleFormat(name, summary, OWN_FORMATS[name])
    row_format = ROW_FORMATS[name]
    write = write_conversations if row_format in CONVERSATION_FORMATS else write_episodes
    return BundleFormat(name, summary, partial(write, format_name=name), row_format.name_file("train"))


FORMATS: Mapping[str, BundleFormat] = {name: _make_format(name, summary) for name, summary in SUMMARIES.items()}


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
