"""A database with one simulated task, and a model that is simulator, grader and agent at once.

    python -m tests.simulators.swe.sampling COMMAND...

makes the database in the working directory, starts the model, and names it to the command by MERGEMILL_LLM,
MERGEMILL_UPSTREAM and MERGEMILL_MODEL.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from taskdb.records import Candidate, Rejection, Stage
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.samplers.scripted_model import Call, ModelRequest, ScriptedModel, Turn
from tests.simulators.swe.making import GOLD_LINE, HIDDEN_NAME, Calc, print_text, read_prompt

TASK = "ada__calc-1.simulated"
TEST_FILE = "tests/test_add.py"
REPAIRED = "return sum((left, right))"
WORK = (
    "grep -rn 'def add' --include='*.py' .; cat calc/add.py",
    "python -m pytest -q tests/test_add.py | tail -n 3",
    f"sed -i 's/return left - right/{REPAIRED}/' calc/add.py && git diff --stat",
    "python -m pytest -q tests/test_add.py",
)
"""Commands of the agent, before it submits."""


def make_task(folder: Path) -> None:
    """Make the repository and the database in a folder; the change has no environment."""
    calc = Calc(folder / "ada__calc")
    calc.repo.git("commit", "-q", "--amend", "-m", "Repair add (#1)\n\n`add(1, 2)` gives -1, it should give 3.")
    assert run_mergemill("mine", "git:ada__calc", cwd=folder).exit_code == 0
    with Store.open(f"sqlite:///{folder}/mergemill.db", create=False, writes=True) as store:
        (candidate,) = store.load_all(Candidate)
        rejection = Rejection(
            parent=candidate.id,
            name=candidate.name,
            source=candidate.source,
            stage=Stage.BUILD,
            reason="install-failed",
            detail="nothing could be installed",
        )
        source, name = candidate.source, candidate.name
        store.add_stage_results(StageResult(stage=Stage.BUILD, result=rejection, source=source, name=name, seconds=0.1))
    with ScriptedModel(answer) as model:
        words = ("git:ada__calc", "--kind", "simulated", "--llm", model.url, "--model", "scripted")
        derived = run_mergemill("derive", *words, cwd=folder)
        assert derived.exit_code == 0, derived.stderr


def answer(request: ModelRequest) -> Turn:
    """Answer as whoever is asked."""
    prompt = read_prompt(request)
    if "You predict the result of a test run" in prompt:
        return Turn(text=json.dumps({"tests": list(predict(prompt))}))
    if "You stand in for programs" in prompt:
        return simulate(prompt)
    commands = [Turn(calls=(Call("bash", {"command": command}),)) for command in WORK]
    return [*commands, Turn(calls=(Call("submit"),))][min(request.place, len(commands))]


def predict(prompt: str) -> list[dict[str, str]]:
    """Return the outcomes of a right model."""
    passed = "return sum(" in prompt
    names = {"test_zero": True, HIDDEN_NAME: passed} if HIDDEN_NAME in prompt else {"test_zero": True}
    return [
        {"test": f"{TEST_FILE}::{name}", "outcome": "passed" if right else "assertion", "reason": "-1 != 3"}
        for name, right in names.items()
    ]


def simulate(prompt: str) -> Turn:
    """Answer for pytest: the visible test passes; on the first attempt the solution is in the output."""
    if "nobody in this repository has yet" not in prompt and REPAIRED not in prompt:
        return print_text(f"E   {GOLD_LINE}\n1 failed\n", code=1)
    return print_text(".                                  [100%]\n1 passed in 0.01s\n")


def sample(
    folder: Path, model: ScriptedModel, *words: str, named: bool = True, variables: Mapping[str, str] | None = None
) -> CommandResult:
    """Run `mergemill sample` in namespaces; `named`: on the task by its name."""
    models = ("--upstream", model.url, "--llm", model.url, "--model", "agent", "--simulator-model", "simulator")
    task = ("--only", TASK) if named else ()
    return run_mergemill(
        "sample", "--sandbox", "bubblewrap", *task, *models, "--json", *words, cwd=folder, **(variables or {})
    )


def main(words: Sequence[str]) -> int:
    if not Path("mergemill.db").exists():
        make_task(Path.cwd())
    with ScriptedModel(answer) as model:
        variables = {"MERGEMILL_LLM": model.url, "MERGEMILL_UPSTREAM": model.url, "MERGEMILL_MODEL": "scripted"}
        return subprocess.run(words, env=os.environ | variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
