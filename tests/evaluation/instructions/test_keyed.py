"""Recorded conversations of five scaffolds: every check of a program decides as the key has it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from backends.git import GitRepository
from derivers.instructions.constraints import load_constraints
from evaluation.instructions.actions import read_actions
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checklist import ConstraintChecklist, decide_constraints
from evaluation.instructions.evidence import RolloutEvidence
from evaluation.instructions.submission import read_submission
from languages.registry import LANGUAGES
from samplers.rollouts.conversation import pack_submission
from samplers.subjects.instructions import make_guidance
from samplers.subjects.subject import Subject
from samplers.trajectories.requests import get_text
from taskdb.records.instructions import JUDGED, InstructionOracle, InstructionSource
from tests.evaluation.instructions.keyed.key import CONVERSATIONS, KeyedConversation
from tests.evaluation.instructions.keyed.recordings import KEPT, PLACEHOLDER, Recording, read_recordings
from tests.evaluation.instructions.keyed.sets import SETS, make_oracle
from tests.evaluation.instructions.keyed.steps import TOOL, WORKDIR
from tests.sample import make_sample
from verifiers.rewards.instructions import list_tree_changes

BY_NAME = {conversation.name: conversation for conversation in CONVERSATIONS}


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads recordings as the grader of a rollout does."""

    repository: GitRepository
    commit: str
    recordings: dict[str, Recording]
    known: dict[str, list[ChangedFile]]
    """Patch -> changes of files; many conversations have the same."""

    def decide(self, name: str) -> ConstraintChecklist:
        """Return the verdicts on a recording."""
        recording = self.recordings[name]
        conversation = BY_NAME[name.removesuffix(f"/{KEPT}")]
        oracle = self.make_oracle(conversation, recording)
        late = {
            constraint.name: f"{InstructionSource.TURN}-{constraint.turn}"
            for constraint in oracle.constraints
            if constraint.source is InstructionSource.TURN and constraint.turn > 1
        }
        subject = Subject(
            id="", name=name, environment="", statement="", guidance=make_guidance(oracle), deliveries=late
        )
        delivered = recording.traffic.find_delivery(subject.guidance)
        assert None not in delivered.values(), delivered
        packed = pack_submission(recording.patch.encode(), recording.traffic.exchanges, subject, delivered)
        submission = read_submission(packed)
        log = read_actions(submission.list_answers(), workdir=WORKDIR, own_tools=[TOOL])
        assert log.is_readable, (log.n_unknown, log.n_calls)
        evidence = RolloutEvidence(
            actions=log.actions, changes=self.list_changes(recording.patch), suffixes=LANGUAGES["python"].suffixes
        )
        return decide_constraints(oracle, evidence, not_delivered=submission.not_delivered)

    def make_oracle(self, conversation: KeyedConversation, recording: Recording) -> InstructionOracle:
        """Return the instructions of a conversation, with the wordings that its model was given."""
        oracle = make_oracle(conversation.set_name, conversation.scaffold)
        worded = [item.model_copy(update={"text": recording.texts[item.name]}) for item in oracle.constraints]
        return oracle.model_copy(update={"constraints": tuple(worded)})

    def list_changes(self, patch: str) -> list[ChangedFile]:
        """Return the changes that a patch makes to the task's tree."""
        if patch not in self.known:
            self.known[patch] = list_tree_changes(self.repository, self.commit, patch.encode())
        return self.known[patch]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = tmp_path_factory.mktemp("keyed") / "greet"
    make_sample(folder)
    repository = GitRepository(folder)
    commit = repository.run_git("rev-parse", "main^1").decode().strip()
    recordings = {recording.name: recording for recording in read_recordings()}
    return Reader(repository=repository, commit=commit, recordings=recordings, known={})


def list_states(conversation: KeyedConversation, failed: tuple[str, ...]) -> dict[str, str]:
    """Return the state of each constraint as of the key."""
    return {
        name: "failed" if name in failed else "inactive" if name in conversation.inactive else "passed"
        for name in SETS[conversation.set_name].constraints
    }


def test_the_key_has_twelve_conversations_of_each_scaffold_and_breaks_each_constraint() -> None:
    assert set(Counter(conversation.scaffold for conversation in CONVERSATIONS).values()) == {12}
    assert (len(CONVERSATIONS), len(BY_NAME)) == (60, 60)
    decided = {name for name, constraint in load_constraints().items() if constraint.check != JUDGED}
    broken = {name for conversation in CONVERSATIONS for name in conversation.failed}
    assert broken == decided == {name for given in SETS.values() for name in given.constraints}
    numbers = Counter(min(len(conversation.failed), 2) for conversation in CONVERSATIONS)
    assert (numbers[0], numbers[1], numbers[2]) == (9, 30, 21)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_check_decides_a_recorded_conversation_as_the_key_has_it(name: str, reader: Reader) -> None:
    conversation = BY_NAME[name]
    checklist = reader.decide(name)
    quotes = [(verdict.constraint.name, verdict.result) for verdict in checklist.failing]
    assert dict(sorted(checklist.states.items())) == dict(
        sorted(list_states(conversation, conversation.failed).items())
    ), quotes
    assert checklist.isr == (0.0 if conversation.failed else 1.0)


@pytest.mark.parametrize("name", [name for name, conversation in BY_NAME.items() if conversation.has_counterpart])
def test_without_its_one_breach_a_conversation_flips_the_isr_and_no_other_verdict(name: str, reader: Reader) -> None:
    broken, kept = reader.decide(name), reader.decide(f"{name}/{KEPT}")
    (failed,) = BY_NAME[name].failed
    assert (broken.isr, kept.isr) == (0.0, 1.0), [verdict.constraint.name for verdict in kept.failing]
    assert kept.states == broken.states | {failed: "passed"}


def test_recordings_have_no_text_that_a_program_wrote(reader: Reader) -> None:
    for recording in reader.recordings.values():
        oracle = make_oracle(BY_NAME[recording.name.removesuffix(f"/{KEPT}")].set_name, "react")
        own = {*recording.texts.values(), *oracle.turns, *(skill.description for skill in oracle.skills)}
        for exchange in recording.exchanges:
            messages = exchange["request"]["messages"]
            assert {message["content"] for message in messages if message["role"] == "tool"} <= {PLACEHOLDER}
            texts = [get_text(message) for message in messages if message["role"] in ("system", "user")]
            rest = [
                line for text in texts for line in remove_task(text).splitlines() if line.removeprefix("- ") not in own
            ]
            assert set(rest) <= {PLACEHOLDER, ""}, recording.name
            for tool in exchange["request"]["tools"]:
                description = tool["function"]["description"]
                assert description == PLACEHOLDER or tool["function"]["name"].endswith(TOOL)


def remove_task(text: str) -> str:
    """Return a text without the message that gives the task."""
    before, mark, rest = text.partition("The repository is in /testbed.")
    return before + rest.partition("tests are run with `pytest`.")[2] if mark else text
