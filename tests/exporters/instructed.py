"""A handmade instruction task on the tiny repository, with the scripts that follow and break its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backends.services import Services
from evaluation.instructions.actions import ModelAnswer
from evaluation.instructions.submission import write_submission
from taskdb.records import Kind, Task
from taskdb.records.instructions import (
    BoundConstraint,
    CarelessScript,
    InstructionOracle,
    InstructionSource,
    SkillText,
    ToolText,
)
from tests.evaluation.instructions.conversations import bash, make_answers
from tests.exporters.tasks import make_task

READ = bash("cat /testbed/words.py")
EDIT = bash("sed -i \"s/split(' ')/split()/\" /testbed/words.py")
TEST = bash("python -m pytest")
SKILL = bash("cat /opt/mergemill/guidance/skills/release/SKILL.md")
NOTES = ("mcp__project__notes", {"topic": "words"})
DONE = "I split at any white space.\n\nThat is all."


def bind(name: str, source: InstructionSource, text: str, check: str, **arguments: Any) -> BoundConstraint:
    return BoundConstraint(name=name, family="order", source=source, text=text, check=check, arguments=arguments)


TURN = bind("closing-line", InstructionSource.TURN, "End with: That is all.", "answer-ends", line="That is all.")
REPOSITORY = bind(
    "test-before-finish",
    InstructionSource.REPOSITORY,
    "Before you finish,\nrun the tests.",
    "command-after-last-edit",
    commands=["(python -m )?pytest"],
)
SKILL_READ = bind("read-skill", InstructionSource.SKILL, "Read the skill first.", "skill-read", skill="release")
TOOL = bind("notes-once", InstructionSource.TOOL, "Call it before you edit.", "tool-called", tool="notes")
DUTIFUL = make_answers(["I begin.", SKILL, NOTES, READ], ["I edit.", EDIT], ["I test.", TEST], DONE)
CARELESS = {
    "closing-line": [*DUTIFUL[:-1], *make_answers("I split at any white space.", first=3)],
    "test-before-finish": [DUTIFUL[0], DUTIFUL[1], *make_answers(DONE, first=2)],
    "read-skill": [*make_answers(["I begin.", NOTES, READ]), *DUTIFUL[1:]],
    "notes-once": [*make_answers(["I begin.", SKILL, READ]), *DUTIFUL[1:]],
}
SETUP = b"""\
diff --git a/AGENTS.md b/AGENTS.md
new file mode 100644
--- /dev/null
+++ b/AGENTS.md
@@ -0,0 +1 @@
+# Words
"""
"""The agent's tree has a file of its own with the name of one that instructions stand in."""
INSTALL = "uv pip install --quiet --python /opt/venv/bin/python pytest==8.3.4"
SKILLS = (SkillText(name="release", description='How "we" release.', text="Test it."),)
TOOLS = (
    ToolText(
        name="notes",
        description="Call it before you edit.",
        parameters={"type": "object", "properties": {"topic": {"type": "string"}}},
        answer="None.",
    ),
)


def make_instructed_task(
    services: Services,
    folder: Path,
    constraints: Sequence[BoundConstraint] = (TURN, REPOSITORY, SKILL_READ, TOOL),
    *,
    name: str = "ada__words-1",
    **changes: Any,
) -> Task:
    """Return an instruction task of a new repository in `folder` / `name`. `changes`: fields of its oracle."""
    task = make_task(services, folder, name=name, evaluations=2)
    patch = services.artifacts.get(task.gold_patch)

    def put(answers: Sequence[ModelAnswer]) -> str:
        return services.artifacts.put(write_submission(patch, answers))

    names = {constraint.name for constraint in constraints}
    sources = {constraint.source for constraint in constraints}
    fields = {
        "constraints": tuple(constraints),
        "dutiful": put(DUTIFUL),
        "careless": tuple(
            CarelessScript(constraint=name, submission=put(answers))
            for name, answers in CARELESS.items()
            if name in names
        ),
        "skills": SKILLS if InstructionSource.SKILL in sources else (),
        "tools": TOOLS if InstructionSource.TOOL in sources else (),
        **changes,
    }
    plan = task.require_plan()
    return task.model_copy(
        update={
            "name": f"{name}.instructions",
            "kind": Kind.INSTRUCTIONS,
            "oracle": InstructionOracle(**fields),
            "setup_patch": services.artifacts.put(SETUP),
            "plan": plan.model_copy(update={"dependency_steps": (*plan.dependency_steps, INSTALL)}),
        }
    )
