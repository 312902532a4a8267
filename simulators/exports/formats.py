"""Simulated conversations, as rows of supervised training have them, and the formats of these rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from simulators.conversation import DialogueTurn, TurnRole
from simulators.domains.pack import DomainPack
from simulators.exports.format_names import FORMAT_NAMES
from simulators.options import SimulationOptions
from simulators.post_processing.calls import render_hermes
from simulators.post_processing.system_prompt import LLAMA, render_system
from simulators.trajectory import SimulatedTrajectory
from training_data import formats
from training_data.formats import ConversationFormat
from training_data.sharegpt import CALL, HUMAN, MODEL, OBSERVATION, Turn, render_calls, render_thought
from training_data.sources import Message, Row, RowSource

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
CONVERSATIONS = RowSource(
    name="simulated",
    columns={
        "id": pa.string(),
        "environment": pa.string(),
        "domain": pa.string(),
        "license": pa.string(),
        "based_on_sample": pa.string(),
        "sample_turns": pa.int32(),
        "generated_turns": pa.int32(),
    },
)
FORMATS: tuple[ConversationFormat, ...] = tuple(formats.FORMATS[name] for name in FORMAT_NAMES)


@dataclass(frozen=True)
class SimulatedDialogue:
    """A simulated trajectory in its domain: a `training_data.conversations.TrainingConversation`."""

    trajectory: SimulatedTrajectory
    pack: DomainPack
    options: SimulationOptions

    @property
    def identity(self) -> Row:
        """Columns that every row begins with."""
        trajectory = self.trajectory
        return {
            "id": trajectory.id,
            "environment": trajectory.environment,
            "domain": trajectory.domain,
            "license": trajectory.license,
            "based_on_sample": trajectory.parent,
            "sample_turns": trajectory.seed["turns"],
            "generated_turns": trajectory.n_generated,
        }

    @property
    def origin(self) -> Row:
        """The provenance of a row, as `metadata`. All keys are always there."""
        trajectory = self.trajectory
        metadata = {
            "simulator": trajectory.simulator,
            "profile": trajectory.profile,
            "prompt": trajectory.prompt,
            "pack_version": trajectory.pack_version,
            "sample": trajectory.sample,
            "scenario": trajectory.scenario,
            "failure": trajectory.failure,
            "answer": trajectory.answer,
            "seed_name": trajectory.seed["name"],
            "seed_file": trajectory.seed["file"],
            "seed_line": trajectory.seed["line"],
            "seed_format": trajectory.seed["format"],
            "seed_tools": list(trajectory.seed["tools"]),
            "seed_subjects": list(trajectory.seed.get("subjects", ())),
            "tools_called": trajectory.tool_names,
            "repairs": json.dumps([dict(repair) for repair in trajectory.repairs], ensure_ascii=False),
        }
        return {"metadata": metadata}

    @property
    def messages(self) -> Sequence[Message]:
        """OpenAI's messages. Those of the assistant have `weight` 1, and are the part that is trained."""
        return [{"role": "system", "content": self.pack.policy}, *_list_messages(self.trajectory.turns)]

    @property
    def tools(self) -> Sequence[Message]:
        """Tools of the pack in OpenAI's form."""
        return [{"type": "function", "function": dict(tool)} for tool in self.pack.tools.values()]

    @property
    def system(self) -> str:
        """The policy of the pack."""
        return self.pack.policy

    @property
    def turns(self) -> Sequence[Turn]:
        """Turns with calls as turns of their own."""
        return [(SHAREGPT_SPEAKERS[turn.role], render_call_turn(turn)) for turn in self.trajectory.turns]

    @property
    def functions(self) -> Sequence[Message]:
        """Tools of the pack."""
        return list(self.pack.tools.values())

    @property
    def hermes_system(self) -> str:
        """The policy with tools, as the chat template of the target has them."""
        return render_system(self.pack, self.options.target)

    @property
    def hermes_turns(self) -> Sequence[Turn]:
        """Turns with calls in the model's text, and results as the user's."""
        return [(HERMES_SPEAKERS[turn.role], render_hermes_turn(turn, self.options)) for turn in self.trajectory.turns]


def _list_messages(turns: tuple[DialogueTurn, ...]) -> list[Row]:
    messages: list[Row] = []
    waiting: list[str] = []
    n_calls = 0
    for turn in turns:
        if turn.role is TurnRole.OBSERVATION:
            ids = waiting[:1] or [f"call_{n_calls}"]
            messages.append({"role": "tool", "tool_call_id": ids[0], "content": turn.text})
            # One turn holds the results of all calls of a turn, and each call needs a message of its own.
            messages += [{"role": "tool", "tool_call_id": call_id, "content": ""} for call_id in waiting[1:]]
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
