"""The verifier of an instruction task, built from its bundle alone: patch and log decide as `mergemill grade` does."""

from __future__ import annotations

import base64
import json
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import exporters
from backends.services import Services
from evaluation.instructions.actions import ModelAnswer
from evaluation.instructions.agent_log import write_agent_log
from evaluation.instructions.log_grader import LOG, PATCH, REWARD
from taskdb.records import Task
from tests.containers import make_services, run_in_container
from tests.evaluation.instructions.conversations import make_answers
from tests.exporters.instructed import CARELESS, DUTIFUL, REPOSITORY, make_instructed_task
from tests.exporters.verifier_images import build_context, make_trusting_base

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

NEW_FILE = b"diff --git a/x.py b/x.py\nnew file mode 100644\n--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+x = 1\n"


@dataclass(frozen=True, kw_only=True)
class BuiltVerifier:
    """An exported task and the images of its bundle."""

    task: Task
    services: Services
    folder: Path
    image: str
    agent_image: str

    def grade(self, patch: bytes | None, log: bytes | None) -> tuple[dict[str, Any] | None, str]:
        """Return the reward, None where none is written, and the output."""
        files = {str(path): content for path, content in ((PATCH, patch), (LOG, log)) if content is not None}
        command = ["/bin/bash", "/tests/test.sh"]
        result = run_in_container(self.services, self.image, command, files, collect=[str(REWARD)])
        content = result.files.get(str(REWARD))
        return (json.loads(content) if content else None), result.output

    @property
    def gold(self) -> bytes:
        return (self.folder / "solution/gold.patch").read_bytes()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltVerifier:
    """Verifier of a bundle of which nothing but the folder of the task is left."""
    root = tmp_path_factory.mktemp("instructed")
    services = make_services(root)
    task = make_instructed_task(services, root)
    exporters.export_tasks("harbor", [task], {}, root / "out", services)
    folder = root / "alone" / task.name
    shutil.copytree(root / "out" / task.name, folder)
    base = make_trusting_base(services, root / "base")
    return BuiltVerifier(
        task=task,
        services=services,
        folder=folder,
        image=build_context(folder / "tests", "mergemill-test/instructed:verifier", BASE=base),
        agent_image=build_context(folder / "environment", "mergemill-test/instructed:agent", BASE=base),
    )


def write_log(answers: Sequence[ModelAnswer], agent: str = "codex", given: Sequence[str] = ()) -> bytes:
    return write_agent_log(answers, agent=agent, given=given)


def test_the_dutiful_log_earns_1(built: BuiltVerifier) -> None:
    reward, output = built.grade(built.gold, (built.folder / "solution/trajectory.json").read_bytes())
    assert reward is not None, output
    assert (reward["reward"], reward["tests"], reward["csr"], reward["isr"]) == (1, 1, 1, 1)
    assert reward["csr_repository"] == reward["csr_skill"] == reward["csr_tool"] == reward["csr_turn"] == 1


@pytest.mark.parametrize("name", CARELESS)
def test_a_careless_log_earns_0_for_its_check(name: str, built: BuiltVerifier) -> None:
    reward, output = built.grade(built.gold, write_log(CARELESS[name]))
    assert reward is not None, output
    assert (reward["reward"], reward["tests"], reward["failed_constraints"], reward["csr"]) == (0, 1, 1, 0.75)
    assert reward["graded"] == 0.75
    assert f"not followed: {name} (" in output


def test_an_empty_patch_earns_0_with_and_without_a_log(built: BuiltVerifier) -> None:
    for log in (None, write_log(DUTIFUL)):
        reward, output = built.grade(b"", log)
        assert reward is not None, output
        assert (reward["reward"], reward["tests"]) == (0, 0)


def test_a_wrong_patch_with_a_dutiful_log_earns_0(built: BuiltVerifier) -> None:
    reward, output = built.grade(NEW_FILE, write_log(DUTIFUL))
    assert reward is not None, output
    assert (reward["reward"], reward["tests"], reward["isr"], reward["partial"]) == (0, 0, 1, 0.5)


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (None, "no-log: the agent has no log"),
        (b"{}", "no-log: the log is no document"),
        (write_log([]), "no-log: no step"),
        (write_log([*DUTIFUL, *make_answers(["", ("warp", {})])]), "tools-unknown: 1 of 6 calls"),
        (write_log(DUTIFUL, "terminus-2"), "source-not-delivered: nothing shows that terminus-2 reads files"),
    ],
)
def test_without_a_log_that_can_be_decided_on_there_is_no_value(
    log: bytes | None, problem: str, built: BuiltVerifier
) -> None:
    reward, output = built.grade(built.gold, log)
    assert reward is None
    assert f"MERGEMILL_INFRASTRUCTURE_ERROR: {problem}" in output


def test_a_log_that_shows_the_texts_of_the_repository_needs_no_known_agent(built: BuiltVerifier) -> None:
    reward, output = built.grade(built.gold, write_log(DUTIFUL, "own", ["# Rules\n" + REPOSITORY.text]))
    assert reward is not None, output
    assert reward["reward"] == 1


def test_work_that_was_not_collected_has_no_value(built: BuiltVerifier) -> None:
    reward, output = built.grade(None, write_log(DUTIFUL))
    assert reward is None
    assert "the agent's work was not collected" in output


RUN_ORACLE = """\
set -e
mkdir -p /logs/agent /logs/artifacts && chown mergemill /logs/agent
printf %s "$SOLVE" | base64 -d > /tmp/solve.sh
setpriv --reuid=mergemill --regid=mergemill --clear-groups bash /tmp/solve.sh
printf '\\nA note of mine.\\n' >> /testbed/AGENTS.md
rm /testbed/QWEN.md
printf %s "$COLLECT" | base64 -d > /tmp/collect.sh
bash /tmp/collect.sh
"""


def test_the_solution_is_collected_without_the_instructions_and_with_its_log(built: BuiltVerifier) -> None:
    config = tomllib.loads((built.folder / "task.toml").read_text())
    command = config["verifier"]["collect"][0]["command"]
    values = {"SOLVE": (built.folder / "solution/solve.sh").read_bytes(), "COLLECT": command.encode()}
    exports = "".join(f"{name}={base64.b64encode(value).decode()}\n" for name, value in values.items())
    script = f"{exports}{RUN_ORACLE}".encode()
    result = run_in_container(
        built.services,
        built.agent_image,
        ["/bin/bash", "/run/oracle.sh"],
        {"/run/oracle.sh": script},
        collect=[str(PATCH), str(LOG)],
    )
    patch, log = result.files.get(str(PATCH)), result.files.get(str(LOG))
    assert log == (built.folder / "solution/trajectory.json").read_bytes(), result.output
    assert patch is not None
    assert b"run the tests" not in patch
    assert b"CLAUDE.md" not in patch
    assert b"\n+A note of mine.\n" in patch
    assert patch.count(b"\n+++ ") == 2
    reward, output = built.grade(patch, log)
    assert reward is not None, output
    assert reward["reward"] == 1
