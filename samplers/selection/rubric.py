"""A model's verdict on a trajectory by a rubric: binary items, of which each item met has a quote that occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from backends.llm.answers import AnswerCache
from backends.llm.base import CHARS_PER_TOKEN, LanguageModel, Message
from backends.llm.meter import TokenBudget, UsageMeter
from backends.llm.structured import request_structured
from core.config import Settings
from core.errors import InputError
from samplers.selection.selecting import SelectionCandidate
from samplers.trajectories.content import read_content
from samplers.trajectories.showing import list_messages, render_conversation
from taskdb.artifacts import Artifacts

MIN_QUOTE = 8
"""Characters of a quote; shorter quotes occur everywhere."""
PROMPT = """\
Below is the work of a coding agent: its conversation, then what it handed in. Check it against a rubric.

{items}

Answer with one JSON object: {{"items": [{{"item": 1, "met": true, "quote": "..."}}]}}, one entry for each item of the
rubric in its order. An item that is met has a verbatim quote from the conversation or the patch that shows it; one
without such a quote is not met.

--- conversation
{conversation}

--- handed in
{submission}
"""
CUT = "\n[... cut ...]\n"


class RubricItem(BaseModel):
    """Verdict on one item; `item` counts from 1."""

    model_config = ConfigDict(extra="forbid")

    item: int
    met: bool
    quote: str = ""


class RubricAnswer(BaseModel):
    """Verdicts on all items in their order."""

    model_config = ConfigDict(extra="forbid")

    items: list[RubricItem]


@dataclass(frozen=True, kw_only=True)
class RubricJudge:
    """A rubric and the model that checks trajectories against it. Callable, as `select_trajectories` needs it."""

    items: Sequence[str]
    model: LanguageModel
    settings: Settings
    artifacts: Artifacts

    def __call__(self, candidate: SelectionCandidate) -> float:
        """Return the share of items that are not met, 0..1; 1 where the model gives no usable answer.

        Raises:
            Transient: the model does not answer.
        """
        conversation, submission = self._render(candidate)
        listed = "\n".join(f"{number}. {item}" for number, item in enumerate(self.items, 1))
        prompt = PROMPT.format(items=listed, conversation=conversation, submission=submission)
        answer = request_structured(
            self.model,
            [Message(role="user", text=prompt)],
            RubricAnswer,
            meter=UsageMeter(TokenBudget.from_settings(self.settings.budget)),
            check=lambda answer: _find_problem(answer, len(self.items), f"{conversation}\n{submission}"),
            answers=AnswerCache(self.settings.storage.store_dir / "answers"),
        )
        if answer.value is None:
            return 1.0
        return sum(not item.met for item in answer.value.items) / len(self.items)

    def _render(self, candidate: SelectionCandidate) -> tuple[str, str]:
        """Return the conversation and the submission as far as they fit, the beginning and the end of each."""
        content = read_content(self.artifacts.get(candidate.trajectory.content))
        conversation = render_conversation(list_messages(content, content.leaves[-1]))
        room = (self.settings.llm.context - self.settings.llm.answer_tokens) * CHARS_PER_TOKEN // 2
        submission = candidate.submission.decode(errors="replace")
        return _shorten(conversation, room), _shorten(submission, room // 4)


def read_rubric(text: str) -> list[str]:
    """Return the items of a rubric, a line each; blank lines and lines that begin with `#` are none.

    Raises:
        InputError: there is none.
    """
    items = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not items:
        raise InputError("the rubric has no item", advice="one item a line")
    return items


def _find_problem(answer: RubricAnswer, number: int, shown: str) -> str:
    """Return the problem with an answer; empty for nothing."""
    if [item.item for item in answer.items] != list(range(1, number + 1)):
        return f"it needs the items 1 to {number}, each once and in order"
    words = _squeeze(shown)
    for item in answer.items:
        quote = _squeeze(item.quote)
        if item.met and (len(quote) < MIN_QUOTE or quote not in words):
            return f"the quote of item {item.item} does not occur, so it is not met"
    return ""


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str, room: int) -> str:
    """Return a text of at most about `room` characters: its beginning and its end."""
    half = max(1, room // 2)
    return text if len(text) <= room else f"{text[:half]}{CUT}{text[-half:]}"
