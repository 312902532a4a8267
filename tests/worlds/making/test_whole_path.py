"""The whole path from scripted answers: 12 seed tasks and themes, KMeans, 3 worlds, 6 scenarios, all certified."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskdb.artifacts import Artifacts
from tests.cli import make_command_environment, run_mergemill
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.worlds.making.answers import WORLDS, answer, find_kind, open_scripted_model, read_prompt, write_tasks
from tests.worlds.making.running import FAST, count_reasons, list_records, make_worlds

pytestmark = pytest.mark.docker

RUN = ("--tasks", "tasks.txt", *FAST)
N_KILLS = 10


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, world_image: str) -> Path:
    """A folder in which all steps ran once, without a failure."""
    folder = tmp_path_factory.mktemp("whole")
    write_tasks(folder / "tasks.txt")
    with open_scripted_model() as model:
        done = make_worlds("run", folder, model, *RUN)
        assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys.values()) == {1}
        assert len(model.requests) == model.paid == done.lines[-1]["requests"]
        (folder / "paid.json").write_text(json.dumps(sorted(model.paid_keys)))
    (folder / "events.json").write_text(json.dumps(done.lines))
    return folder


def test_all_six_scenarios_are_certified_and_the_counts_add_up(whole: Path) -> None:
    *events, summary = json.loads((whole / "events.json").read_text())
    steps = {step["step"]: step for step in summary["steps"]}
    counts = {name: (step["found"], step["kept"], step["rejected"], step["left"]) for name, step in steps.items()}
    assert counts == {
        "discover": (12, 3, {"similar-theme": 9}, 0),
        "build": (3, 3, {}, 0),
        "assess": (3, 3, {}, 0),
        "scenarios": (6, 6, {}, 0),
    }
    assert summary["environment"] == "synthetic"
    assert sum(event["step"] == "scenarios" and event["ok"] for event in events) == 6
    listed = run_mergemill("worlds", "list", "--json", cwd=whole).lines
    assert [(row["name"], row["status"], row["certified_scenarios"]) for row in listed] == [
        (name, "certified", 2) for name in WORLDS
    ]
    assert {row["environment"] for row in listed} == {"synthetic"}


def test_certificates_have_what_the_proofs_found(whole: Path) -> None:
    records = list_records(whole)
    artifacts = Artifacts(whole / "mergemill-store" / "artifacts")
    for _, world in records["WorldCertificate"]:
        assert (world["rounds"], world["passed"], world["n_calls"]) == (32, 32, 80)
        assert [gate["name"] for gate in world["gates"]][-2:] == ["dead-tools", "changes"]
        assert len(artifacts.get(world["log"]).splitlines()) == 32
    assert len(records["ScenarioCertificate"]) == 6
    for _, scenario in records["ScenarioCertificate"]:
        assert (scenario["solution_origin"], scenario["n_calls"] >= 5) == ("rollout", True)
        assert 0.7 * scenario["mutations"] <= scenario["mutations_noticed"] <= scenario["mutations"]
        assert scenario["pass_rates"] == [{"model": "scripted", "attempts": 2, "solved": 2, "mean_reward": 1.0}]
        assert len(artifacts.get(scenario["log"]).splitlines()) == 2
    solutions = [
        json.loads(artifacts.get(certificate["solution"])) for _, certificate in records["ScenarioCertificate"]
    ]
    assert any("$result" in json.dumps(solution) for solution in solutions)  # made ids are references


def test_a_second_run_asks_nothing_and_adds_nothing(whole: Path) -> None:
    before = list_records(whole)
    with open_scripted_model() as model:
        again = make_worlds("run", whole, model, *RUN)
        assert (again.exit_code, model.requests) == (0, []), again.stderr
        assert [step["found"] for step in again.lines[-1]["steps"]] == [12, 0, 0, 0]
    assert list_records(whole) == before


def kill_at_random(folder: Path, model: ScriptedModel, paid: int) -> int:
    """Run all steps and kill them ten times, at places spread over all requests; return how often they were killed."""
    drawn = random.Random(11)
    places = sorted(drawn.sample(range(1, paid), N_KILLS))
    command = ["mergemill", "worlds", "run", "--llm", model.url, "--model", "scripted", *RUN]
    for killed, place in enumerate(places):
        with subprocess.Popen(
            command,
            cwd=folder,
            env=make_command_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as driver:
            until = time.monotonic() + 300
            while model.paid < place and driver.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(drawn.uniform(0, 0.5))
            if driver.poll() is not None:
                return killed
            driver.send_signal(signal.SIGKILL)
    return N_KILLS


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_kills_change_no_record_and_cost_nothing(whole: Path, tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.txt")
    paid = json.loads((whole / "paid.json").read_text())
    with open_scripted_model() as model:
        assert kill_at_random(tmp_path, model, len(paid)) == N_KILLS
        done = make_worlds("run", tmp_path, model, *RUN)
        assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys.values()) == {1}
        assert sorted(model.paid_keys) == paid
    assert list_records(tmp_path) == list_records(whole)


# -------------------------------------------------------------------------------------------------- rejected worlds


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library as a world, not assessed yet."""
    folder = tmp_path_factory.mktemp("library")
    lines = write_tasks(folder / "all.txt").read_text().splitlines()
    (folder / "tasks.txt").write_text(f"{lines[4]}\n")
    with open_scripted_model() as model:
        for step, words in (("discover", ("--tasks", "tasks.txt")), ("build", ())):
            assert make_worlds(step, folder, model, *words).exit_code == 0
    return folder


