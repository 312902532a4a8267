"""Runs of `mergemill sample` without containers: events, messages, records and rows, to the last byte.

Tests of this file show that something changed, not which of both is right; the file to compare with is
`tests.samplers.recorded_runs`.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from core.errors import Transient
from core.settings.group import replace_values
from mergemill.agents.sampling.progress import JsonSamplingProgress
from mergemill.agents.sampling.request import WorldSampleRequest
from mergemill.agents.sampling.world_scaffolds import make_world_scaffolds
from mergemill.agents.sampling.worlds import sample_scenarios
from samplers.gateway.process import GatewayProcess
from taskdb.artifacts import open_artifacts
from taskdb.records import Candidate, PullRequest, Stage, Task
from taskdb.records.base import Record
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.namespaces import require_bubblewrap
from tests.samplers.recorded_runs import check_recorded, describe_rows, describe_run
from tests.samplers.scripted_model import Answer, Call, ModelRequest, ScriptedModel, Turn
from tests.samplers.worlds.database import add_world, make_database, make_settings
from tests.samplers.worlds.local_server import needs_root, open_local_server
from tests.samplers.worlds.player import AGENT, USER, ScenarioPlayer, play_dialogue
from tests.simulators.swe.making import read_prompt
from tests.simulators.swe.sampling import answer as work
from tests.simulators.swe.sampling import make_task, sample
from tests.worlds.programs import make_scenario, make_world

BUSY = "library_loans.busy_morning"
LOOK = Turn(calls=(Call("search_books", {"text": "the"}),))
R = TypeVar("R", bound=Record)
SOURCE = "git:ada__calc"
TALK = Turn(text="Let me think about it.")
RENAME = Turn(calls=(Call("rename_item", {"item_id": "I-1", "name": "x"}),))


def fail_late(request: ModelRequest) -> Turn:
    """Solve the scenario, but for an upstream that breaks down."""
    return ScenarioPlayer()(request) if request.place < 2 else Turn(fault="no-answer")


def lose_user(request: ModelRequest) -> Turn:
    """Play a dialogue whose user is rejected after the greeting."""
    is_lost = request.body["model"] == USER and request.place > 0
    return Turn(fault="400") if is_lost else play_dialogue(request)


SCENARIO_RUNS: dict[str, tuple[str, Answer | Sequence[Turn] | None, dict[str, Any]]] = {
    "proof": ("oracle,noop", None, {}),
    "solved": ("tools", ScenarioPlayer(), {"llm_price_prompt": 1.0, "llm_price_completion": 2.0}),
    "partly": ("tools", ScenarioPlayer(n_calls=3, per_turn=2), {}),
    "talks": ("tools", [TALK], {}),
    "turns": ("tools", [LOOK], {"rollout_turns": 3}),
    "budget": ("tools", ScenarioPlayer(), {"rollout_requests": 2}),
    "rejected": ("tools", [LOOK, Turn(fault="context")], {}),
    "upstream-fails": ("tools", fail_late, {}),
    "dialogue": ("dialogue", play_dialogue, {"llm_price_prompt": 1.0, "llm_price_completion": 2.0}),
    "user-fails": ("dialogue", lose_user, {}),
}
"""Name of a run -> its scaffolds, its model and its settings."""


def run_scenarios(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    scaffolds: str,
    model: Answer | Sequence[Turn] | None,
    options: dict[str, Any],
    only: tuple[str, ...] = (BUSY,),
) -> dict[str, Any]:
    """Sample scenarios of a folder's database, and return the result."""
    settings = replace_values(make_settings(folder), {"workers": 1, "rollout_retries": 0, **options})
    names = scaffolds.split(",")
    request = WorldSampleRequest(
        scaffolds=make_world_scaffolds(names, USER if "dialogue" in names else ""),
        only=only,
        model=AGENT if model else "",
        attempts=1,
        checkpoint="step-1" if model else "",
        sampling={"temperature": 0.5} if model else {},
    )
    out = io.StringIO()
    with ScriptedModel(model or []) as served:
        if model is not None:
            settings = replace_values(settings, {"upstream": served.url})
        code = sample_scenarios(request, settings, JsonSamplingProgress(out=out), open_local_server)
        requests = tuple(served.requests)
    return describe_run(folder, code, out.getvalue().splitlines(), capsys.readouterr().err, requests)


