"""Run a command with a scripted model that makes the three golden worlds: python -m ...demonstration COMMAND...

Writes `tasks.txt` with twelve seed tasks, starts the model, and names it to the command by MERGEMILL_LLM and
MERGEMILL_MODEL. Other settings make a run short.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.forked_command import ForkedCommand
from tests.worlds.making.answers import open_scripted_model, write_tasks

SHORT = {
    "MERGEMILL_WORLDS_THEMES": "3",
    "MERGEMILL_WORLDS_GATE_CALLS": "80",
    "MERGEMILL_WORLDS_ROUNDS": "32",
    "MERGEMILL_WORLDS_STATES": "2",
    "MERGEMILL_WORLDS_ROLLOUTS": "2",
}


def main() -> int:
    command = ForkedCommand(sys.argv[1:])
    write_tasks(Path("tasks.txt"))
    with open_scripted_model() as model:
        variables = {"MERGEMILL_LLM": model.url, "MERGEMILL_MODEL": "scripted", **SHORT}
        return command.run(**variables)


if __name__ == "__main__":
    sys.exit(main())
