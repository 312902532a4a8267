"""Run the OpenHands SDK's default agent on a file with an instruction. Runs inside the container.

Usage: python openhands_run.py INSTRUCTION SETTINGS

SETTINGS is a JSON file with the fields of the SDK's LLM (`llm`), the limit of turns (`turns`) and the text that is
added to the system prompt (`system`, may be empty). The last line printed is a JSON object with the state in which the
conversation ended and the code of its error, if any.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from openhands.sdk import LLM, AgentContext, Conversation
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.tools.preset.default import get_default_agent


def run(instruction: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Run the agent in the working directory and return how it ended."""
    errors: list[dict[str, str]] = []

    def note_error(event: object) -> None:
        if isinstance(event, ConversationErrorEvent):
            errors.append({"code": event.code, "detail": event.detail})

    llm = LLM(usage_id="agent", api_key=os.environ["OPENAI_API_KEY"], **settings["llm"])
    agent = get_default_agent(llm, cli_mode=True)  # that mode is without a browser
    if settings["system"]:
        agent = agent.model_copy(update={"agent_context": AgentContext(system_message_suffix=settings["system"])})
    conversation = Conversation(
        agent=agent,
        workspace=str(Path.cwd()),
        callbacks=[note_error],
        max_iteration_per_run=settings["turns"],
    )
    try:
        conversation.send_message(instruction)
        conversation.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is how the agent ended
        errors.append({"code": type(error).__name__, "detail": str(error)})
    status = conversation.state.execution_status.value
    conversation.close()
    return {"status": status, "errors": errors}


if __name__ == "__main__":
    end = run(Path(sys.argv[1]).read_text(), json.loads(Path(sys.argv[2]).read_text()))
    sys.stdout.write(f"\n{json.dumps(end)}\n")
