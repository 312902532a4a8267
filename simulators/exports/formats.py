"""Formats of rows. `FORMATS` lists them; each makes the row of a trajectory, or the reason why it can hold none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulators.conversation import DialogueTurn, TurnRole
from simulators.domains.pack import DomainPack
from simulators.options import SimulationOptions
from simulators.post_processing.calls import render_hermes
from simulators.post_processing.system_prompt import LLAMA, render_system
from simulators.trajectory import SimulatedTrajectory
from training_data.sharegpt import (
    CALL,
    HUMAN,
    MODEL,
    OBSERVATION,
    is_alternating,
    make_dataset_info,
    render_calls,
    render_thought,
)

NOT_ALTERNATING = "turns of user and model do not alternate"
"""Rows that LLaMA-Factory would drop without a message."""
SHAREGPT_SPEAKERS: Mapping[TurnRole, str] = {
    TurnRole.HUMAN: HUMAN,
    TurnRole.ASSISTANT: MODEL,
    TurnRole.FUNCTION_CALL: CALL,
    TurnRole.OBSERVATION: OBSERVATION,
}
HERMES_SPEAKERS: Mapping[TurnRole, str] = {
    TurnRole.HUMAN: HUMAN,
    TurnRole.ASSISTANT: MODEL,
    TurnRole.FUNCTION_CALL: MODEL,
    TurnRole.OBSERVATION: HUMAN,
}
DATASET_NAME = "simulated"
Row = dict[str, Any]


@dataclass(frozen=True)
class RowFormat:
    """A format: its name, which is also that of its folder, and what makes its rows.

    `build` raises LeftOutError where the format cannot hold a trajectory.
    """

    name: str
    build: Callable[[SimulatedTrajectory, DomainPack, SimulationOptions], Row]
    dataset_info: Mapping[str, Any] | None = None
    """Content of LLaMA-Factory's `dataset_info.json`."""
    is_table: bool = False
    """Whether its rows are written as parquet; else as JSON lines."""


class LeftOutError(Exception):
    """A format cannot hold a trajectory; the text is the reason."""


def build_identity(one: SimulatedTrajectory) -> Row:
    """Return the columns that every row begins with."""
    return {
        "id": one.id,
        "environment": one.environment,
        "domain": one.domain,
        "license": one.license,
        "based_on_sample": one.parent,
        "sample_turns": one.seed["turns"],
        "generated_turns": one.n_generated,
    }


def build_metadata(one: SimulatedTrajectory) -> Row:
    """Return the provenance of a row. All keys are always there."""
    return {
        "simulator": one.simulator,
        "profile": one.profile,
        "prompt": one.prompt,
        "pack_version": one.pack_version,
        "sample": one.sample,
        "scenario": one.scenario,
        "failure": one.failure,
        "answer": one.answer,
        "seed_name": one.seed["name"],
        "seed_file": one.seed["file"],
        "seed_line": one.seed["line"],
        "seed_format": one.seed["format"],
        "seed_tools": list(one.seed["tools"]),
        "tools_called": one.tool_names,
        "repairs": json.dumps([dict(repair) for repair in one.repairs], ensure_ascii=False),
    }


def build_sharegpt(one: SimulatedTrajectory, pack: DomainPack, options: SimulationOptions) -> Row:
    """Return a ShareGPT row with calls as turns of their own, and tools in a column."""
    del options
    turns = [{"from": SHAREGPT_SPEAKERS[turn.role], "value": render_call_turn(turn)} for turn in one.turns]
    return {
        **build_identity(one),
        "conversations": require_alternation(turns),
        "system": pack.policy,
        "tools": json.dumps(list(pack.tools.values()), ensure_ascii=False),
        "metadata": build_metadata(one),
    }


def build_hermes(one: SimulatedTrajectory, pack: DomainPack, options: SimulationOptions) -> Row:
    """Return a ShareGPT row with calls in the model's text, results as the user's, and tools in the system prompt."""
    turns = [{"from": HERMES_SPEAKERS[turn.role], "value": render_hermes_turn(turn, options)} for turn in one.turns]
    return {
        **build_identity(one),
        "conversations": require_alternation(turns),
        "system": render_system(pack, options.target),
        "metadata": build_metadata(one),
    }


def build_messages(one: SimulatedTrajectory, pack: DomainPack, options: SimulationOptions) -> Row:
    """Return a row in OpenAI's message form. Messages of the assistant have `weight` 1, and are what is trained."""
    del options
    return {
        **build_identity(one),
        "messages": [{"role": "system", "content": pack.policy}, *_list_messages(one.turns)],
        "tools": json.dumps(
            [{"type": "function", "function": dict(tool)} for tool in pack.tools.values()], ensure_ascii=False
        ),
        "metadata": build_metadata(one),
    }


def _list_messages(turns: tuple[DialogueTurn, ...]) -> list[Row]:
    messages: list[Row] = []
    waiting: list[str] = []
    n_calls = 0
    for turn in turns:
        if turn.role is TurnRole.OBSERVATION:
            ids = waiting[:1] or [f"call_{n_calls}"]
            messages.append({"role": "tool", "tool_call_id": ids[0], "content": turn.text})
            # One turn holds the results of all calls of a turn, and each call needs a message of its own.
            messages += [{"role": "tool", "tool_call_id": one, "content": ""} for one in waiting[1:]]
            waiting = []
            continue
        message: Row = {"role": "assistant" if turn.is_agent else "user", "content": turn.text.strip()}
        if turn.is_agent:
            message["weight"] = 1
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            calls: list[Row] = []
            for call in turn.calls:
                n_calls += 1
                function = {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)}
                calls.append({"id": f"call_{n_calls}", "type": "function", "function": function})
            message["tool_calls"] = calls
            waiting = [call["id"] for call in calls]
        messages.append(message)
    return messages


def build_table_row(one: SimulatedTrajectory, pack: DomainPack, options: SimulationOptions) -> Row:
    """Return a row of the parquet file: the messages and the provenance as JSON, so that columns have one type."""
    row = build_messages(one, pack, options)
    row["messages"] = json.dumps(row["messages"], ensure_ascii=False)
    row["metadata"] = json.dumps(row["metadata"], ensure_ascii=False)
    return row


def render_call_turn(turn: DialogueTurn) -> str:
    """Return the value of a turn in structured ShareGPT, in the form that LLaMA-Factory reads.

    A call is a JSON object or a list of them, within `<tool_call>` where reasoning or text goes before it.
    """
    before = render_thought(turn.reasoning) + (turn.text.strip() if turn.calls else turn.text)
    calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in turn.calls]
    return render_calls(calls, before) if calls else before


def render_hermes_turn(turn: DialogueTurn, options: SimulationOptions) -> str:
    """Return the value of a turn in Hermes form; in profile `simia` byte for byte as the released code writes it."""
    if turn.calls:
        return render_hermes(turn, released=options.released_rules, llama=options.target == LLAMA)
    return render_thought(turn.reasoning) + turn.text


def require_alternation(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return turns that alternate between user and model, begin with the user's and end with the model's.

    Raises:
        LeftOutError: they do not.
    """
    if not is_alternating(turns):
        raise LeftOutError(NOT_ALTERNATING)
    return turns


FORMATS: tuple[RowFormat, ...] = (
    RowFormat("sharegpt", build_sharegpt, make_dataset_info(DATASET_NAME, has_tools=True)),
    RowFormat("sharegpt-hermes", build_hermes, make_dataset_info(DATASET_NAME, has_tools=False)),
    RowFormat("messages", build_messages),
    RowFormat("parquet", build_table_row, is_table=True),
)
