"""Rollouts of others: each format becomes rollouts and trajectories, once, and what cannot is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from samplers.exports.conversations import make_conversations
from samplers.exports.messages import flatten_message
from samplers.imports.foreign import ForeignFormatError, ForeignRollout, list_requests
from samplers.imports.formats import detect_format, list_path_names
from samplers.imports.reading import read_foreign_file
from samplers.trajectories.content import read_content
from taskdb.artifacts import Artifacts
from taskdb.records.rollouts import Rollout, Trajectory
from taskdb.store import Store
from tests.samplers.selection.making import PATCH
from tests.samplers.stored import make_database
from tests.samplers.test_trajectory_commands import run
from tests.samplers.trajectories.making import BASH, SYSTEM, TASK, call, give
from tests.taskdb.lineages import make_url

DONE = {"role": "assistant", "content": "Done."}
MESSAGES: list[dict[str, Any]] = [SYSTEM, TASK, call(0), give(0, "greet.py"), DONE]

ATIF = {
    "schema_version": "ATIF-v1.8",
    "agent": {"name": "claude-code", "version": "2.0", "model_name": "m", "tool_definitions": [BASH]},
    "extra": {"instance_id": "TASK", "model_patch": PATCH.decode()},
    "steps": [
        {"step_id": 1, "source": "system", "message": SYSTEM["content"]},
        {"step_id": 2, "source": "user", "message": TASK["content"]},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "reasoning_content": "I look.",
            "tool_calls": [{"tool_call_id": "c0", "function_name": "bash", "arguments": {"command": "ls"}}],
            "observation": {"results": [{"source_call_id": "c0", "content": "greet.py"}]},
            "metrics": {"prompt_tokens": 5, "prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-1]},
        },
        {
            "step_id": 4,
            "source": "agent",
            "message": "Done.",
            "metrics": {"prompt_token_ids": [1, 2, 3, 4], "completion_token_ids": [5]},
        },
    ],
}
SWE_AGENT = {
    "trajectory": [],
    "history": [
        {**SYSTEM, "agent": "main", "message_type": "system_prompt"},
        {**TASK, "agent": "main", "content": [{"type": "text", "text": TASK["content"]}]},
        {**call(0), "agent": "main", "thought": "", "action": "ls"},
        {"role": "tool", "content": "greet.py", "agent": "main", "tool_call_ids": ["c0"]},
        {**DONE, "agent": "main"},
    ],
    "info": {"submission": PATCH.decode(), "exit_status": "submitted"},
    "replay_config": json.dumps({"agent": {"model": {"name": "m"}}}),
}
MINI = {
    "info": {"submission": PATCH.decode(), "mini_version": "2.0", "config": {"model": {"model_name": "m"}}},
    "messages": [*({**message, "extra": {"cost": 1}} for message in MESSAGES), {"role": "exit", "content": ""}],
    "trajectory_format": "mini-swe-agent-1.1",
    "instance_id": "TASK",
}


def read_one(path: Path, document: object) -> ForeignRollout:
    path.write_text(json.dumps(document))
    [(_, _, rollout)] = read_foreign_file(path)
    assert isinstance(rollout, ForeignRollout), rollout
    return rollout


def test_tool_results_of_atif_follow_the_call(tmp_path: Path) -> None:
    rollout = read_one(tmp_path / "trajectory.json", ATIF)
    assert (rollout.scaffold, rollout.scaffold_version, rollout.model) == ("claude-code", "2.0", "m")
    assert rollout.submission == PATCH
    messages = rollout.conversations[0].messages
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert messages[2]["reasoning_content"] == "I look."
    first, last = list_requests(rollout)
    assert (first.prompt_token_ids, first.completion_token_ids, first.logprobs) == ((1, 2), (3,), (-1.0,))
    assert last.messages == tuple(messages[:4])


def test_copied_context_is_no_request_and_sub_agents_are_conversations(tmp_path: Path) -> None:
    document = json.loads(json.dumps(ATIF))
    document["steps"][2]["is_copied_context"] = True
    document["subagent_trajectories"] = [{**ATIF, "trajectory_id": "sub"}]
    rollout = read_one(tmp_path / "trajectory.json", document)
    assert [len(request.messages) for request in list_requests(rollout)] == [4, 2, 4]


def test_histories_of_swe_agent_have_the_ids_of_calls(tmp_path: Path) -> None:
    rollout = read_one(tmp_path / "some__task-1.bugfix.traj", SWE_AGENT)
    assert list(rollout.conversations[0].messages) == MESSAGES
    assert (rollout.model, rollout.submission, rollout.instances[0]) == ("m", PATCH, "some__task-1.bugfix")


def test_messages_of_mini_swe_agent_are_without_its_own_roles_and_fields(tmp_path: Path) -> None:
    rollout = read_one(tmp_path / "x.traj.json", MINI)
    assert list(rollout.conversations[0].messages) == MESSAGES
    assert (rollout.scaffold_version, rollout.instances[0]) == ("2.0", "TASK")


def test_answers_of_weight_0_are_context(tmp_path: Path) -> None:
    row = {"instance_id": "TASK", "messages": [*MESSAGES[:2], call(0) | {"weight": 0}, *MESSAGES[3:]]}
    assert len(list_requests(read_one(tmp_path / "rows.jsonl", row))) == 1


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (ATIF, "atif"),
        (SWE_AGENT, "swe-agent"),
        (MINI, "mini-swe-agent"),
        ({"messages": []}, "messages"),
        ({"instance_id": "x", "model_patch": ""}, "predictions"),
    ],
)
def test_formats_are_known_by_their_keys(document: dict[str, Any], expected: str) -> None:
    assert detect_format(document) == expected
    with pytest.raises(ForeignFormatError, match="its keys"):
        detect_format({"text": "x"})


def test_names_in_a_path_that_could_be_ids_are_not_taken_for_tasks() -> None:
    names = list_path_names(Path("/jobs/ab12/owner__repo-1.bugfix__Xy7Zq/agent/trajectory.json"))
    assert {"owner__repo-1.bugfix", "trajectory", "agent", "jobs"} <= set(names)
    assert "ab12" not in names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_database(tmp_path)
    return tmp_path


def fill(document: dict[str, Any], name: str) -> str:
    return json.dumps(document).replace('"TASK"', json.dumps(name))


def test_files_become_rollouts_and_trajectories_once(folder: Path) -> None:
    with Store.open(make_url(folder)) as store:
        name = store.load_all(Rollout)[0].name
        before = len(store.load_all(Rollout))
    (folder / "atif.json").write_text(fill(ATIF, name))
    (folder / f"{name}.traj").write_text(json.dumps(SWE_AGENT))
    (folder / "mini.traj.json").write_text(fill(MINI, name))
    (folder / "predictions.jsonl").write_text(
        f"{json.dumps({'instance_id': name, 'model_name_or_path': 'm', 'model_patch': PATCH.decode()})}\n"
    )
    files = ["atif.json", f"{name}.traj", "mini.traj.json", "predictions.jsonl"]
    *rows, summary = run(folder, "trajectories", "import", *files, "--json").lines
    assert summary == {"event": "summary", "new": 4, "known": 0, "skipped": 0}
    assert [(row["format"], row["trajectories"]) for row in rows] == [
        ("atif", 1),
        ("swe-agent", 1),
        ("mini-swe-agent", 1),
        ("predictions", 0),
    ]
    assert {row["value"] for row in rows} == {None}
    *_, again = run(folder, "trajectories", "import", *files, "--json").lines
    assert again == {"event": "summary", "new": 0, "known": 4, "skipped": 0}
    with Store.open(make_url(folder)) as store:
        assert len(store.load_all(Rollout)) == before + 4
        atif = next(trajectory for trajectory in store.load_all(Trajectory) if trajectory.scaffold == "claude-code")
    assert atif.has_token_ids
    content = read_content(Artifacts(folder / "mergemill-store" / "artifacts").get(atif.content))
    assert [request.new_prompt_token_ids for request in content.requests] == [(1, 2), (4,)]


def test_rows_without_a_task_or_of_no_format_are_named_and_the_others_imported(folder: Path) -> None:
    with Store.open(make_url(folder)) as store:
        name = store.load_all(Rollout)[0].name
    lines = [
        json.dumps({"instance_id": "nobody__knows-1", "messages": MESSAGES}),
        "{broken",
        json.dumps({"instance_id": name, "messages": "text"}),
        json.dumps({"instance_id": name, "messages": [*MESSAGES, {"role": "assistant", "tool_calls": ["bash"]}]}),
        json.dumps({"instance_id": name, "messages": [{"role": "user", "content": 5}, *MESSAGES]}),
        json.dumps({"instance_id": "\ud800", "messages": MESSAGES}),
        json.dumps({"instance_id": name, "messages": MESSAGES, "tools": json.dumps([BASH])}),
    ]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    done = run(folder, "trajectories", "import", "rows.jsonl", "--json")
    assert done.exit_code == 3
    assert done.lines[-1] == {"event": "summary", "new": 1, "known": 0, "skipped": 6}
    assert "rows.jsonl, line 1: there is no task nobody__knows-1" in done.stderr
    assert "rows.jsonl, line 2: it is not JSON: " in done.stderr
    assert "rows.jsonl, line 3: the messages are no list" in done.stderr
    assert f"rows.jsonl, line 4: content or calls of message {len(MESSAGES)} have another form" in done.stderr
    assert "rows.jsonl, line 5: content or calls of message 0 have another form" in done.stderr
    assert "rows.jsonl, line 6: there is no task ?" in done.stderr
    assert run(folder, "trajectories", "import", "rows.jsonl", "--format", "csv").exit_code == 2
    assert run(folder, "trajectories", "import", "nowhere.json").exit_code == 3


def test_what_is_exported_can_be_imported(folder: Path) -> None:
    words = ("--unselected", "--scaffold", "codex", "--out")
    for name in ("messages", "atif"):
        assert run(folder, "trajectories", "export", "--format", name, *words, name).exit_code == 0
    files = [
        "messages/train.jsonl",
        *(f"atif/trajectories/{path.name}" for path in (folder / "atif/trajectories").iterdir()),
    ]
    *rows, summary = run(folder, "trajectories", "import", *files, "--json").lines
    assert summary["new"] == 2
    assert [(row["scaffold"], row["trajectories"]) for row in rows] == [("codex", 1)] * 2


def test_rows_of_every_api_are_exported_alike(folder: Path) -> None:
    with Store.open(make_url(folder)) as store:
        name = store.load_all(Rollout)[0].name
    arguments = {"command": "echo it's", "timeout": None}
    calls = [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": arguments}}]
    blocks = [
        {"type": "thinking", "thinking": "Where?", "signature": "c2ln"},
        {"type": "tool_use", "id": "c1", "name": "bash", "input": arguments},
    ]
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "it's"}]}]
    head: list[dict[str, Any]] = [{"role": "developer", "content": "Be brief."}, TASK]
    tool = {"role": "tool", "tool_call_id": "c1", "content": "it's"}
    former = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "bash", "arguments": json.dumps(arguments)},
    }
    rows = [
        [*head, {"role": "assistant", "content": "", "reasoning": "Where?", "tool_calls": calls}, tool, DONE],
        [*head, {"role": "assistant", "content": blocks}, {"role": "user", "content": results}, DONE],
        [*head, former | {"reasoning": "Where?"}, {"role": "function", "name": "bash", "content": "it's"}, DONE],
    ]
    lines = [json.dumps({"instance_id": name, "model": f"m{at}", "messages": row}) for at, row in enumerate(rows)]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    *_, summary = run(folder, "trajectories", "import", "rows.jsonl", "--json").lines
    assert summary == {"event": "summary", "new": 3, "known": 0, "skipped": 0}
    with Store.open(make_url(folder)) as store:
        imported = [trajectory for trajectory in store.load_all(Trajectory) if trajectory.scaffold == "unknown"]
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    contents = [read_content(artifacts.get(trajectory.content)) for trajectory in imported]
    rows_of_each = [make_conversations(content, per_request=False) for content in contents]
    exported = [[flatten_message(message) for message in row.messages] for (row,) in rows_of_each]
    assert len(exported) == 3
    for messages in exported:
        assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
        assert messages[0]["content"] == "Be brief."
        (call,) = messages[2]["tool_calls"]
        assert call["function"] == {"name": "bash", "arguments": json.dumps(arguments)}
        assert messages[2]["reasoning_content"] == "Where?"
        assert (messages[3]["tool_call_id"], messages[3]["content"]) == (call["id"], "it's")
