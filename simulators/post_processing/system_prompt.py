"""Step 7: the system prompt of the deployment, in the form of the model that is trained.

The words around the tools are those of the chat templates of Qwen 2.5 (Hermes) and of Llama 3.1, so that training rows
have the text that the templates write when the trained model is served.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from simulators.domains.pack import DomainPack
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft
from training_data.sharegpt import QWEN_TOOLS

LLAMA_TOOLS = """\


Given the following functions, please respond with a JSON for a function call with its proper arguments that best \
answers the given prompt.

Respond in the format {{"name": function name, "parameters": dictionary of argument name and its value}}. Do not use \
variables.

{tools}"""
LLAMA = "llama"
TARGETS: Mapping[str, str] = {"qwen": QWEN_TOOLS, LLAMA: LLAMA_TOOLS}
"""Target -> the text that follows the policy in a system prompt with tools."""


def set_system(draft: Draft, context: StepContext) -> Draft:
    """Step 7: replace whatever system prompt the seed had by the policy of the pack."""
    return replace(draft, system=context.pack.policy)


def render_system(pack: DomainPack, target: str) -> str:
    """Return the system prompt with tools, for formats that have no place of their own for them."""
    tools = [
        json.dumps({"type": "function", "function": dict(tool)}, ensure_ascii=False) for tool in pack.tools.values()
    ]
    return pack.policy + TARGETS[target].format(tools=("\n\n" if target == LLAMA else "\n").join(tools))
