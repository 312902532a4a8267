"""Subjects of tasks and scenarios: what of them reaches a rollout."""

from __future__ import annotations

import pickle

import pytest

from core.config import Settings
from mergemill.agents.sampling.nodes import NodeRollouts
from mergemill.agents.sampling.request import SampleRequest, WorldSampleRequest
from mergemill.agents.sampling.scenario_environment import SampledScenario
from mergemill.agents.sampling.scenario_sampler import ScenarioSubjects
from mergemill.agents.sampling.subject_source import SubjectSource
from mergemill.agents.sampling.task_sampler import TaskSubjects
from mergemill.agents.sampling.world_scaffolds import make_world_scaffolds
from samplers.rollouts.recorded import RecordedTraffic
from samplers.scaffolds.registry import load_scaffold
from samplers.subjects.subject import Subject
from taskdb.queries.task_filters import TaskFilters
from tests.samplers.trajectories.making import SYSTEM, TASK, call
from tests.samplers.trajectories.test_build import exchange
from tests.worlds.programs import make_scenario, make_world

CURL = call(0, "curl https://github.com/ada/greet")
TRAFFIC = RecordedTraffic(exchanges=[exchange(0, [SYSTEM, TASK], CURL)], n_doubtful=0, raw=b"")


def test_leaks_are_looked_for_where_the_agent_has_a_shell() -> None:
    with_shell = Subject(id="1", name="task", environment="verified", statement="Do it.", workdir="/testbed")
    assert {leak.name for leak in TRAFFIC.find_leaks(with_shell)} == {"forge-address", "network"}
    scenario = SampledScenario(id="2", definition=make_scenario(), world=make_world("", ""))
    assert TRAFFIC.find_leaks(scenario.make_subject()) == ()


def test_a_scenario_is_a_subject_without_a_container() -> None:
    scenario = SampledScenario(id="2", definition=make_scenario(), world=make_world("", ""))
    subject = scenario.make_subject()
    assert (subject.id, subject.name, subject.environment) == ("2", make_scenario().name, "synthetic")
    assert subject.statement == make_scenario().task
    assert (subject.image, subject.workdir, subject.instruction, subject.answer) == ("", "", "", None)


@pytest.mark.parametrize(
    "source",
    [
        TaskSubjects(
            request=SampleRequest(
                filters=TaskFilters(), scaffolds=(load_scaffold("react"),), model="scripted", attempts=1
            ),
            is_simulated=True,
        ),
        ScenarioSubjects(
            request=WorldSampleRequest(
                scaffolds=make_world_scaffolds(["dialogue", "oracle"], "user"), model="scripted", attempts=None
            ),
            worlds=3,
        ),
    ],
    ids=["tasks", "scenarios"],
)
def test_sources_can_be_sent_to_another_machine(source: SubjectSource) -> None:
    rollouts = NodeRollouts(settings=Settings(), source=source)
    sent: NodeRollouts = pickle.loads(pickle.dumps(rollouts))  # noqa: S301 - our own
    (upstream,) = sent.source.list_upstreams(Settings(upstream="http://127.0.0.1:9/v1"))
    assert upstream.url == "http://127.0.0.1:9/v1"
