"""A rollout whose model was not given an instruction of its subject has no value."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from samplers.gateway.process import Budget, GatewayUsage
from samplers.rollouts.episode import EpisodeTraces
from samplers.rollouts.recorded import RecordedTraffic
from samplers.rollouts.run import RolloutRun, RolloutServices
from samplers.scaffolds.base import AgentEnd, Scaffold
from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold
from samplers.subjects.guidance import Guidance
from samplers.subjects.subject import Subject
from taskdb.artifacts import Artifacts
from taskdb.records import Score
from taskdb.records.instructions import InstructionSource
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus
from tests.samplers.guidance import GUIDANCE, keep_sources
from tests.samplers.trajectories.making import SYSTEM, TASK, call
from tests.samplers.trajectories.test_build import exchange

MODELS = [name for name in SCAFFOLDS if load_scaffold(name).uses_model]


class ClosedEnvironment:
    """Environment that no episode may be opened in."""

    refusal = "no-image"
    scores_open_episodes = False

    def begin_traces(self, scaffold: object) -> EpisodeTraces:
        return EpisodeTraces()

    def open(self, request: object, name: str) -> Any:
        raise AssertionError("a container is started")


@dataclass
class SubmittingEnvironment(ClosedEnvironment):
    """Environment without a container, in which every submission earns 1."""

    opened: int = 0
    session: Any = None
    submission: bytes = b""

    def open(self, request: object, name: str) -> Any:
        self.opened += 1
        return self

    def close(self, episode: object) -> None:
        pass

    def evaluate(self, episode: object) -> Score:
        return Score(task="task", value=1.0, resolved=True, f2p_rate=1.0, p2p_rate=1.0)

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        yield


@dataclass
class EndingScaffold(Scaffold):
    """Scaffold that ends in a given way; it delivers everything."""

    end: AgentEnd = field(default_factory=AgentEnd)
    name = "ending"
    version = "1"
    delivers = frozenset(InstructionSource)

    def agent_run(self, session: object) -> AgentEnd:
        return self.end

    def agent_postprocess(self, session: object) -> bytes:
        return b"patch"


def make_run(scaffold: Scaffold, guidance: Guidance, environment: Any, folder: Path) -> RolloutRun:
    subject = Subject(id="task", name="task", environment="verified", statement="Do it.", guidance=guidance)
    plan = RolloutPlan(
        task="task", name="task", scaffold=scaffold.name, scaffold_version=scaffold.version, model="m", attempt=1
    )
    shared = RolloutServices(
        artifacts=Artifacts(folder), clock=lambda: "2026-01-01T00:00:00Z", gateway=None, budget=Budget()
    )
    return RolloutRun(plan=plan, subject=subject, scaffold=scaffold, environment=environment, shared=shared, retry=0)


@pytest.mark.parametrize(
    ("name", "source"),
    [(name, source) for name in MODELS for source in InstructionSource if source not in load_scaffold(name).delivers],
)
def test_a_source_that_a_scaffold_does_not_deliver_is_refused_before_a_container_starts(
    name: str, source: InstructionSource, tmp_path: Path
) -> None:
    scaffold = load_scaffold(name)
    for guidance in (keep_sources(GUIDANCE, [source]), keep_sources(GUIDANCE, [source, InstructionSource.SYSTEM])):
        rollout = make_run(scaffold, guidance, ClosedEnvironment(), tmp_path).run().rollout
        assert (rollout.status, rollout.reason) == (RolloutStatus.INFRASTRUCTURE, "source-not-delivered")
        assert (rollout.value, rollout.detail) == (None, f"{name} does not deliver {source.value}")


@pytest.mark.parametrize("name", ["oracle", "noop"])
def test_a_scaffold_without_a_model_needs_no_instructions(name: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a container is started"):
        make_run(load_scaffold(name), GUIDANCE, ClosedEnvironment(), tmp_path).run()


def run_with_texts(
    texts: Sequence[str], end: AgentEnd, folder: Path, monkeypatch: pytest.MonkeyPatch, stopped_by: str = ""
) -> Rollout:
    """Run a rollout with a memory and two further turns, whose only request has some texts of the user."""
    guidance = keep_sources(GUIDANCE, [InstructionSource.MEMORY, InstructionSource.TURN])
    run = make_run(EndingScaffold(end=end), guidance, SubmittingEnvironment(), folder)
    messages = [SYSTEM, TASK, *({"role": "user", "content": text} for text in texts)]
    traffic = RecordedTraffic(exchanges=[exchange(0, messages, call(0))], n_doubtful=0, raw=b"")
    monkeypatch.setattr(run.recorder, "read_traffic", lambda: traffic)
    run.recorder.usage = GatewayUsage(stopped_by=stopped_by or None)
    return run.run().rollout


def test_where_each_instruction_was_found_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = run_with_texts([GUIDANCE.memory, *GUIDANCE.turns], AgentEnd(), tmp_path, monkeypatch)
    assert (rollout.status, rollout.reason, rollout.value) == (RolloutStatus.DONE, None, 1.0)
    assert rollout.delivered == {"memory": 0, "turn-2": 0, "turn-3": 0}
    assert rollout.model_copy(update={"delivered": {}}).id == rollout.id


def test_an_instruction_that_is_in_no_request_leaves_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = run_with_texts(GUIDANCE.turns[:1], AgentEnd(), tmp_path, monkeypatch)
    assert (rollout.status, rollout.reason) == (RolloutStatus.INFRASTRUCTURE, "source-not-delivered")
    assert (rollout.value, rollout.detail) == (None, "none of 1 requests has memory, turn-3 of the guidance")
    assert rollout.delivered == {"memory": None, "turn-2": 0, "turn-3": None}


@pytest.mark.parametrize(
    ("end", "stopped_by", "reason"),
    [
        (AgentEnd(reason="time-limit"), "", "time-limit"),
        (AgentEnd(reason="no-action"), "", "no-action"),
        (AgentEnd(), "turns", "turn-limit"),
    ],
)
def test_a_later_turn_that_was_never_reached_is_not_lost(
    end: AgentEnd, stopped_by: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = run_with_texts([GUIDANCE.memory], end, tmp_path, monkeypatch, stopped_by)
    assert (rollout.status, rollout.reason, rollout.value) == (RolloutStatus.FAILED, reason, 1.0)
    assert rollout.delivered == {"memory": 0, "turn-2": None, "turn-3": None}
    lost = run_with_texts([], end, tmp_path, monkeypatch, stopped_by)
    assert (lost.reason, lost.detail) == ("source-not-delivered", "none of 1 requests has memory of the guidance")
