"""Calls that are answered and checked by rule, without a call of the simulator.

A call that the tools of the domain pack do not permit gets an error with the cause. A query that was answered since the
last change gets the same answer again. A result of the simulator must not contradict the ids of its call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulators.conversation import FunctionCall
from simulators.domains.pack import DomainPack
from simulators.domains.validators import ValidatorError, collect_ids, validate_call
from simulators.environment.agent_turn import AgentTurn
from simulators.environment.episode import EntryRole, SimulatedEpisode
from simulators.post_processing.draft import DroppedError
from simulators.post_processing.further_checks import is_known_id
from simulators.post_processing.tool_checks import check_call

ERROR = "Error"
"""How an error of a tool begins."""
KNOWN = "known"
"""Key of an episode's state: answers to queries since the last change, by call."""


def find_turn_error(turn: AgentTurn, pack: DomainPack) -> str:
    """Return the error of a turn whose form is wrong as a whole, empty where it is right."""
    if turn.problem:
        return f"{ERROR}: {turn.problem}"
    if not turn.calls and not turn.text:
        return f"{ERROR}: the turn is empty: write to the person, or call a tool"
    if len(turn.calls) > 1 and not pack.format.parallel_calls:
        return f"{ERROR}: {len(turn.calls)} calls in one turn: make one call, and look at its result before the next"
    return ""


def find_call_error(call: FunctionCall, pack: DomainPack, episode: SimulatedEpisode) -> str:
    """Return the error of a call that its tool does not permit, empty where it may be made."""
    return next((f"{ERROR}: {problem}" for rule in CALL_RULES if (problem := rule(call, pack, episode))), "")


def find_unknown_tool(call: FunctionCall, pack: DomainPack, episode: SimulatedEpisode) -> str:
    """Return that there is no such tool."""
    del episode
    return "" if call.name in pack.tools else f"there is no tool {call.name}; tools: {', '.join(pack.tools)}"


def find_schema_error(call: FunctionCall, pack: DomainPack, episode: SimulatedEpisode) -> str:
    """Return which argument is missing, unknown or malformed."""
    del episode
    try:
        check_call(call, pack.tools[call.name]["parameters"], 0, released=False)
    except DroppedError as error:
        return f"the call of {call.name} is invalid: {error.detail.removeprefix('turn 0: ')}"
    return ""


def find_format_error(call: FunctionCall, pack: DomainPack, episode: SimulatedEpisode) -> str:
    """Return which argument breaks a rule of the pack that repairs nothing."""
    del episode
    try:
        validate_call(call, pack.rules, strict=True)
    except ValidatorError as error:
        return str(error)
    return ""


def find_unseen_id(call: FunctionCall, pack: DomainPack, episode: SimulatedEpisode) -> str:
    """Return which id neither the person nor a tool gave: the agent made it up, and there is no such thing."""
    given = [entry.text for entry in episode.history if entry.role is not EntryRole.AGENT]
    for name, value in collect_ids(call, pack.id_arguments):
        problem = f"{name} {value} was not found"
        # an earlier error names the id as the agent did, which makes it no truer
        known = [pack.policy, *(text.replace(f"{ERROR}: {problem}", "") for text in given)]
        if not is_known_id(value, [text.lower() for text in known]):
            return problem
    return ""


CALL_RULES: tuple[Callable[[FunctionCall, DomainPack, SimulatedEpisode], str], ...] = (
    find_unknown_tool,
    find_schema_error,
    find_format_error,
    find_unseen_id,
)
"""Each returns the problem with a call, empty where nothing is; the first that finds something decides."""


def find_known_result(call: FunctionCall, pack: DomainPack, episode: SimulatedEpisode) -> str | None:
    """Return the result of a query since the last change, None where it was not made or changes something."""
    if call.name not in pack.queries:
        return None
    results: Mapping[str, str] = episode.state.get(KNOWN, {})
    return results.get(_make_key(call))


def note_result(call: FunctionCall, result: str, pack: DomainPack, state: dict[str, Any]) -> None:
    """Keep the answer of a query; after any other call nothing is known any more."""
    if call.name in pack.queries:
        state[KNOWN] = {**state.get(KNOWN, {}), _make_key(call): result}
    else:
        state[KNOWN] = {}


def find_contradiction(calls: Sequence[FunctionCall], results: Sequence[str], pack: DomainPack) -> str:
    """Return which id of a result is not that of its call, empty where all agree."""
    for call, result in zip(calls, results, strict=True):
        try:
            value = json.loads(result)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict):
            continue
        for name in pack.id_arguments & value.keys() & call.arguments.keys():
            given, returned = call.arguments[name], value[name]
            if isinstance(given, str) and isinstance(returned, str) and _bare(given) != _bare(returned):
                return f"the result of {call.name} has {name} {returned}, and {given} was given"
    return ""


def _make_key(call: FunctionCall) -> str:
    return json.dumps([call.name, dict(call.arguments)], sort_keys=True)


def _bare(text: str) -> str:
    return text.strip().lstrip("#").lower()