def copy_folder(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)


def judge(verdicts: Iterator[str]) -> Callable[[ModelRequest], Turn]:
    given: dict[str, str] = {}

    def reply(request: ModelRequest) -> Turn:
        if find_kind(request) != "checker":
            return answer(request)
        key = request.headers["idempotency-key"]
        if key not in given:
            given[key] = next(verdicts)
        return Turn(text=json.dumps({"analysis": "So.", "verdict": given[key], "reason": "So it is."}))

    return reply


@pytest.mark.parametrize(("failed", "kept"), [(15, 1), (16, 0)])
def test_a_world_is_kept_at_the_published_score(library: Path, tmp_path: Path, failed: int, kept: int) -> None:
    copy_folder(library, tmp_path)
    verdicts = itertools.chain(["Warning"], ["Fail"] * failed, ["Pass"] * (99 - failed))
    with open_scripted_model(judge(verdicts)) as model:
        done = make_worlds("assess", tmp_path, model, "--worlds-gate-calls", "80")
    assert done.exit_code == 0, done.stderr
    (step,) = done.lines[-1]["steps"]
    assert (step["kept"], step["rejected"]) == (kept, {} if kept else {"low-score": 1})
    if kept:
        listed = run_mergemill("worlds", "list", "--json", cwd=tmp_path).lines
        assert (listed[0]["rounds"], listed[0]["score"], listed[0]["pass_rate"]) == (100, 0.85, 0.84)
    else:
        ((_, rejection),) = list_records(tmp_path)["WorldRejection"]
        log = Artifacts(tmp_path / "mergemill-store" / "artifacts").get(rejection["log"])
        assert len(log.splitlines()) == 100


def test_a_world_that_a_gate_refuses_costs_no_agent(library: Path, tmp_path: Path) -> None:
    copy_folder(library, tmp_path)
    with open_scripted_model() as model:
        done = make_worlds("assess", tmp_path, model, "--worlds-gate-calls", "3")
        assert (done.exit_code, done.lines[-1]["steps"][0]["rejected"]) == (0, {"dead-tool": 1}), done.stderr
        assert model.requests == []


# ------------------------------------------------------------------------------------------------ rejected scenarios


def test_scenarios_are_rejected_under_reasons_that_add_up(library: Path, tmp_path: Path) -> None:
    """Six places: two good ones, a repeated state, a short task, an unsolved one, and one whose checks hold already."""
    copy_folder(library, tmp_path)
    words = ("--worlds-states", "6", "--worlds-rollouts", "1", "--worlds-gate-calls", "80", "--worlds-rounds", "16")

    def reply(request: ModelRequest) -> Turn:
        kind, text = find_kind(request), read_prompt(request)
        number = next((n for n in range(1, 7) if f"This is state {n} of 6" in text or f"Town {n}" in text), 0)
        if kind == "initial-state" and number:
            return Turn(text=json.dumps(_mark_state(json.loads(answer(request).text), number)))
        if kind == "task" and number == 4:
            return Turn(text=json.dumps({"analysis": "Short.", "task": "Return a book."}))
        if kind == "task":
            return Turn(text=json.dumps({"analysis": "Fine.", "task": _find_task(text, number)}))
        if kind == "solver" and "(place 5)" in text:
            return Turn(text="Task Completed")
        if kind == "check" and "(place 6)" in text:
            name = "check_1" if "`def check_1(" in text else text.partition("`def ")[2].partition("(")[0]
            return Turn(text=f"```python\ndef {name}(final_state):\n    return True\n```")
        return answer(request)

    with open_scripted_model(reply) as model:
        assert make_worlds("assess", tmp_path, model, *words[4:]).exit_code == 0
        done = make_worlds("scenarios", tmp_path, model, *words[:4])
        assert done.exit_code == 0, done.stderr
        (step,) = done.lines[-1]["steps"]
        assert (step["found"], step["kept"], step["left"]) == (6, 2, 0)
        assert step["rejected"] == {
            "checks-already-hold": 1,
            "same-state": 1,
            "short-task": 1,
            "unsolved": 1,
        }
        paid = model.paid
        again = make_worlds("scenarios", tmp_path, model, *words[:4])
        assert (again.lines[-1]["steps"][0]["found"], model.paid) == (0, paid)
        more = make_worlds("scenarios", tmp_path, model, *words[:4], "--retry", "unsolved,short-task")
        assert more.lines[-1]["steps"][0]["rejected"] == {"unsolved": 1, "short-task": 1}
        assert model.paid == paid
    assert count_reasons(tmp_path)["unsolved"] >= 1


def _mark_state(state: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a state with the number in a member's name; state 3 is state 1 again."""
    member = next(iter(state["members"].values()))
    member["name"] = f"Town {number if number != 3 else 1} Club"
    return state


def _find_task(text: str, number: int) -> str:
    from tests.worlds.making.golden import cut_world  # noqa: PLC0415

    scenarios = cut_world("library_loans").scenarios
    return f"{scenarios[(number - 1) % 2].task} (place {number})"
