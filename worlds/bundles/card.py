"""Card of a bundle of worlds: front matter for the hub, counts per world, models, gates, licences, and what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from core.text import format_count
from training_data import hub
from worlds.bundles.formats import BundleCounts, BundleFormat
from worlds.bundles.material import ENVIRONMENT, BundledWorld
from worlds.program.analysis import ToolKind

TITLE = "Tool environments as programs"
TEXT = """\
# {title}

environment: {environment}

{summary}: {rows} of {scenarios} in {worlds}, made by mergemill.

A world is a program that answers every tool call, and the reward of a scenario is the share of checks of the final
state that hold; checks that hold from the start earn nothing and may not break. **Nothing here happened outside of
these programs**, and their tasks are not tasks of repositories.

## Worlds

| world | scenarios | tools | queries | initial states | origin | models | licence | certified |
| --- | ---: | ---: | ---: | ---: | --- | --- | --- | --- |
{rows_of_worlds}

{conversations}

## Gates

{gates}

{licenses}
{left_out}"""
ORACLE = """\
Conversations of the source `oracle` are no model's: each is the known solution of a scenario, played against the world,
with the results that its tools gave. They hold no thoughts, and no mistakes and their repair. Those of the source
`rollout` are a model's, and earned 1."""
REPLAYED = """\
Each scenario here was played before it was written: its solution earned 1 and doing nothing 0."""


def render_card(worlds: Sequence[BundledWorld], bundle_format: BundleFormat, counts: BundleCounts) -> str:
    """Return the card of a bundle."""
    licenses = sorted({world.material.license for world in worlds})
    front: dict[str, Any] = {
        "pretty_name": TITLE,
        "license": hub.name_licenses(licenses or [""]),
        "task_categories": ["text-generation"],
        "language": ["en"],
        "tags": ["agent", "tool-use", ENVIRONMENT, "mergemill"],
        "environment": ENVIRONMENT,
        "size_categories": [hub.name_size(counts.rows)],
    }
    if bundle_format.data_files:
        files = [{"split": "train", "path": bundle_format.data_files}]
        front["configs"] = [{"config_name": "default", "data_files": files}]
    sources = Counter(
        (found.source, found.model) for world in worlds for one in world.scenarios for found in one.conversations
    )
    body = TEXT.format(
        title=TITLE,
        environment=ENVIRONMENT,
        summary=bundle_format.summary,
        rows=format_count(counts.rows, "row" if bundle_format.name != "harbor" else "task"),
        scenarios=format_count(counts.scenarios, "scenario"),
        worlds=format_count(len(worlds), "world"),
        rows_of_worlds="\n".join(map(_render_world, worlds)),
        conversations=_render_sources(sources),
        gates=_render_gates(worlds),
        licenses="Licences: " + ", ".join(f"{name} ({n})" for name, n in sorted(_count_licenses(worlds).items())) + ".",
        left_out=_render_left_out(counts.left_out),
    )
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n{body}"


def _render_world(world: BundledWorld) -> str:
    material, tools = world.material, world.analysis.tools
    certified = material.certification.by if material.certification else "**no**"
    cells: Iterable[object] = (
        f"`{world.name}`",
        len(world.scenarios),
        len(tools),
        len(world.analysis.list_tools(ToolKind.QUERY)),
        len(world.definition.states),
        material.origin,
        ", ".join(material.models) or "-",
        material.license,
        certified,
    )
    return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def _render_sources(sources: Mapping[tuple[str, str], int]) -> str:
    rows = [f"| {source} | {model or '-'} | {number} |" for (source, model), number in sorted(sources.items())]
    table = "\n".join(["| source | model of the agent | conversations |", "| --- | --- | ---: |", *rows])
    return f"{table}\n\n{ORACLE}\n\n{REPLAYED}" if rows else "No scenario here has a known solution."


def _render_gates(worlds: Sequence[BundledWorld]) -> str:
    measured = [(world.name, world.material.certification) for world in worlds]
    rows = [
        f"| `{name}` | {', '.join(f'{gate} {value:g}' for gate, value in found.gates.items())} |"
        for name, found in measured
        if found is not None and found.gates
    ]
    others = [name for name, found in measured if found is None]
    parts = [
        "The gates are those of mergemill's page on worlds; values are what each measured.",
        "\n".join(["| world | passed |", "| --- | --- |", *rows]) if rows else "",
        f"Not certified, and exported because that was asked for: {', '.join(others)}." if others else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _render_left_out(left_out: Mapping[str, int]) -> str:
    lines = [f"- {format_count(number, 'scenario')} left out: {reason}" for reason, number in sorted(left_out.items())]
    return "\n## Left out\n\n" + "\n".join(lines) + "\n" if lines else ""


def _count_licenses(worlds: Sequence[BundledWorld]) -> Counter[str]:
    return Counter(world.material.license for world in worlds)
