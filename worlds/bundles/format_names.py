"""Names of the formats of bundles: the names that a command needs before it imports the modules that write them."""

from __future__ import annotations

from collections.abc import Mapping

SUMMARIES: Mapping[str, str] = {
    "envscaler": "EnvScaler's environments, scenarios and trajectories",
    "alpaca": "LLaMA-Factory, a row for each turn",
    "sharegpt": "LLaMA-Factory, a row for each conversation, with tools",
    "messages": "OpenAI's messages",
    "harbor": "Harbor tasks with an MCP server",
    "verl": "rows of verl",
    "ragen": "rows for an environment of RAGEN",
    "nemo-gym": "rows of NeMo-Gym",
}
"""Format -> its summary on the card. All but the bundle's own are formats of `training_data`."""
