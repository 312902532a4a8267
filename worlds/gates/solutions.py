"""Running call lists: in their order, in other orders, between queries."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worlds.definitions import Call, State
from worlds.program.analysis import ToolKind
from worlds.server.service import CallResult, Fault, ServedWorld

RESULT = "$result"
"""Key of an argument that stands for a part of an earlier result, see `worlds.definitions.Call`."""
N_SHUFFLES = 6
"""Random orders that are tried in addition to those with two neighbours swapped."""


@dataclass(frozen=True, kw_only=True)
class SolutionRun:
    """A run of a call list. `results` has a result per call, up to a fault; `final` is the last state.

    `calls` are those calls, with the arguments that were sent.
    """

    calls: tuple[Call, ...]
    results: tuple[CallResult, ...]
    final: State
    fault: Fault | None

    @property
    def successes(self) -> tuple[bool, ...]:
        """Whether each call succeeded."""
        return tuple(result.is_success for result in self.results)


def run_calls(
    world: ServedWorld,
    state: State,
    calls: Sequence[Call],
    *,
    seed: int = 0,
    order: Sequence[int] | None = None,
    detour: Call | None = None,
) -> SolutionRun:
    """Run a call list in a fresh episode.

    Args:
        world: a loaded world.
        state: initial state.
        calls: the calls; their `$result` numbers are positions in this list.
        seed: seed of the episode.
        order: positions of the calls in the order of the run; None for the list's own. Results are in the list's order.
        detour: a query that is made before each call.
    """
    results: dict[int, CallResult] = {}
    sent: dict[int, Call] = {}
    with world.open_episode(state, seed=seed) as episode:
        for position in order if order is not None else range(len(calls)):
            if detour is not None:
                episode.call(detour.tool, detour.arguments)
            arguments = resolve_arguments(calls[position], results)
            sent[position] = Call(tool=calls[position].tool, arguments=arguments)
            results[position] = episode.call(sent[position].tool, arguments)
        return SolutionRun(
            calls=tuple(sent[position] for position in sorted(sent)),
            results=tuple(results[position] for position in sorted(results)),
            final=episode.get_state(),
            fault=episode.fault,
        )


def resolve_arguments(call: Call, results: Mapping[int, CallResult]) -> dict[str, Any]:
    """Return the arguments of a call with what they take from earlier results (by position in the call list)."""
    return {name: _resolve(value, results) for name, value in call.arguments.items()}


def list_orders(calls: Sequence[Call], seed: int = 0) -> list[tuple[int, ...]]:
    """Return other orders of a call list in which no call comes before a call whose result it takes.

    These are the orders with two neighbours swapped, the reverse, and some random orders.
    """
    numbers = tuple(range(len(calls)))
    orders = [(*numbers[:n], n + 1, n, *numbers[n + 2 :]) for n in numbers[:-1]]
    orders.append(numbers[::-1])
    draw = random.Random(seed)  # noqa: S311
    orders += [tuple(draw.sample(numbers, len(numbers))) for _ in range(N_SHUFFLES)]
    needs = [set(_iterate_needs(call.arguments)) for call in calls]
    return [
        order
        for order in dict.fromkeys(orders)
        if order != numbers and all(needs[number] <= set(order[: order.index(number)]) for number in numbers)
    ]


def find_detour(world: ServedWorld) -> Call | None:
    """Return a query that needs no arguments, or any text as its only arguments; None where there is none."""
    queries = world.analysis.list_tools(ToolKind.QUERY)
    tools = sorted(
        (tool for tool in world.analysis.tools if tool.name in queries),
        key=lambda tool: len(tool.parameters["required"]),
    )
    for tool in tools:
        required = {name: tool.parameters["properties"][name] for name in tool.parameters["required"]}
        if all(schema.get("type") == "string" and "enum" not in schema for schema in required.values()):
            return Call(tool=tool.name, arguments=dict.fromkeys(required, "x"))
    return None


def is_same_end(initial: State, first: State, second: State) -> bool:
    """Return whether two final states are the same but for made ids and the order of lists."""
    return _normalise(initial, first) == _normalise(initial, second)


def list_new_ids(initial: State, final: State) -> list[str]:
    """Return the keys of entries that the initial state does not have."""
    return [
        key
        for name, container in final.items()
        if isinstance(container, dict)
        for key, entry in container.items()
        if isinstance(entry, dict) and key not in initial.get(name, {})
    ]


def rename_values(value: Any, names: Mapping[str, str]) -> Any:
    """Return a JSON value with the strings and keys that are in `names` replaced."""
    if isinstance(value, dict):
        return {names.get(key, key): rename_values(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [rename_values(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _normalise(initial: State, final: State) -> str:
    names = dict.fromkeys(list_new_ids(initial, final), "<new>")
    return json.dumps(_sort(final, names), sort_keys=True)


def _sort(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with dicts as sorted lists of pairs, so that entries with new ids are compared by content."""
    if isinstance(value, dict):
        pairs = [[names.get(key, key), _sort(item, names)] for key, item in value.items()]
        return sorted(pairs, key=lambda pair: json.dumps(pair, sort_keys=True))
    if isinstance(value, list):
        return sorted((_sort(item, names) for item in value), key=lambda entry: json.dumps(entry, sort_keys=True))
    return names.get(value, value) if isinstance(value, str) else value


def _resolve(value: Any, results: Mapping[int, CallResult]) -> Any:
    """Return an argument with results of earlier calls in their places; null where there is no such result."""
    match value:
        case {"$result": [number, *keys]}:
            result: Any = results[number].value if number in results else None
            for key in keys:
                result = result.get(key) if isinstance(result, dict) else None
            return result
        case dict():
            return {key: _resolve(item, results) for key, item in value.items()}
        case list():
            return [_resolve(item, results) for item in value]
    return value


def _iterate_needs(value: Any) -> Iterator[int]:
    """Yield the positions of the calls whose results a value takes."""
    match value:
        case {"$result": [number, *_]}:
            yield number
        case dict():
            for item in value.values():
                yield from _iterate_needs(item)
        case list():
            for item in value:
                yield from _iterate_needs(item)
