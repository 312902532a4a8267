"""The policy `llm`: a model that goes on where rules know no more, one conversation for each candidate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from backends.llm.base import Model
from backends.llm.meter import Budget, Meter
from builders.agent.bench import LOG_FILE, Bench
from builders.agent.conversation import Conversation
from builders.agent.guards import StoppedError
from builders.agent.looking import Looking, shortened
from builders.agent.planning import Desk, shown
from builders.agent.prompting import prompt
from builders.agent.tools import Toolbox
from builders.repair.edits import AGENT, in_words
from builders.repair.loop import objection
from builders.repair.policy import Case, GiveUp, History, Observation, Proposal, Tried
from builders.repair.skills import Skill, matching

LOG_CHARS = 6000
"""Of an attempt's log, in what a model is told; all of it lies in the container."""
SKILLS = 6
"""Of those that match, how many a model is told."""


class LlmPolicy:
    """See `builders.repair.policy.Policy`. A context manager: its container goes at the end.

    Args:
        model: who is asked.
        case: the candidate.
        skills: of those that match, the model is told.
    """

    name = "llm"

    def __init__(self, model: Model, case: Case, skills: Sequence[Skill] = ()) -> None:
        self._model = model
        self._case = case
        self._skills = skills
        self._deadline = float("inf")
        self._bench = Bench(case, self._left)
        self._talk: Conversation | None = None
        self._desk = Desk(case.first, partial(objection, case), self._progressed)
        self._told = 0

    def __enter__(self) -> LlmPolicy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the container away."""
        self._bench.close()

    def propose(self, observation: Observation, history: History) -> Proposal | GiveUp:
        """What the model wants tested next.

        Raises:
            Transient: engine or endpoint failed.
            InputError: the endpoint refuses.
        """
        settings = self._case.services.settings
        self._deadline = time.monotonic() + settings.budget_seconds - observation.spent.seconds
        talk = self._talk or self._begun(observation)
        before = (talk.meter.tokens, talk.meter.cost)
        self._desk.begin(observation.draft)
        told = self._what_happened(observation, history)
        self._talk, self._told = talk, len(history)
        try:
            why = talk.round(told)
        except StoppedError as stop:
            self._bench.close()
            tokens, cost, transcript = self._spent(talk, *before)
            return GiveUp(why=str(stop), final=True, tokens=tokens, cost=cost, transcript=transcript)
        tokens, cost, transcript = self._spent(talk, *before)
        return Proposal(
            edits=tuple(self._desk.pending), why=why, by=AGENT, tokens=tokens, cost=cost, transcript=transcript
        )

    def _begun(self, observation: Observation) -> Conversation:
        settings = self._case.services.settings
        toolbox = Toolbox([*Looking(self._bench.shell, self._left).entries(), *self._desk.entries()])
        budget = Budget.of(settings)
        system = prompt(
            "system", day=observation.draft.day, exclude_newer=observation.draft.exclude_newer,
            attempts=max(settings.max_attempts - observation.spent.attempts, 1), seconds=int(self._left()),
            tokens=budget.tokens or "any number of", money=budget.cost or "",
        )  # fmt: skip
        return Conversation(
            self._model, toolbox, system, meter=Meter(budget), left=self._left, answer_tokens=settings.llm_answer_tokens
        )

    def _what_happened(self, observation: Observation, history: History) -> str:
        """The task, or what came of the model's last proposal; and the container for it."""
        container = self._bench.set_up(observation.plan, observation.log)
        values = {
            "attempt": observation.attempt, "reason": observation.reason, "detail": observation.detail,
            "draft": shown(observation.draft, observation.plan), "lines": observation.lines, "log_file": LOG_FILE,
            "log": shortened(observation.log, LOG_CHARS), "container": container,
            "tried": [_tried(one) for one in history[self._told :]],
        }  # fmt: skip
        if self._talk is not None:
            return prompt("observation", **values)
        candidate = self._case.candidate
        matches = matching(self._skills, observation, self._case.tree)[:SKILLS]
        return prompt(
            "first", repo=candidate.repo, commit=candidate.base_commit[:12], language=observation.draft.language,
            day=observation.draft.day, skills=[match.skill for match in matches], **values,
        )  # fmt: skip

    def _spent(self, talk: Conversation, tokens: int, cost: float) -> tuple[int, float, str]:
        """(tokens and money since then, artifact of the conversation so far)."""
        transcript = self._case.services.artifacts.put(talk.transcript().to_bytes())
        return talk.meter.tokens - tokens, talk.meter.cost - cost, transcript

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _progressed(self) -> None:
        if self._talk is not None:
            self._talk.guard.progressed()


def _tried(one: Tried) -> str:
    """An attempt in a line."""
    edits = "; ".join(in_words(edit) for edit in one.proposal.edits) or one.proposal.why
    undone = "; it came less far and is undone: its edits are not in the plan any more" if one.undone else ""
    return f"attempt {one.number} by {one.proposal.by} ({edits}): {one.reason}: {one.detail}{undone}"
