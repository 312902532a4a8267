"""Records of simulated conversations: those that were kept, and rejections of seeds and conversations.

Nothing in such a conversation happened, so they are apart from rollouts and trajectories, and `environment` is
`simulated` in each.
"""

from __future__ import annotations

from typing import Annotated, Literal

from taskdb.records.base import MEASURED, ArtifactHash, Record

PREFILTER = "pre-filter"
"""Step of the rejection of a seed."""


class SimulatedConversation(Record):
    """A conversation of an agent with tools that a model wrote, after all rules.

    Equal turns made of an answer are a single record, wherever the seed was read from.
    """

    parent: str
    """Id of the seed."""
    name: str
    """`SEED-SAMPLE`."""
    environment: Literal["simulated"] = "simulated"
    domain: str
    """Name of the domain pack."""
    pack_version: str
    profile: str
    """Set of rules and settings: `default` or `simia`."""
    simulator: str
    """Model that wrote it."""
    prompt: str
    """Version of the prompt."""
    sample: int
    """Number among the conversations of the seed, from 1."""
    scenario: str
    """Relation to the seed that was drawn."""
    failure: str | None
    """Name of the tool failure that was ordered; null where there is none."""
    license: str
    """Of the seed."""
    answer: str
    """Key of the model's answer in the ledger of its run."""
    turns_sha256: str
    """Sha256 of the canonical JSON of the turns."""
    n_turns: Annotated[int, MEASURED]
    n_calls: Annotated[int, MEASURED]
    """Calls of tools."""
    trajectory: Annotated[str, MEASURED]
    """Id of its line in `trajectories.jsonl` and of its rows."""
    content: Annotated[ArtifactHash, MEASURED]
    """That line, as JSON."""
    pack: Annotated[ArtifactHash | None, MEASURED] = None
    """JSON of its domain pack, as far as rows need it: `{"name", "version", "policy", "tools"}`; null if not kept."""


class SimulationRejection(Record):
    """Reason that a seed is not used, or that a simulated conversation was dropped."""

    parent: str
    """Id of the seed."""
    name: str
    """`SEED-SAMPLE`; of a seed, its id."""
    environment: Literal["simulated"] = "simulated"
    domain: str
    profile: str
    simulator: str
    """Model that wrote the conversation or judged the seed; the run's model where rules alone judged it."""
    answer: str
    """Key of the dropped answer in the ledger; empty for a seed, and for a prompt that was too long."""
    step: str
    """Name of the step that dropped it, such as `4 tools`, or `pre-filter` for a seed."""
    reason: str
    """A value of the reasons of seeds or conversations, such as `unknown-tool`."""
    detail: Annotated[str, MEASURED]
    """A line for people."""
