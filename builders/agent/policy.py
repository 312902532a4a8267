"""Policy `llm`: a model that continues after the rules, with one conversation for each candidate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from backends.llm.base import LanguageModel
from backends.llm.meter import TokenBudget, UsageMeter
from builders.agent.container import LOG_FILE, InspectionContainer
from builders.agent.conversation import Conversation
from builders.agent.guards import ConversationStoppedError
from builders.agent.inspection_tools import InspectionTools, shorten_output
from builders.agent.plan_tools import PlanEditor, format_draft
from builders.agent.prompt_templates import render_prompt
from builders.agent.tools import Toolbox
from builders.repair.edits import AGENT_ORIGIN, format_edit
from builders.repair.loop import check_draft
from builders.repair.policy import NoProposal, Observation, Proposal, ProposalHistory, ProposalOutcome, RepairCase
from builders.repair.skills import Skill, find_matches

LOG_CHARS = 6000
"""Limit of an attempt's log in a prompt; the container has the complete log."""
MAX_SKILLS = 6
"""Limit of matching skills in the first prompt."""


class LlmPolicy:
    """Repair policy that queries a model. A context manager: its container is removed at exit.

    Args:
        model: the model that is queried.
        case: the candidate.
        skills: skills whose texts are added to the first prompt if they match.
    """

    name = "llm"

    def __init__(self, model: LanguageModel, case: RepairCase, skills: Sequence[Skill] = ()) -> None:
        self._model = model
        self._case = case
        self._skills = skills
        self._deadline = float("inf")
        self._container = InspectionContainer(case, self._compute_seconds_left)
        self._conversation: Conversation | None = None
        self._editor = PlanEditor(case.first_draft, partial(check_draft, case), self._reset_progress)
        self._reported_outcomes = 0

    def __enter__(self) -> LlmPolicy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the container."""
        self._container.close()

    def propose(self, observation: Observation, history: ProposalHistory) -> Proposal | NoProposal:
        """Return the edits that the model submitted for a test.

        Raises:
            Transient: engine or endpoint failed.
            InputError: the endpoint rejects the key or the request.
        """
        settings = self._case.services.settings
        self._deadline = time.monotonic() + settings.budget.seconds - observation.usage.seconds
        conversation = self._conversation or self._start_conversation(observation)
        before = (conversation.meter.tokens, conversation.meter.cost)
        self._editor.reset(observation.draft)
        message = self._build_message(observation, history)
        self._conversation, self._reported_outcomes = conversation, len(history)
        try:
            rationale = conversation.run_round(message)
        except ConversationStoppedError as stop:
            self._container.close()
            tokens, cost, transcript = self._measure_usage(conversation, *before)
            return NoProposal(rationale=str(stop), is_final=True, tokens=tokens, cost=cost, transcript=transcript)
        tokens, cost, transcript = self._measure_usage(conversation, *before)
        return Proposal(
            edits=tuple(self._editor.pending),
            rationale=rationale,
            proposed_by=AGENT_ORIGIN,
            tokens=tokens,
            cost=cost,
            transcript=transcript,
        )

    def _start_conversation(self, observation: Observation) -> Conversation:
        settings = self._case.services.settings
        toolbox = Toolbox(
            [
                *InspectionTools(self._container.get_session, self._compute_seconds_left).create_tools(),
                *self._editor.create_tools(),
            ]
        )
        budget = TokenBudget.from_settings(settings.budget)
        system = render_prompt(
            "system",
            day=observation.draft.day,
            exclude_newer=observation.draft.exclude_newer,
            attempts=max(settings.build.max_attempts - observation.usage.attempts, 1),
            seconds=int(self._compute_seconds_left()),
            tokens=budget.tokens or "an unlimited number of",
            money=budget.cost or "",
        )
        return Conversation(
            self._model,
            toolbox,
            system,
            meter=UsageMeter(budget),
            seconds_left=self._compute_seconds_left,
            answer_tokens=settings.llm.answer_tokens,
        )

    def _build_message(self, observation: Observation, history: ProposalHistory) -> str:
        """Start the container; return the task, or the outcome of the model's last proposal."""
        container = self._container.start(observation.plan, observation.log)
        values = {
            "attempt": observation.attempt,
            "reason": observation.reason,
            "detail": observation.detail,
            "draft": format_draft(observation.draft, observation.plan),
            "lines": observation.lines,
            "log_file": LOG_FILE,
            "log": shorten_output(observation.log, LOG_CHARS),
            "container": container,
            "tried": [_format_outcome(outcome) for outcome in history[self._reported_outcomes :]],
        }
        if self._conversation is not None:
            return render_prompt("observation", **values)
        candidate = self._case.candidate
        matches = find_matches(self._skills, observation, self._case.tree)[:MAX_SKILLS]
        return render_prompt(
            "first",
            repo=candidate.repo,
            commit=candidate.base_commit[:12],
            language=observation.draft.language,
            day=observation.draft.day,
            skills=[match.skill for match in matches],
            **values,
        )

    def _measure_usage(self, conversation: Conversation, tokens: int, cost: float) -> tuple[int, float, str]:
        """Return (tokens and cost since the given values, artifact of the conversation so far)."""
        transcript = self._case.services.artifacts.put(conversation.build_transcript().to_bytes())
        return conversation.meter.tokens - tokens, conversation.meter.cost - cost, transcript

    def _compute_seconds_left(self) -> float:
        return self._deadline - time.monotonic()

    def _reset_progress(self) -> None:
        if self._conversation is not None:
            self._conversation.guard.reset_progress()


def _format_outcome(trial: ProposalOutcome) -> str:
    """Return an attempt in one line."""
    edits = "; ".join(format_edit(edit) for edit in trial.proposal.edits) or trial.proposal.rationale
    undone = "; it came less far and was undone: the plan does not contain its edits" if trial.rolled_back else ""
    return f"attempt {trial.number} by {trial.proposal.proposed_by} ({edits}): {trial.reason}: {trial.detail}{undone}"
