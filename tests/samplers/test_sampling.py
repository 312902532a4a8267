"""Agents on certified tasks: from the command to stored rollouts, in real containers against a scripted model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.config import Settings
from mergemill.agents.sampling.queue import MIN_STREAK
from taskdb.artifacts import Artifacts
from taskdb.queries import readonly
from taskdb.queries import tasks as queries
from taskdb.records import Task
from taskdb.records.rollouts import Rollout, RolloutStatus
from taskdb.store import Store
from tests.cli import WITH_KEPT_RUNS, CommandResult, run_mergemill
from tests.samplers.conftest import BUGFIX, OTHER_BUGFIX, WORDS
from tests.samplers.scripted_model import Call, ModelRequest, Script, ScriptedModel, Turn

FIX = "sed -i \"s/split(' ')/split()/\" greet/words.py"
SUBMIT = Turn(calls=(Call("submit"),))


def run_command(command: str) -> Turn:
    return Turn(text="Next.", calls=(Call("bash", {"command": command}),))


def sample(folder: Path, model: ScriptedModel | None, *arguments: str, **variables: str) -> CommandResult:
    upstream = ("--model", "scripted", "--upstream", model.url) if model else ()
    return run_mergemill("sample", "--json", *upstream, *arguments, cwd=folder, **WITH_KEPT_RUNS, **variables)


def open_store(folder: Path) -> Store:
    return Store.open(f"sqlite:///{folder}/mergemill.db")


def read_rollouts(folder: Path) -> list[Rollout]:
    with open_store(folder) as store:
        return store.load_all(Rollout)


def get_artifacts(folder: Path) -> Artifacts:
    return Artifacts(folder / "mergemill-store" / "artifacts")


pytestmark = pytest.mark.docker


def test_the_oracle_earns_1_and_the_noop_0_for_every_kind(tasks_of_all_kinds: Path) -> None:
    tasks = tasks_of_all_kinds
    done = sample(tasks, None, "--scaffold", "oracle,noop", "--where", "name LIKE 'ada__greet-3.%'")
    assert done.exit_code == 0, done.stderr
    *events, summary = done.lines
    kinds = {name.rsplit(".")[1].rstrip("-123456789") for name in (event["task"] for event in events)}
    assert kinds == {"bugfix", "test-writing", "review"}
    assert {event["status"] for event in events} == {"done"}
    for event in events:
        # without findings the review of clean code is right
        is_clean_review = "review" in event["task"] and event["value"] == 1.0 and event["scaffold"] == "noop"
        if not is_clean_review:
            assert event["value"] == (1.0 if event["scaffold"] == "oracle" else 0.0), event
    assert (summary["planned"], summary["new"], summary["left"]) == (len(events), len(events), 0)
    with open_store(tasks) as store:
        (row,) = readonly.run_query(store, "SELECT count(*) AS n FROM rollouts WHERE resolved AND scaffold = 'oracle'")
    assert row["n"] == sum(event["scaffold"] == "oracle" for event in events)


def test_a_model_that_fixes_the_bug_is_paid_and_all_it_did_is_recorded(plain_tasks: Path) -> None:
    turns = [run_command("cat greet/words.py"), run_command(f"{FIX}; git commit -qam done"), SUBMIT]
    with ScriptedModel([Script(turns=tuple(turns), match=WORDS), Script(turns=(SUBMIT,))], token_ids=True) as model:
        done = sample(
            plain_tasks,
            model,
            *("--scaffold", "react", "--kind", "bugfix", "--attempts", "2", "--token-ids", "vllm"),
            *("--sampling", "temperature=0.5", "--llm-price-prompt", "1000", "--llm-price-completion", "2000"),
        )
        again = sample(
            plain_tasks,
            model,
            "--scaffold",
            "react",
            "--only",
            BUGFIX,
            "--attempts",
            "2",
            "--sampling",
            "temperature=0.5",
        )
        paid = model.paid
    assert (done.exit_code, again.exit_code) == (0, 0), done.stderr + again.stderr
    values = {(event["task"], event["attempt"]): event["value"] for event in done.lines[:-1]}
    assert values == {(BUGFIX, 1): 1.0, (BUGFIX, 2): 1.0, (OTHER_BUGFIX, 1): 0.0, (OTHER_BUGFIX, 2): 0.0}
    assert again.lines == [again.lines[-1]]  # nothing is left to do
    assert (again.lines[-1]["earlier"], again.lines[-1]["new"]) == (2, 0)
    assert paid == sum(event["requests"] for event in done.lines[:-1]) == 2 * (3 + 1)

    rollout = next(rollout for rollout in read_rollouts(plain_tasks) if rollout.name == BUGFIX)
    artifacts = get_artifacts(plain_tasks)
    assert rollout.status is RolloutStatus.DONE
    assert rollout.submission is not None
    patch = artifacts.get_text(rollout.submission)
    assert [line for line in patch.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "-    return len(words.split(' '))",
        "+    return len(words.split())",
    ]
    assert rollout.exchanges is not None
    ends = [json.loads(line) for line in artifacts.get(rollout.exchanges).splitlines()]
    requests = [json.loads(event["request"]) for event in ends if event["event"] == "end"]
    assert [len(request["messages"]) for request in requests] == [2, 4, 6]
    assert {request["temperature"] for request in requests} == {0.5}
    assert all(event["completion_token_ids"] for event in ends if event["event"] == "end")
    assert len(rollout.latencies) == 3
    trees = [state.tree for state in rollout.states]
    assert len(set(trees)) == 2  # before and after the edit
    assert rollout.cost == pytest.approx((rollout.prompt_tokens * 1000 + rollout.completion_tokens * 2000) / 1e6)
    assert not rollout.leaks
    assert not list((plain_tasks / "mergemill-store" / "gateway").glob("*.jsonl"))  # the record holds it


def test_a_function_of_the_user_divides_the_reward_among_trajectories(plain_tasks: Path) -> None:
    (plain_tasks / "own_credit.py").write_text(
        "def halve(rollout, parts):\n    return [rollout.value / 2 for _ in parts]\n"
    )
    edit = run_command("sed -i \"s/split(' ')/split()/\" greet/words.py")
    with ScriptedModel([edit, SUBMIT]) as model:
        words = ("--scaffold", "react", "--only", BUGFIX, "--checkpoint", "halved", "--credit", "own_credit:halve")
        done = sample(plain_tasks, model, *words)
    assert done.exit_code == 0, done.stderr
    with open_store(plain_tasks) as store:
        query = "SELECT y.value, r.value AS whole FROM trajectories y JOIN rollouts r ON r.id = y.rollout"
        rows = list(readonly.run_query(store, f"{query} WHERE r.checkpoint = 'halved'"))
    assert rows == [{"value": 0.5, "whole": 1.0}]


@pytest.mark.slow
def test_reviews_and_tests_are_submitted_in_their_own_form(tasks_of_all_kinds: Path) -> None:
    tasks = tasks_of_all_kinds
    with open_store(tasks) as store:
        rows = list(readonly.run_query(store, "SELECT name, kind FROM tasks WHERE kind IN ('review', 'test-writing')"))
    review = next(row["name"] for row in rows if row["kind"] == "review")
    writing = next(row["name"] for row in rows if row["kind"] == "test-writing" and "greet-3" in row["name"])
    test = "def test_many_gaps():\n    from greet.words import count\n    assert count('a   b') == 2\n"
    write = f"cat >> tests/test_words.py <<'END'\n\n\n{test}END"
    sees_tree = "[ $(stat -c %U%a /tree/greet/words.py) = root444 ] && [ ! -e /tree/.git ] && [ -e /tree/README.md ]"
    answer = json.dumps({"findings": [{"file": "greet/words.py", "first_line": 1, "last_line": 2, "claim": "wrong"}]})
    scripts = [
        Script(turns=(run_command(write), SUBMIT), match="Write tests that detect"),
        Script(turns=(run_command(f"{sees_tree} && printf %s '{answer}' > /testbed/review.json"), SUBMIT)),
    ]
    with ScriptedModel(scripts) as model:
        done = sample(tasks, model, "--scaffold", "react", "--only", f"{review},{writing}")
    assert done.exit_code == 0, done.stderr
    rollouts = {rollout.name: rollout for rollout in read_rollouts(tasks)}
    assert rollouts[writing].value is not None
    assert rollouts[writing].value > 0.5
    submission = rollouts[review].submission
    assert submission is not None
    assert json.loads(get_artifacts(tasks).get(submission)) == json.loads(answer)
    score = rollouts[review].score
    assert score is not None
    assert score.parts["findings"] == 1


FAULTS = {
    "500": "upstream-server",
    "429": "upstream-rate-limit",
    "hang": "upstream-timeout",
    "cut": "upstream-cut",
    "html": "upstream-nonsense",
    "refuse": "upstream-connection",
}


def test_an_upstream_that_fails_ends_its_rollout_unscored_and_the_queue_goes_on(plain_tasks: Path) -> None:
    """Each fault meets another rollout, and those that meet none are sampled all the same."""
    faults, met = iter(FAULTS), dict[str, str | None]()

    def answer(request: ModelRequest) -> Turn:
        key = request.headers["idempotency-key"]
        if key not in met:
            met[key] = next(faults, None)
        fault = met[key]
        return Turn(fault=fault) if fault else SUBMIT

    attempts = len(FAULTS) // 2 + 1
    with ScriptedModel(answer) as model:
        done = sample(
            plain_tasks,
            model,
            *("--scaffold", "react", "--kind", "bugfix", "--attempts", str(attempts), "--workers", "8"),
            *("--request-timeout", "1", "--rollout-retries", "0", "--rollout-seconds", "120"),
        )
    *events, summary = done.lines
    broken = [event for event in events if event["status"] == "infrastructure"]
    assert sorted(event["reason"] for event in broken) == sorted(FAULTS.values())
    assert {event["value"] for event in broken} == {None}
    others = [event for event in events if event not in broken]
    assert [(event["status"], event["value"]) for event in others] == [("done", 0.0)] * 2
    assert (done.exit_code, summary["left"]) == (75, len(FAULTS))


def test_a_queue_stops_at_an_outage_and_goes_on_after_it(plain_tasks: Path) -> None:
    words = ("--scaffold", "react", "--kind", "bugfix", "--attempts", "12", "--rollout-retries", "0", "--workers", "2")
    with ScriptedModel([Turn(fault="html")]) as model:
        done = sample(plain_tasks, model, *words)
    *events, summary = done.lines
    assert {event["reason"] for event in events} == {"upstream-nonsense"}
    assert MIN_STREAK <= len(events) <= MIN_STREAK + 2  # of 24; one more may have been running
    assert (done.exit_code, summary["left"]) == (75, 24)
    assert "rollouts in a row failed, the last by upstream-nonsense (" in done.stderr
    assert done.stderr.rstrip().endswith("To fix it: repair that, and run the same command again")

    with ScriptedModel([SUBMIT]) as model:
        again = sample(plain_tasks, model, *words, "--attempts", "2")
    assert (again.exit_code, again.lines[-1]["new"], again.lines[-1]["left"]) == (0, 4, 0)


@pytest.mark.parametrize(
    ("turn", "status", "reason"),
    [
        (Turn(text="I think the fix is clear."), "failed", "no-action"),
        (Turn(fault="huge"), "failed", "no-action"),
        (Turn(calls=(Call("teleport", {"where": "moon"}),)), "failed", "turn-limit"),
        (Turn(calls=(Call("bash", "{not json"),)), "failed", "turn-limit"),
        (run_command("sleep 600"), "failed", "time-limit"),
        (run_command("rm -rf /testbed/.git; git init -q .; kill -9 -1"), "failed", "turn-limit"),
    ],
    ids=["talks", "5 MB", "unknown tool", "broken arguments", "sleeps", "destroys"],
)
def test_what_the_model_does_wrong_is_a_result_of_the_agent(
    plain_tasks: Path, turn: Turn, status: str, reason: str
) -> None:
    limits = ("--rollout-turns", "5", "--rollout-seconds", "6" if "sleep" in str(turn) else "60")
    with ScriptedModel([turn]) as model:
        done = sample(plain_tasks, model, "--scaffold", "react", "--only", BUGFIX, *limits)
    assert done.exit_code == 0, done.stderr
    event = done.lines[0]
    assert (event["status"], event["reason"], event["value"]) == (status, reason, 0.0), event


def test_a_budget_stops_the_rollout_and_is_named(plain_tasks: Path) -> None:
    with ScriptedModel([run_command("true")]) as model:
        done = sample(plain_tasks, model, "--scaffold", "react", "--only", BUGFIX, "--rollout-requests", "4")
        assert model.paid == 4
    assert (done.lines[0]["status"], done.lines[0]["reason"]) == ("failed", "budget-requests")
    assert done.lines[0]["requests"] == 4


def test_the_container_reaches_the_gateway_and_nothing_else(plain_tasks: Path) -> None:
    probe = (
        'for at in 172.17.0.1/22 172.17.0.1/80 1.1.1.1/53; do (timeout 3 bash -c "exec 3<>/dev/tcp/$at") '
        "2>/dev/null && echo OPEN $at; done; cat /proc/net/dev | grep -c eth; "
        "(exec 3<>/dev/tcp/127.0.0.1/8411) && echo WAY"
    )
    with ScriptedModel([run_command(probe), SUBMIT]) as model:
        done = sample(plain_tasks, model, "--scaffold", "react", "--only", BUGFIX)
        (last,) = [request for request in model.requests if request.place == 1]
    assert done.exit_code == 0, done.stderr
    output = last.body["messages"][-1]["content"]
    assert "OPEN" not in output
    assert "WAY" in output
    assert output.startswith("0\n")


def test_mistakes_get_one_line_and_an_exit_code(plain_tasks: Path) -> None:
    with ScriptedModel([SUBMIT], key="right") as model:
        cases: list[tuple[Sequence[str], int, str]] = [
            (("--scaffold", "telepathy", "--model", "m"), 2, "one of react, "),
            (("--scaffold", "nowhere:Agent", "--model", "m"), 2, "MODULE:CLASS"),
            (("--scaffold", "json:JSONDecoder", "--model", "m"), 2, "is no subclass"),
            (("--scaffold", "react"), 2, "--model is missing"),
            (("--scaffold", "react", "--model", "m"), 2, "--upstream"),
            (("--scaffold", "react", "--model", "m", "--upstream", "http://127.0.0.1:9/v1"), 75, "does not answer"),
            (("--scaffold", "react", "--model", "m", "--upstream", model.url), 3, "MERGEMILL_UPSTREAM_KEY"),
            (("--scaffold", "noop", "--only", "ada__greet-9.bugfix"), 3, "ada__greet-9.bugfix"),
            (("--scaffold", "noop", "--repo", "no/where"), 3, "no task is selected"),
            (("--scaffold", "react", "--model", "m", "--sampling", "hot"), 2, "NAME=VALUE"),
        ]
        for arguments, code, words in cases:
            done = run_mergemill("sample", *arguments, cwd=plain_tasks)
            assert (done.exit_code, done.stdout) == (code, ""), (arguments, done.stderr)
            assert words in done.stderr, done.stderr
            assert len(done.stderr.splitlines()) == 1, done.stderr
        right = sample(plain_tasks, model, "--scaffold", "react", "--only", BUGFIX, MERGEMILL_UPSTREAM_KEY="right")
    assert right.exit_code == 0, right.stderr
    assert "right" not in right.stdout
    assert Settings().upstream.key is None


def test_a_task_that_is_not_certified_is_refused_unless_wanted(plain_tasks: Path) -> None:
    name = f"{BUGFIX}-2"
    with open_store(plain_tasks) as store:
        fields = queries.resolve_task(store, BUGFIX).model_dump()
        store.add(Task.model_validate(fields | {"name": name}))
    refused = run_mergemill("sample", "--scaffold", "noop", "--only", name, cwd=plain_tasks)
    assert (refused.exit_code, "is not certified" in refused.stderr) == (3, True), refused.stderr
    wanted = run_mergemill(
        "sample", "--scaffold", "noop", "--only", name, "--uncertified", "--json", cwd=plain_tasks, **WITH_KEPT_RUNS
    )
    assert (wanted.exit_code, wanted.lines[0]["value"]) == (0, 0.0)
