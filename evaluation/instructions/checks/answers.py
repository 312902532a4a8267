"""Checks of texts: the answer that ends a turn, and whatever else the agent writes."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.instructions.actions import ActionKind, AgentAction, list_action_texts
from evaluation.instructions.checks.base import InstructionCheck, Patterns, fail_first
from evaluation.instructions.evidence import INACTIVE, CheckVerdict, RolloutEvidence, make_failed, make_passed

_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+\S", re.MULTILINE)
_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class FinalText:
    """Last text of a turn. `paths`: files that the submission changes."""

    text: str
    paths: Sequence[str]


class AnswerCheck(InstructionCheck):
    """Base of checks of the last text of the work, or of each turn."""

    every_turn: bool = False

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether the answer follows; a turn without any text does not."""
        turns = {action.turn for action in evidence.actions}
        if not turns:
            return INACTIVE
        answers = {action.turn: action for action in evidence.answers}
        paths = [change.path for change in evidence.changes]
        for turn in sorted(turns) if self.every_turn else [max(turns)]:
            if turn not in answers:
                return make_failed(quote=f"turn {turn} ends without a text")
            if fault := self.find_fault(FinalText(answers[turn].text.strip(), paths)):
                return make_failed(answers[turn], fault)
        return make_passed(answers[max(turns)])

    @abstractmethod
    def find_fault(self, answer: FinalText) -> str:
        """Return why a text does not follow; empty where it does."""


class AnswerEnds(AnswerCheck):
    """The answer ends with a line."""

    line: str

    def find_fault(self, answer: FinalText) -> str:
        """Return the last line where it is another."""
        last = answer.text.splitlines()[-1].strip(" *_`") if answer.text else ""
        return "" if last == self.line.strip() else f"ends with: {last}"


class AnswerBegins(AnswerCheck):
    """The answer begins with a text."""

    prefix: str

    def find_fault(self, answer: FinalText) -> str:
        """Return the first line where it begins otherwise."""
        if answer.text.lstrip("#*_ ").startswith(self.prefix):
            return ""
        return f"begins with: {next(iter(answer.text.splitlines()), '')}"


class AnswerWords(AnswerCheck):
    """Number of words of the answer."""

    at_most: int

    def find_fault(self, answer: FinalText) -> str:
        """Return the number where there are more."""
        n_words = len(answer.text.split())
        return f"{n_words} words" if n_words > self.at_most else ""


class AnswerMentions(AnswerCheck):
    """The answer has a match of each pattern."""

    patterns: Patterns

    def find_fault(self, answer: FinalText) -> str:
        """Return the pattern that has no match."""
        missing = next((pattern for pattern in self.patterns if not re.search(pattern, answer.text)), "")
        return f"does not mention {missing}" if missing else ""


class AnswerNamesFiles(AnswerCheck):
    """The answer names each changed file."""

    def find_fault(self, answer: FinalText) -> str:
        """Return the file that it does not name, by its whole path or its name."""
        missing = next((path for path in answer.paths if path.rpartition("/")[2] not in answer.text), "")
        return f"does not name {missing}" if missing else ""


class AnswerItems(AnswerCheck):
    """The answer has a list."""

    at_least: int = 1
    at_most: int = 100

    def find_fault(self, answer: FinalText) -> str:
        """Return the number of items where it is another."""
        n_items = len(_ITEM.findall(answer.text))
        return "" if self.at_least <= n_items <= self.at_most else f"{n_items} items"


class AnswerJson(AnswerCheck):
    """The answer is a JSON object with some keys and no other text."""

    keys: tuple[str, ...]

    def find_fault(self, answer: FinalText) -> str:
        """Return why it is none; a fence around it is no other text."""
        fenced = _FENCE.match(answer.text)
        try:
            value = json.loads(fenced[1] if fenced else answer.text)
        except ValueError as error:
            return f"no JSON: {error}"
        if not isinstance(value, dict):
            return "no object"
        missing = next((key for key in self.keys if key not in value), "")
        return f"has no {missing}" if missing else ""


class JudgedItem(InstructionCheck):
    """A question about the conversation, which a model answers."""

    question: str

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return that it is not active: no program can decide it."""
        del evidence
        return INACTIVE


class NeverText(InstructionCheck):
    """No text that the agent writes matches a pattern."""

    patterns: Patterns
    where: Literal["texts", "everything"] = "texts"
    """Texts of answers alone, or the arguments of calls, too."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none does."""
        is_looked_at: Callable[[AgentAction], bool] = _is_text if self.where == "texts" else _is_written
        actions = [action for action in evidence.actions if is_looked_at(action)]
        if not actions:
            return INACTIVE
        return fail_first(actions, self._has_match)

    def _has_match(self, action: AgentAction) -> bool:
        return any(re.search(pattern, text) for text in list_action_texts(action) for pattern in self.patterns)


def _is_text(action: AgentAction) -> bool:
    return action.kind in {ActionKind.SAY, ActionKind.END}


def _is_written(action: AgentAction) -> bool:
    return action.kind is not ActionKind.THINK


class CallsExplained(InstructionCheck):
    """Each answer that calls a tool has a text, too."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each has; the call that ends the work needs none."""
        calls = [action for action in evidence.actions if action.call >= 0 and action.kind is not ActionKind.END]
        if not calls:
            return INACTIVE
        explained = {action.exchange for action in evidence.actions if action.kind is ActionKind.SAY}
        return fail_first(calls, lambda action: action.exchange not in explained)
