"""Play an episode with a scripted simulator: python -m tests.simulators.environment.demonstration [TURN...]

Writes `seeds.json` with three seeds of the domain retail, starts the simulator and `mergemill simulate env` on it, and
sends the turns of an agent by the client. Each line of output is one turn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mergemill_client.simulated import connect

from tests.samplers.scripted_model import ScriptedModel
from tests.simulators.environment.making import FIND, play, tag
from tests.simulators.environment.test_server import serve

TURNS = ("Your email?", '{"name": "find_user_id_by_email"', tag(FIND), "Done.")


def main() -> None:
    with ScriptedModel(play) as model, serve(Path.cwd(), model, "--episode-rewrites", "0") as url:
        server = connect(url)
        opened = server.reset(seed=0)
        print(f"user: {opened['observation']}")  # noqa: T201
        for turn, text in enumerate(sys.argv[1:] or TURNS):
            answer = server.step(opened["episode"], text, turn=turn)
            print(f"agent: {' '.join(text.split())}")  # noqa: T201
            if answer["done"]:
                end = (answer["termination_reason"], answer["reward"], answer["reasoning"])
                print("end: {}, reward {}: {}".format(*end))  # noqa: T201
                return
            print(f"{answer['role']} (by {answer['answered_by']}): {answer['observation']}")  # noqa: T201


if __name__ == "__main__":
    main()
