"""Run the OpenHands SDK's default agent on a file with an instruction. Runs inside the container.

Usage: python openhands_run.py INSTRUCTION SETTINGS

SETTINGS is a JSON file with the fields of the SDK's LLM (`llm`), the limit of turns (`turns`), the texts that are added
to the system prompt (`system`) and to each message (`reminder`), further messages (`messages`), whether instructions of
the repository are read (`reads_repository`), a folder of skills (`skills`) and MCP servers (`servers`). All but the
first two may be empty. The last line printed is a JSON object with the state in which the conversation ended and the
code of its error, if any.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from openhands.sdk import LLM, AgentContext, Conversation
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.sdk.mcp.config import MCPServer
from openhands.sdk.skills import load_skills_from_dir
from openhands.tools.preset.default import get_default_agent

FINISHED = "finished"
"""State of a conversation whose last message was worked on to the end."""


def run(instruction: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Run the agent in the working directory and return how it ended."""
    errors: list[dict[str, str]] = []

    def note_error(event: object) -> None:
        if isinstance(event, ConversationErrorEvent):
            errors.append({"code": event.code, "detail": event.detail})

    llm = LLM(usage_id="agent", api_key=os.environ["OPENAI_API_KEY"], **settings["llm"])
    agent = get_default_agent(llm, cli_mode=True)  # that mode is without a browser
    updates: dict[str, Any] = {}
    if context := build_context(settings):
        updates["agent_context"] = context
    if settings["servers"]:
        updates["mcp_config"] = {name: MCPServer(**server) for name, server in settings["servers"].items()}
    agent = agent.model_copy(update=updates)
    conversation = Conversation(
        agent=agent,
        workspace=str(Path.cwd()),
        callbacks=[note_error],
        max_iteration_per_run=settings["turns"],
    )
    try:
        for message in (instruction, *settings["messages"]):
            conversation.send_message(message)
            conversation.run()
            if conversation.state.execution_status.value != FINISHED:
                break
    except Exception as error:  # noqa: BLE001 - whatever it is, it is how the agent ended
        errors.append({"code": type(error).__name__, "detail": str(error)})
    status = conversation.state.execution_status.value
    conversation.close()
    return {"status": status, "errors": errors}


def build_context(settings: dict[str, Any]) -> AgentContext | None:
    """Return the texts and skills that the agent is given; None for none."""
    texts = {"system_message_suffix": settings["system"], "user_message_suffix": settings["reminder"]}
    fields: dict[str, Any] = {name: text for name, text in texts.items() if text}
    if settings["skills"]:
        groups = load_skills_from_dir(settings["skills"])
        fields["skills"] = [skill for group in groups for skill in group.values()]
    if settings["reads_repository"]:
        fields["load_project_skills"] = True
    return AgentContext(**fields) if fields else None


if __name__ == "__main__":
    end = run(Path(sys.argv[1]).read_text(), json.loads(Path(sys.argv[2]).read_text()))
    sys.stdout.write(f"\n{json.dumps(end)}\n")
