"""Actions of agents, whatever the tools of their scaffold are called."""

from __future__ import annotations

import pytest

from evaluation.instructions.actions import ActionKind, read_actions
from tests.evaluation.instructions.conversations import WORKDIR, Call, bash, make_answers

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
EDITS = {
    "react": bash("sed -i s/1/2/ a.py"),
    "claude-code": ("Edit", {"file_path": f"{WORKDIR}/a.py", "old_string": "1", "new_string": "2"}),
    "codex": ("apply_patch", {"input": PATCH}),
    "codex by the shell": ("shell", {"command": ["bash", "-lc", f"apply_patch <<'END'\n{PATCH}\nEND"]}),
    "codex by a command": ("exec_command", {"cmd": "sed -i s/1/2/ a.py", "workdir": WORKDIR}),
    "opencode": ("edit", {"filePath": f"{WORKDIR}/a.py", "oldString": "1", "newString": "2"}),
    "qwen-code": ("replace", {"file_path": f"{WORKDIR}/a.py", "old_string": "1", "new_string": "2"}),
    "qwen-code of another version": ("edit", {"file_path": f"{WORKDIR}/a.py", "new_string": "2"}),
    "openhands": ("file_editor", {"command": "str_replace", "path": f"{WORKDIR}/a.py", "new_str": "2"}),
    "mini-swe-agent": bash(f"cd {WORKDIR} && sed -i s/1/2/ a.py"),
}
READS = {
    "react": bash("cat a.py"),
    "claude-code": ("Read", {"file_path": f"{WORKDIR}/a.py"}),
    "codex": ("shell_command", {"command": "sed -n 1,10p a.py"}),
    "opencode": ("read", {"filePath": f"{WORKDIR}/a.py"}),
    "qwen-code": ("read_file", {"absolute_path": f"{WORKDIR}/a.py"}),
    "openhands": ("file_editor", {"command": "view", "path": f"{WORKDIR}/a.py"}),
}


@pytest.mark.parametrize("scaffold", EDITS)
def test_an_edit_is_the_same_action_with_every_tool(scaffold: str) -> None:
    assert (ActionKind.EDIT, "a.py") in list_files(EDITS[scaffold])


@pytest.mark.parametrize("scaffold", READS)
def test_a_read_is_the_same_action_with_every_tool(scaffold: str) -> None:
    assert (ActionKind.READ, "a.py") in list_files(READS[scaffold])


def list_files(call: Call) -> list[tuple[ActionKind, str]]:
    log = read_actions(make_answers([call]), workdir=WORKDIR)
    return [(action.kind, action.path) for action in log.actions]


def test_texts_thoughts_and_calls_are_in_the_order_of_the_answer() -> None:
    (answer,) = make_answers(["I look.", bash("ls")])
    answer.message["reasoning_content"] = "Hm."  # type: ignore[index]
    kinds = [action.kind for action in read_actions([answer], workdir=WORKDIR).actions]
    assert kinds == [ActionKind.THINK, ActionKind.SAY, ActionKind.RUN, ActionKind.SEARCH]


def test_tools_that_instructions_brought_are_known_with_the_name_of_their_server() -> None:
    calls = [("project_notes", {"topic": "x"}), ("mcp__mergemill__project_notes", {}), ("mergemill_project_notes", {})]
    log = read_actions(make_answers(calls), workdir=WORKDIR, own_tools=["project_notes"])
    assert [action.kind for action in log.actions] == [ActionKind.GUIDANCE] * 3


def test_more_than_a_twentieth_of_unknown_tools_makes_a_log_unreadable() -> None:
    known = [[bash("ls")]] * 19
    assert read_actions(make_answers(*known, [("teleport", {})])).is_readable
    assert not read_actions(make_answers(*known[1:], [("teleport", {})])).is_readable


def test_arguments_that_are_no_json_are_read_as_the_input_of_a_patch() -> None:
    (answer,) = make_answers([("apply_patch", {})])
    answer.message["tool_calls"][0]["function"]["arguments"] = PATCH
    assert [(action.kind, action.path) for action in read_actions([answer]).actions] == [(ActionKind.EDIT, "a.py")]
