"""Many calls of all tools of a world, as the gates look at them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from guest.world.schema_check import find_schema_error
from worlds.definitions import State
from worlds.gates.arguments import StateValues, draw_arguments
from worlds.program.foreign_keys import find_dangling_key
from worlds.server.service import Fault, ServedWorld

CALLS_PER_EPISODE = 60
"""Calls after which an episode ends, so that no tool depends on the data that hundreds of made-up calls left behind."""
N_REPLAYS = 5
"""Episodes that are replayed."""


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """A call. `state_problem` is about the state after it, where that changed."""

    tool: str
    arguments: dict[str, Any]
    fits_schema: bool
    is_success: bool
    is_changed: bool
    digest: str
    result: dict[str, Any]
    fault: Fault | None = None
    wrong_type: str | None = None
    dangling_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class EpisodeRecord:
    """An episode: its initial state, its calls, and the state before call number `middle`."""

    state: State
    seed: int
    calls: tuple[CallRecord, ...]
    middle: int
    middle_state: State


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """All episodes of a world. It ends with the first call that has a fault.

    `replayed` and `continued` are the digests and results of some of the episodes, replayed from their initial state
    and continued from their middle.
    """

    episodes: tuple[EpisodeRecord, ...]
    load_fault: Fault | None = None
    replayed: tuple[tuple[Any, ...], ...] = ()
    continued: tuple[tuple[Any, ...], ...] = ()

    @property
    def calls(self) -> list[CallRecord]:
        """All calls in their order."""
        return [call for episode in self.episodes for call in episode.calls]


def explore_world(world: ServedWorld, replay_world: ServedWorld, *, calls: int, seed: int) -> Exploration:
    """Call all tools in turn, so many times each, in episodes from the initial states in turn.

    Args:
        world: a loaded world with at least one initial state.
        replay_world: the same world, loaded in another container if possible, where episodes are replayed.
        calls: calls of each tool.
        seed: seed that determines the arguments.
    """
    drawn = draw_arguments(world.analysis.tools, calls, seed)
    plan = [(tool, drawn[tool][number]) for number in range(calls) for tool in drawn]
    states = itertools.cycle(world.definition.states.values())
    episodes: list[EpisodeRecord] = []
    for number, part in enumerate(_split(plan)):
        episode = _run_episode(world, next(states), number, part)
        if isinstance(episode, Fault):
            return Exploration(episodes=tuple(episodes), load_fault=episode)
        episodes.append(episode)
        if episode.calls and episode.calls[-1].fault is not None:
            return Exploration(episodes=tuple(episodes))
    some = episodes[:N_REPLAYS]
    return Exploration(
        episodes=tuple(episodes),
        replayed=tuple(_replay(replay_world, episode, episode.state, 0) for episode in some),
        continued=tuple(_replay(replay_world, episode, episode.middle_state, episode.middle) for episode in some),
    )


def list_outcomes(calls: tuple[CallRecord, ...]) -> tuple[Any, ...]:
    """Return the results that a replay of calls must give."""
    return tuple((call.result, call.digest) for call in calls)


def _split(plan: list[tuple[str, Any]]) -> Iterator[list[tuple[str, Any]]]:
    for start in range(0, len(plan), CALLS_PER_EPISODE):
        yield plan[start : start + CALLS_PER_EPISODE]


def _run_episode(world: ServedWorld, state: State, seed: int, plan: list[tuple[str, Any]]) -> EpisodeRecord | Fault:
    schemas = {tool.name: tool.parameters for tool in world.analysis.tools}
    records: list[CallRecord] = []
    middle, middle_state = len(plan) // 2, state
    with world.open_episode(state, seed=seed) as episode:
        if episode.fault is not None:
            return episode.fault
        present, digest, values = state, episode.digest, StateValues(state)
        for number, (tool, drawn) in enumerate(plan):
            if number == middle:
                middle_state = present
            arguments = values.fill(drawn)
            result = episode.call(tool, arguments)
            is_changed = result.digest != digest
            if is_changed:
                present, digest = episode.get_state(), result.digest
                values = StateValues(present)
            records.append(
                CallRecord(
                    tool=tool,
                    arguments=arguments,
                    fits_schema=find_schema_error(arguments, schemas[tool]) is None,
                    is_success=result.is_success,
                    is_changed=is_changed,
                    digest=result.digest,
                    result=dict(result.value),
                    fault=result.fault,
                    wrong_type=find_schema_error(present, world.analysis.state_schema, "state") if is_changed else None,
                    dangling_key=find_dangling_key(present, world.analysis.foreign_keys) if is_changed else None,
                )
            )
            if result.fault is not None:
                break
    return EpisodeRecord(state=state, seed=seed, calls=tuple(records), middle=middle, middle_state=middle_state)


def _replay(world: ServedWorld, record: EpisodeRecord, state: State, first: int) -> tuple[Any, ...]:
    """Return results and digests of the calls of an episode from number `first` on."""
    with world.open_episode(state, seed=record.seed, step=first) as episode:
        results = [episode.call(call.tool, call.arguments) for call in record.calls[first:]]
    return tuple((dict(result.value), result.digest) for result in results)
