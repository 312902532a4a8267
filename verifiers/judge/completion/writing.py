"""A model writes what a statement lacks; what the checks turn down it writes again, with the reason, a few times."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from backends.llm.base import ContextFullError, Message
from backends.llm.meter import BudgetSpentError
from backends.llm.structured import shape_of
from taskdb.verdicts import Completion, Quoted
from verifiers.judge.asking import Asking
from verifiers.judge.case import Case
from verifiers.judge.completion.checks import LEAST, MOST, Draft, Findings, objection
from verifiers.judge.completion.interfaces import interfaces
from verifiers.judge.prompting import question, told
from verifiers.judge.showing import page

PROMPT = "complete-1"
"""The version that is asked with; see `verifiers.judge.prompting`."""
ROUNDS = 3
"""How often an addition is asked for."""


class CompletionAnswer(BaseModel):
    """What is added to the statement."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )
    addition: str
    """The text that will stand after the statement, nothing of the statement in it."""


def complete(case: Case, asking: Asking, findings: Findings, missing: Sequence[Quoted] = ()) -> Completion | None:
    """What completes the statement of a case, or why there is nothing; None when nothing is missing.

    Args:
        case: the statement, and what is demanded.
        asking: who writes, and what it may cost.
        findings: what the rules miss in a statement; an addition is taken only when they miss nothing more.
        missing: what models said is missing.

    Raises:
        Transient: the endpoint failed.
        InputError: the endpoint refuses key, model or request.
        Stopped: the user ended it.
    """
    found = findings(case.statement)
    if not found and not missing:
        return None
    started, meter = time.monotonic(), asking.meter
    tokens, cost = meter.tokens, meter.cost
    lacks = [(one.detail, one.quote) for one in found] + [(one.claim, one.quote) for one in missing]
    writer = _Writer(case, asking, findings, lacks)
    addition = writer.written()
    return Completion(
        model=asking.model.name, prompt=PROMPT, addition=addition, refused=tuple(writer.refused),
        tokens=meter.tokens - tokens, cost=meter.cost - cost, seconds=time.monotonic() - started,
        transcript=asking.keep(writer.talk) if writer.talk else None,
    )  # fmt: skip


class _Writer:
    """Asks for one addition. `refused`: why each was turned down; `talk`: all that was said."""

    def __init__(self, case: Case, asking: Asking, findings: Findings, lacks: Sequence[tuple[str, str]]) -> None:
        self.refused: list[str] = []
        self.talk: tuple[Message, ...] = ()
        self._case = case
        self._asking = asking
        self._findings = findings
        self._lacks = lacks
        self._interfaces = interfaces(case)
        self._later: tuple[Message, ...] = ()

    def written(self) -> str:
        """The addition that was taken; empty when none was."""
        for _ in range(ROUNDS):
            try:
                answered = self._asking.ask(lambda room: (*self._question(room), *self._later), CompletionAnswer)
            except (BudgetSpentError, ContextFullError) as end:
                self.refused.append(f"no more was asked for: {end}")
                return ""
            self.talk = answered.talk
            if answered.value is None:
                self.refused.append(f"no usable answer: {answered.problem}")
                return ""
            text = answered.value.addition.strip()
            draft = Draft(case=self._case, text=text, findings=self._findings, interfaces=self._interfaces)
            if not (why := objection(draft)):
                return text
            self.refused.append(why)
            self._later = (*self._later, answered.talk[-1], told(PROMPT, "again", why=why))
        return ""

    def _question(self, room: int) -> tuple[Message, ...]:
        case = self._case
        shown = page(case, room)
        return question(
            PROMPT, repo=case.repo, schema=json.dumps(shape_of(CompletionAnswer).schema), statement=shown.statement,
            gold_patch=shown.gold_patch, test_patch=shown.test_patch, lacks=self._lacks,
            interfaces=[(one.signature, one.path) for one in self._interfaces], least=LEAST, most=MOST,
        )  # fmt: skip
