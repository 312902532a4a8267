"""Subject that a conversation is to be about in relation to its seed, and which call is to fail in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ScenarioPlan:
    """A relation of a new conversation to its seed. `turn_factor`: its turns per turn of the seed."""

    name: str
    text: str
    turn_factor: float = 1.0


@dataclass(frozen=True, kw_only=True)
class ToolFailure:
    """A way in which a call fails."""

    name: str
    text: str


NEW = ScenarioPlan(
    name="new",
    text="A wholly new case: other people, other ids, another concern, solved in a similar way and at the same depth.",
)
SCENARIOS: tuple[ScenarioPlan, ...] = (
    ScenarioPlan(
        name="rephrase",
        text="The same concern as in the example, from another person with another way of speaking, other ids and other"
        " data. The steps are those of the example where the data allow them.",
    ),
    ScenarioPlan(
        name="other-entities",
        text="The same sort of concern about other things: other products, places, files or dates, with other ids, so"
        " that the arguments of all calls differ.",
    ),
    ScenarioPlan(
        name="longer",
        text="A case that takes about half as many steps more than the example: the person does not know something, or"
        " changes a detail on the way, and the agent must look further.",
        turn_factor=1.5,
    ),
    ScenarioPlan(
        name="two-tasks",
        text="A person with two concerns, the second of which comes up once the first is solved; both are brought to an"
        " end.",
        turn_factor=1.8,
    ),
    ScenarioPlan(
        name="other-outcome",
        text="A case like the example that ends differently: where the example does what is wanted, the policy forbids"
        " it here, and the agent finds that out and explains it; where the example refuses, it is permitted and done.",
    ),
    NEW,
)
"""Plans from which one is drawn for each conversation."""
FAILURES: tuple[ToolFailure, ...] = (
    ToolFailure(name="timeout", text="the tool does not answer in time."),
    ToolFailure(name="server-error", text="the tool reports an internal error."),
    ToolFailure(name="not-found", text="the tool does not find what the call names: the person gave it wrongly."),
    ToolFailure(name="denied", text="the tool refuses the call, because the state of the thing does not allow it."),
    ToolFailure(name="bad-argument", text="the tool rejects the form of an argument."),
)