@needs_root
@pytest.mark.parametrize("name", SCENARIO_RUNS)
def test_rollouts_of_scenarios_leave_the_same(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_database(tmp_path, ["library_loans"])
    check_recorded(f"scenarios-{name}", run_scenarios(tmp_path, capsys, *SCENARIO_RUNS[name]))


@needs_root
def test_a_world_with_a_fault_and_one_that_is_refused_leave_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = make_scenario()
    unloadable = replace(scenario, name="odd", state={"clock": 1})
    with Store.open(make_settings(tmp_path).storage.db) as store:
        artifacts = open_artifacts(make_settings(tmp_path).storage)
        broken = make_world("# rename", "raise KeyError(name)")
        add_world(store, artifacts, broken, [scenario, unloadable])
    check_recorded("scenarios-faults", run_scenarios(tmp_path, capsys, "tools,noop", [RENAME], {}, only=()))


@needs_root
@pytest.mark.parametrize("scaffold", ["tools", "dialogue"])
def test_a_gateway_that_is_gone_leaves_the_same(
    scaffold: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Transient("the gateway does not answer")

    monkeypatch.setattr(GatewayProcess, "open_rollout", refuse)
    make_database(tmp_path, ["library_loans"])
    check_recorded(f"scenarios-no-gateway-{scaffold}", run_scenarios(tmp_path, capsys, scaffold, play_dialogue, {}))


@needs_root
def test_rows_of_scenarios_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_database(tmp_path, ["library_loans"])
    run_scenarios(tmp_path, capsys, *SCENARIO_RUNS["solved"])
    check_recorded("scenarios-rows", export_rows(tmp_path, "--environment", "synthetic"))


def export_rows(folder: Path, *words: str) -> list[Any]:
    """Select and export the trajectories of a database, and return the rows."""
    selected = run_mergemill("trajectories", "select", *words, cwd=folder)
    assert selected.exit_code == 0, selected.stderr
    more = ("--with-simulated",) if "simulated" in words else words
    done = run_mergemill("trajectories", "export", "--format", "messages", "--out", "out", *more, cwd=folder)
    assert done.exit_code == 0, done.stderr
    return describe_rows(folder, folder / "out" / "train.jsonl")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task whose programs are simulated, which has the same id each time."""
    require_bubblewrap()
    folder, fixed = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("fixed")
    make_task(folder)
    shutil.copytree(folder / "mergemill-store", fixed / "mergemill-store")
    with Store.open(f"sqlite:///{folder}/mergemill.db", create=False) as store:
        (task,) = store.load_all(Task)
        candidate = store.get(Candidate, task.candidate)
        pull = store.get(PullRequest, candidate.parent)
    # Ids depend on the address of the source, which is a folder of this test, and on a commit with the present time.
    place = {"source": SOURCE, "merge_commit": "0" * 40, "merged_at": "2026-01-01T00:00:00Z", "first_commit_at": None}
    pull = change(pull, place)
    candidate = change(candidate, place | {"parent": pull.id})
    task = change(task, place | {"parent": candidate.id, "candidate": candidate.id})
    derived = StageResult(stage=Stage.DERIVE, result=task, source=SOURCE, name=pull.name, seconds=0.1)
    with Store.open(f"sqlite:///{fixed}/mergemill.db") as store:
        store.add_mined_changes((pull, candidate, 0.1))
        store.add_stage_results(derived)
    return fixed


def change(record: R, values: Mapping[str, Any]) -> R:
    """Return a record with other values in the fields that it has."""
    fields = record.model_dump()
    return type(record).model_validate(fields | {name: value for name, value in values.items() if name in fields})


def fail_simulator(request: ModelRequest) -> Turn:
    """Work on the task, but for a simulator that is rejected."""
    return Turn(fault="401") if "You stand in for programs" in read_prompt(request) else work(request)


def fail_upstream(request: ModelRequest) -> Turn:
    """Work on the task, but for an upstream of the agent that breaks down."""
    return Turn(fault="no-answer") if request.tools and request.place > 1 else work(request)


TASK_RUNS: dict[str, tuple[Callable[[ModelRequest], Turn], tuple[str, ...]]] = {
    "worked": (work, ("--scaffold", "react,oracle,noop", "--checkpoint", "step-1", "--sampling", "temperature=0.5")),
    "priced": (work, ("--scaffold", "react", "--llm-price-prompt", "1", "--llm-price-completion", "2")),
    "talks": (lambda request: TALK if request.tools else work(request), ("--scaffold", "react")),
    "turns": (work, ("--scaffold", "react", "--rollout-turns", "2")),
    "budget": (work, ("--scaffold", "react", "--rollout-requests", "3")),
    "upstream-fails": (fail_upstream, ("--scaffold", "react")),
    "simulator-fails": (fail_simulator, ("--scaffold", "react")),
}
"""Name of a run -> its model and its options."""


def run_task(folder: Path, name: str) -> dict[str, Any]:
    """Sample the task of a folder, and return the result."""
    model, words = TASK_RUNS[name]
    with ScriptedModel(model) as served:
        done = sample(folder, served, *words, "--workers", "1", "--rollout-retries", "0")
        requests = tuple(served.requests)
    return describe_run(folder, done.exit_code, done.stdout.splitlines(), done.stderr, requests)


@pytest.mark.parametrize("name", TASK_RUNS)
def test_rollouts_of_tasks_leave_the_same(name: str, simulated: Path, tmp_path: Path) -> None:
    copy_database(simulated, tmp_path)
    check_recorded(f"tasks-{name}", run_task(tmp_path, name))


def test_rows_of_tasks_are_the_same(simulated: Path, tmp_path: Path) -> None:
    copy_database(simulated, tmp_path)
    run_task(tmp_path, "worked")
    check_recorded("tasks-rows", export_rows(tmp_path, "--environment", "simulated"))


def copy_database(source: Path, target: Path) -> None:
    """Copy the database of a folder, and its store."""
    shutil.copy(source / "mergemill.db", target)
    shutil.copytree(source / "mergemill-store", target / "mergemill-store")


MISTAKES: Sequence[tuple[str, ...]] = (
    ("--scaffold", "telepathy", "--model", "m"),
    ("--scaffold", "react"),
    ("--scaffold", "react", "--model", "m"),
    ("--scaffold", "react", "--model", "m", "--upstream", "http://127.0.0.1:9/v1", "--environment", "simulated"),
    ("--scaffold", "noop"),
    ("--scaffold", "noop", "--only", "ada__calc-9.bugfix"),
    ("--scaffold", "noop", "--environment", "simulated"),
    ("--scaffold", "noop", "--environment", "simulated", "--llm", "http://127.0.0.1:9/v1", "--sandbox", "local"),
    ("--scaffold", "codex", "--model", "m", "--environment", "simulated", "--sandbox", "bubblewrap"),
    ("--scaffold", "tools", "--model", "m"),
    ("--scaffold", "tools", "--environment", "synthetic"),
    ("--scaffold", "tools", "--environment", "synthetic", "--model", "m"),
    ("--scaffold", "dialogue", "--environment", "synthetic", "--model", "m"),
    ("--scaffold", "react", "--environment", "synthetic", "--model", "m"),
    ("--scaffold", "noop", "--environment", "synthetic"),
    ("--scaffold", "noop", "--environment", "synthetic,simulated"),
    ("--scaffold", "noop", "--environment", "synthetic", "--only", "nothing"),
    ("--scaffold", "noop", "--world", "nothing"),
    ("--scaffold", "noop", "--cluster", "nowhere"),
)


def test_mistakes_get_the_same_line_and_exit_code(simulated: Path, tmp_path: Path) -> None:
    copy_database(simulated, tmp_path)
    results = {}
    for words in MISTAKES:
        done = run_mergemill("sample", *words, cwd=tmp_path)
        results[" ".join(words)] = [done.exit_code, done.stdout, *done.stderr.splitlines()]
    check_recorded("mistakes", results)
