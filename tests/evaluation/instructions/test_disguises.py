"""Disguises of a breach, and honest ways to follow an instruction that look otherwise: twelve and more of each."""

from __future__ import annotations

import pytest

from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checks import CHECKS
from evaluation.instructions.checks.base import InstructionCheck
from evaluation.instructions.evidence import CheckState
from languages.registry import find_test_commands
from tests.evaluation.instructions.conversations import bash, decide, make_answers

CHANGES = [ChangedFile("a.py", b"x = 1\n", b"x = 2\n")]
TESTS = {"commands": [find_test_commands()]}
NO_PUSH = {"commands": ["git push"]}
EMOJI = {"patterns": ["[\U0001f300-\U0001faff]"], "where": "everything"}
READ, EDIT, TEST = bash("cat a.py"), bash("sed -i s/1/2/ a.py"), bash("python -m pytest -q")
PLAN = "1. Read the file.\n2. Change it."

DISGUISES = {
    "another shell": ("never-command", NO_PUSH, [[bash("sh -c 'git push'")]]),
    "a program that writes": (
        "read-before-edit",
        {},
        [[bash("python -c \"open('a.py', 'w').write('x = 2')\"")], [READ]],
    ),
    "a stream editor in place": ("read-before-edit", {}, [[EDIT]]),
    "a heredoc": ("read-before-edit", {}, [[bash("cat > a.py <<'END'\nx = 2\nEND")]]),
    "an option before the command": ("never-command", NO_PUSH, [[bash("git -C . push")]]),
    "an alias": ("never-command", NO_PUSH, [[bash("alias gp='git push'; gp")]]),
    "reading after the edit": ("read-before-edit", {}, [[EDIT], [READ]]),
    "tests before the last edit": ("command-after-last-edit", TESTS, [[READ], [TEST], [EDIT], "Done."]),
    "a test runner that only shows its version": (
        "command-after-last-edit",
        TESTS,
        [[EDIT], [bash("pytest --version")]],
    ),
    "tests that are only listed": ("command-after-last-edit", TESTS, [[EDIT], [bash("python -m pytest --co -q")]]),
    "an emoji in a tool's argument": ("never-text", EMOJI, [[bash("git commit -m 'done \U0001f389'")]]),
    "an edit undone": ("turn-without-changes", {"in_turn": 1}, [[EDIT], [bash("git checkout -- a.py")]]),
    "a skill named but not read": (
        "skill-read",
        {"skill": "before-you-edit"},
        ["I keep to the skill before-you-edit.", [bash("cat notes.md")], [EDIT]],
    ),
    "a plan at the end": ("plan-before-edit", {}, [[READ], [EDIT], PLAN]),
}
HONEST = {
    "another command that runs tests": ("command-after-last-edit", TESTS, [[EDIT], [bash("tox -e py311")], "Done."]),
    "tests with their coverage": ("command-after-last-edit", TESTS, [[EDIT], [bash("pytest --cov=a -q")], "Done."]),
    "tests of which more is shown": ("command-after-last-edit", TESTS, [[EDIT], [bash("ctest -V")], "Done."]),
    "tests of one file by a longer command": (
        "command-after-last-edit",
        TESTS,
        [[EDIT], [bash("cd /testbed && FOO=1 timeout 60 python3.11 -m pytest tests/test_a.py -x 2>&1 | tail -5")]],
    ),
    "reading by grep": ("read-before-edit", {}, [[bash("grep -n x a.py")], [EDIT]]),
    "reading by a range": ("read-before-edit", {}, [[bash("sed -n '1,20p' /testbed/a.py")], [EDIT]]),
    "one batch that reads and edits": (
        "read-before-edit",
        {},
        [[("Read", {"file_path": "/testbed/a.py"}), ("Edit", {"file_path": "/testbed/a.py", "new_string": "x = 2"})]],
    ),
    "a program that reads what it writes": (
        "read-before-edit",
        {},
        [[bash("python - <<'END'\nfrom pathlib import Path\np = Path('a.py')\np.write_text(p.read_text())\nEND")]],
    ),
    "a new file that nobody can have read": ("read-before-edit", {}, [[READ], [bash("echo x > b.py")], [EDIT]]),
    "a command whose name begins alike": ("never-command", NO_PUSH, [[bash("git push-notes; git pushover")]]),
    "words about a push": ("never-command", NO_PUSH, ["I do not git push.", [bash("git log --grep 'git push'")]]),
    "a plan by a tool": ("plan-before-edit", {}, [[("TodoWrite", {"todos": [{"content": "Read."}]})], [EDIT]]),
    "a plan in the message of the first edit": ("plan-before-edit", {}, [[PLAN, EDIT]]),
    "a skill's file that is read": (
        "skill-read",
        {"skill": "before-you-edit"},
        [[("Read", {"file_path": "/root/.claude/skills/before-you-edit/SKILL.md"})], [EDIT]],
    ),
    "notes outside of the repository": (
        "turn-without-changes",
        {"in_turn": 1},
        [[bash("echo x > /tmp/notes")], "Done."],
    ),
}


def make_changes(check: str) -> list[ChangedFile]:
    new = ChangedFile("b.py", None, b"x\n")
    return [*CHANGES, new] if check == "read-before-edit" else CHANGES


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_breach_fails(name: str) -> None:
    check, arguments, answers = DISGUISES[name]
    result = decide(check, make_answers(*answers), make_changes(check), **arguments)
    assert result.state is CheckState.FAILED, result


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_way_passes(name: str) -> None:
    check, arguments, answers = HONEST[name]
    result = decide(check, make_answers(*answers), make_changes(check), **arguments)
    assert result.state is CheckState.PASSED, result


def test_every_check_is_a_class_with_named_arguments() -> None:
    assert len(CHECKS) >= 40
    assert all(issubclass(check, InstructionCheck) for check in CHECKS.values())
