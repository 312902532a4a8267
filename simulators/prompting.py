"""Prompts: a call writes a whole conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from backends.llm.base import Message
from backends.llm.prompts import PromptTemplates
from simulators.conversation import render_blocks
from simulators.domains.pack import DomainPack
from simulators.jobs import SimulationJob

PROMPT_DIR = Path(__file__).parent / "prompts"


class ConversationPrompts:
    """Prompts of the jobs of a run: the templates of a version, or those of the domain pack where it has its own."""

    def __init__(self, pack: DomainPack, version: str) -> None:
        own = pack.prompt_dir
        self.version = f"{pack.name}/{own.name}" if own else version
        self._pack = pack
        self._templates = PromptTemplates(own.parent if own else PROMPT_DIR)
        self._folder = own.name if own else version

    def render(self, job: SimulationJob) -> Sequence[Message]:
        """Return the prompt of a job: tools, policy, format and a reference conversation."""
        pack, conversation = self._pack, job.seed.conversation
        markers = pack.markers
        blocks = render_blocks(conversation.body, markers)
        return self._templates.render_conversation(
            self._folder,
            system=conversation.system or pack.policy,
            policy=pack.policy,
            example=blocks,
            tools=[{**tool, "schema": json.dumps(tool["parameters"])} for tool in pack.tools.values()],
            markers={role.value: marker for role, marker in markers.items()},
            rules=list(pack.format.rules),
            think=pack.format.think,
            parallel_calls=pack.format.parallel_calls,
            n_turns=round(job.seed.n_turns * job.scenario.turn_factor),
            scenario=job.scenario.text,
            failure=job.failure.text if job.failure else "",
        )
