"""Run a command with a scripted simulator in place of a model: python -m tests.simulators.demonstration COMMAND...

Writes `seeds.json` with three seeds of the domain retail, starts the simulator, and names it to the command by
MERGEMILL_LLM and MERGEMILL_MODEL. Of its conversations one in four has a mistake.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.forked_command import ForkedCommand
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import answer_well, is_verdict, make_random, write_seeds


def answer(request: ModelRequest) -> Turn:
    turn = answer_well(request)
    if is_verdict(request) or make_random(request).random() > 0.25:
        return turn
    return Turn(text=turn.text.replace("get_order_details", "look_up_order"))


def main() -> int:
    command = ForkedCommand(sys.argv[1:])
    write_seeds(Path("seeds.json"), range(3))
    with ScriptedModel(answer) as model:
        variables = {"MERGEMILL_LLM": model.url, "MERGEMILL_MODEL": "scripted"}
        return command.run(**variables)


if __name__ == "__main__":
    sys.exit(main())
