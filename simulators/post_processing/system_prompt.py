"""Step 7: the system prompt of the deployment, in the form of the model that is trained.

The form of tools is that of the chat templates of Qwen (Hermes) and of Llama 3.1, so that training rows have what the
templates write when the trained model is served.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from simulators.domains.pack import DomainPack
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft

QWEN_TOOLS = """\


# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
LLAMA_TOOLS = """\


# Tools

You have access to the following functions:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and parameters within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "parameters": <args-json-object>}}
</tool_call>"""
TARGETS: Mapping[str, str] = {"qwen": QWEN_TOOLS, "llama": LLAMA_TOOLS}
"""Target -> what follows the policy in a system prompt with tools."""


def set_system(draft: Draft, context: StepContext) -> Draft:
    """Step 7: replace whatever system prompt the seed had by the policy of the pack."""
    return replace(draft, system=context.pack.policy)


def render_system(pack: DomainPack, target: str) -> str:
    """Return the system prompt with tools, for formats that have no place of their own for them."""
    tools = [
        json.dumps({"type": "function", "function": dict(tool)}, ensure_ascii=False) for tool in pack.tools.values()
    ]
    return pack.policy + TARGETS[target].format(tools="\n".join(tools))
