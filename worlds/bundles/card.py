"""Card of a bundle of worlds: front matter for the hub, counts per world, models, gates, licences, and what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from core.text import format_count
from training_data.card import Card, Section, make_left_out_section, render_table
from worlds.bundles.contents import ENVIRONMENT, BundledWorld
from worlds.bundles.formats import BundleCounts, BundleFormat
from worlds.program.analysis import ToolKind

TITLE = "Tool environments as programs"
DESCRIPTION = """\
environment: {environment}

{summary}: {rows} of {scenarios} in {worlds}, made by mergemill.

A world is a program that answers every tool call, and the reward of a scenario is the share of checks of the final
state that hold; checks that hold from the start earn nothing and may not break. **Nothing here happened outside of
these programs**, and their tasks are not tasks of repositories."""
WORLD_COLUMNS = (
    "world",
    "scenarios",
    "tools",
    "queries",
    "initial states",
    "origin",
    "models",
    "licence",
    "certified",
)
WORLD_NUMBERS = ("scenarios", "tools", "queries", "initial states")
ORACLE = """\
Conversations of the source `oracle` are no model's: each is the known solution of a scenario, played against the world,
with the results that its tools gave. They hold no thoughts, and no mistakes and their repair. Those of the source
`rollout` are a model's, and earned 1."""
REPLAYED = """\
Each scenario here was played before it was written: its solution earned 1 and doing nothing 0."""


def build_card(worlds: Sequence[BundledWorld], bundle_format: BundleFormat, counts: BundleCounts) -> Card:
    """Return the card of a bundle."""
    sources = Counter(
        (conversation.source, conversation.model)
        for world in worlds
        for scenario in world.scenarios
        for conversation in scenario.conversations
    )
    description = DESCRIPTION.format(
        environment=ENVIRONMENT,
        summary=bundle_format.summary,
        rows=format_count(counts.rows, "row" if bundle_format.name != "harbor" else "task"),
        scenarios=format_count(counts.scenarios, "scenario"),
        worlds=format_count(len(worlds), "world"),
    )
    licenses = Counter(world.contents.license for world in worlds)
    listed = "Licences: " + ", ".join(f"{name} ({n})" for name, n in sorted(licenses.items())) + "."
    warnings = [f"**{format_count(number, 'scenario')}: {note}.**" for note, number in counts.notes.items()]
    table = render_table(WORLD_COLUMNS, map(_list_cells, worlds), numbers=WORLD_NUMBERS)
    return Card(
        title=TITLE,
        tags=("agent", "tool-use", ENVIRONMENT, "mergemill"),
        licenses=sorted(licenses),
        rows=counts.rows,
        environment=ENVIRONMENT,
        data_files={"train": bundle_format.data_files} if bundle_format.data_files else None,
        sections=(
            Section("", [description, *warnings]),
            Section("Worlds", [table, *_describe_sources(sources)]),
            Section("Gates", [*_describe_gates(worlds), listed]),
            make_left_out_section(dict(sorted(counts.left_out.items())), "scenario"),
        ),
    )


def _list_cells(world: BundledWorld) -> list[str]:
    """Return the cells of a world."""
    contents, tools = world.contents, world.analysis.tools
    certified = contents.certification.by if contents.certification else "**no**"
    cells = (
        f"`{world.name}`",
        len(world.scenarios),
        len(tools),
        len(world.analysis.list_tools(ToolKind.QUERY)),
        len(world.definition.states),
        contents.origin,
        ", ".join(contents.models) or "-",
        contents.license,
        certified,
    )
    return [str(cell).replace("|", "/") for cell in cells]


def _describe_sources(sources: Mapping[tuple[str, str], int]) -> list[str]:
    """Return paragraphs on the conversations; `sources`: (source, model) -> conversations."""
    if not sources:
        return ["No scenario here has a known solution."]
    rows = [(source, model or "-", number) for (source, model), number in sorted(sources.items())]
    columns = ("source", "model of the agent", "conversations")
    return [render_table(columns, rows, numbers=("conversations",)), ORACLE, REPLAYED]


def _describe_gates(worlds: Sequence[BundledWorld]) -> list[str]:
    """Return paragraphs on what the worlds passed."""
    measured = [(world.name, world.contents.certification) for world in worlds]
    rows = [
        (f"`{name}`", ", ".join(f"{gate} {value:g}" for gate, value in certification.gates.items()))
        for name, certification in measured
        if certification is not None and certification.gates
    ]
    others = [name for name, certification in measured if certification is None]
    return [
        "The gates are those of mergemill's page on worlds; values are what each measured.",
        render_table(("world", "passed"), rows) if rows else "",
        f"Not certified, and exported because that was asked for: {', '.join(others)}." if others else "",
    ]
