"""Run a command with three certified tasks and a scripted simulator, which is named to it by variables.

    python -m tests.mergemill.measured_demonstration COMMAND...

The database `m.db` is made by the first call. Real scores are stored in it, so no engine is needed; the simulator is
right about all submissions but one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.forked_command import ForkedCommand
from tests.mergemill.measured_tasks import make_simulator, make_tasks, store_scores
from tests.samplers.scripted_model import ScriptedModel
from tests.simulators.making import write_seeds
from tests.taskdb.lineages import make_url


def main() -> int:
    command = ForkedCommand(sys.argv[1:])
    folder = Path.cwd()
    if not (folder / "m.db").exists():
        make_tasks(folder / "measured", 3)
        (folder / "measured" / "m.db").rename(folder / "m.db")
        (folder / "measured" / "mergemill-store").rename(folder / "mergemill-store")
        write_seeds(folder / "seeds.json", range(3))
    wrong = next(score for score in store_scores(folder, per_kind=1) if not score.resolved)
    with ScriptedModel(make_simulator({wrong.program})) as model:
        variables = {"MERGEMILL_DB": make_url(folder), "MERGEMILL_LLM": model.url, "MERGEMILL_MODEL": "scripted"}
        return command.run(**variables)


if __name__ == "__main__":
    sys.exit(main())
