"""Logs in ATIF: the answers of an agent as its scaffold's own records give them, or no value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.instructions.actions import ActionKind, read_actions
from evaluation.instructions.agent_log import AgentLogError, read_agent_log, write_agent_log
from tests.evaluation.instructions.conversations import WORKDIR, bash, make_answers


def make_log(*steps: dict[str, Any], **fields: Any) -> bytes:
    numbered = [{"step_id": number, "message": "", **step} for number, step in enumerate(steps, 1)]
    return json.dumps(
        {"schema_version": "ATIF-v1.7", "agent": {"name": "codex", "version": "1"}, "steps": numbered, **fields}
    ).encode()


def call(name: str, identifier: str = "call_1", **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": identifier, "function_name": name, "arguments": arguments}


def list_actions(data: bytes) -> list[tuple[ActionKind, str, str]]:
    log = read_actions(read_agent_log(data).answers, workdir=WORKDIR)
    assert log.is_readable
    return [(action.kind, action.path, action.text) for action in log.actions]


def test_a_written_log_gives_the_same_actions() -> None:
    answers = make_answers(["I look.", bash("cat a.py"), bash("sed -i s/a/b/ a.py")], [bash("pytest")], "Done.")
    data = write_agent_log(answers, agent="script", given=["Be kind."])
    log = read_agent_log(data)
    assert (log.agent, log.given) == ("script", "Be kind.")
    assert read_actions(log.answers, workdir=WORKDIR) == read_actions(answers, workdir=WORKDIR)
    assert data == write_agent_log(answers, agent="script", given=["Be kind."])


def test_arguments_that_are_no_json_are_kept() -> None:
    message = {"tool_calls": [{"function": {"name": "apply_patch", "arguments": "*** Begin Patch\n*** End Patch"}}]}
    (answer,) = make_answers("")
    log = json.loads(write_agent_log([type(answer)(exchange=0, message=message)], agent="a"))
    assert log["steps"][0]["tool_calls"][0]["arguments"] == {"input": "*** Begin Patch\n*** End Patch"}


def test_texts_that_the_agent_was_given_are_no_answers() -> None:
    log = read_agent_log(
        make_log(
            {"source": "system", "message": "Rules."},
            {"source": "user", "message": [{"type": "text", "text": "Fix it."}]},
            {"source": "agent", "message": "Fixed."},
        )
    )
    assert log.given == "Rules.\nFix it."
    assert [answer.message["content"] for answer in log.answers] == ["Fixed."]


def test_copied_steps_count_once() -> None:
    step = {"source": "agent", "tool_calls": [call("bash", command="ls")]}
    assert len(read_agent_log(make_log(step, step | {"is_copied_context": True})).answers) == 1


def test_the_work_of_a_sub_agent_stands_where_it_was_called_and_its_texts_are_no_answers() -> None:
    part = json.loads(
        make_log(
            {"source": "user", "message": "Look."},
            {"source": "agent", "message": "Seen.", "tool_calls": [call("read", path="/testbed/a.py")]},
            trajectory_id="t1",
        )
    )
    reference = {"results": [{"source_call_id": "call_1", "subagent_trajectory_ref": [{"trajectory_id": "t1"}]}]}
    main = [
        {"source": "agent", "tool_calls": [call("task", prompt="Look.")], "observation": reference},
        {"source": "agent", "tool_calls": [call("write", path="/testbed/a.py", content="x")]},
        {"source": "agent", "message": "Done."},
        {"source": "agent", "message": "Aside.", "extra": {"is_sidechain": True}},
    ]
    data = make_log(*main, subagent_trajectories=[part])
    assert [kind for kind, _, _ in list_actions(data)] == ["think", "think", "read", "write", "say", "think"]
    assert "Look." not in read_agent_log(data).given
    unreferenced = make_log(*main[1:3], subagent_trajectories=[part])
    assert [kind for kind, _, _ in list_actions(unreferenced)] == ["write", "say", "think", "read"]


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("bash_command", {"keystrokes": "git push\n", "duration": 1.0}, "run"),
        ("mark_task_complete", {}, "end"),
        ("Bash", {"command": "git push"}, "run"),
        ("exec_command", {"cmd": "git push"}, "run"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch"}, "write"),
        ("run_shell_command", {"command": "git push"}, "run"),
        ("str_replace_editor", {"command": "view", "path": "/testbed/a"}, "read"),
    ],
)
def test_the_tools_of_agents_are_known(name: str, arguments: dict[str, Any], kind: str) -> None:
    data = make_log({"source": "agent", "tool_calls": [call(name, **arguments)]})
    assert [action_kind for action_kind, _, _ in list_actions(data)] == [kind]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no-log: the log is no JSON"),
        (b"[]", "no-log: the log is no document"),
        (b'{"schema_version": "2"}', "no-log: the log is no document"),
        (make_log({"source": "user", "message": "Fix it."}), "no-log: no step of the log"),
        (make_log(), "no-log: no step of the log"),
        (make_log({"source": "agent"}, subagent_trajectories={}), "no-log: subagent_trajectories is no list"),
        (make_log({"source": "agent"}, continued_trajectory_ref="next.json"), "log-incomplete: the log goes on"),
        (
            make_log(
                {
                    "source": "agent",
                    "observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_path": "part.json"}]}]},
                }
            ),
            "log-incomplete: the work of a sub-agent",
        ),
        (b"[" * 100_000, "no-log: the log is no JSON"),
    ],
)
def test_nothing_is_decided_on_a_log_that_is_none_or_not_whole(data: bytes, problem: str) -> None:
    with pytest.raises(AgentLogError, match=problem):
        read_agent_log(data)
