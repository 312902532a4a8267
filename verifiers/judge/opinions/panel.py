"""Several answers of one or several models to the same question, and what they come to together.

What an endpoint fails to answer is `Transient`, and the whole is asked again another time; what a model answers without
sense or with invented quotes is kept as void, with the reason, and counts for nothing. So no answer is never "fine".
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from statistics import fmean

from backends.llm.base import ContextFullError, Message
from backends.llm.meter import BudgetSpentError
from backends.llm.structured import Answered, shape_of
from taskdb.base import TestId
from taskdb.verdicts import Opinion, Place, Quoted, StatedTest
from verifiers.judge.asking import Asking
from verifiers.judge.case import Case
from verifiers.judge.opinions import agreement
from verifiers.judge.opinions.answer import WORST, JudgeAnswer, fault
from verifiers.judge.prompting import question
from verifiers.judge.quotes import sides, stands
from verifiers.judge.showing import page
from verifiers.statement import squeezed

PROMPT = "judge-1"
"""The version that is asked with; see `verifiers.judge.prompting`."""
TESTS = 20
"""Test functions that one answer speaks of."""
SHOWN = 80
"""Characters of a quote that is nowhere, in the reason why an opinion is void."""


_PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """All opinions on one statement, in the order in which they were asked for."""

    opinions: tuple[Opinion, ...]

    @property
    def counted(self) -> tuple[Opinion, ...]:
        """Those that are not void."""
        return tuple(opinion for opinion in self.opinions if not opinion.void)

    @property
    def underspecified(self) -> float | None:
        """Mean of those that count, 0..1; None when none does."""
        levels = [one.underspecified for one in self.counted if one.underspecified is not None]
        return fmean(levels) if levels else None

    @property
    def unfair_tests(self) -> float | None:
        """Mean of those that count, 0..1; None when none does."""
        levels = [one.unfair_tests for one in self.counted if one.unfair_tests is not None]
        return fmean(levels) if levels else None

    @property
    def agreement(self) -> float | None:
        """See `verifiers.judge.opinions.agreement.share`; of those that count."""
        return agreement.share(self.counted)

    @property
    def alpha(self) -> float | None:
        """See `verifiers.judge.opinions.agreement.alpha`; of those that count."""
        return agreement.alpha(self.counted)

    @property
    def missing(self) -> tuple[Quoted, ...]:
        """What is missing, by each quoted line once, if at least half of those that count miss anything."""
        missing = [one for one in self.counted if one.missing]
        if 2 * len(missing) < len(self.counted):
            return ()
        found: dict[str, Quoted] = {}
        for opinion in missing:
            for quoted in opinion.missing:
                found.setdefault(squeezed(quoted.quote), quoted)
        return tuple(found.values())


def ask_panel(case: Case, asking: Asking) -> Panel:
    """Ask every model of the settings so many times about a case that has FAIL_TO_PASS tests.

    When the budget is spent, the last opinion is void and says so, and who was not asked is not asked any more.

    Raises:
        Transient: the endpoint failed; there are no opinions, and no verdict may be made as if there were none.
        InputError: the endpoint refuses key, model or request.
        Stopped: the user ended it.
    """
    if not case.fail_to_pass:
        return Panel(opinions=())
    settings = asking.settings
    names = settings.judge_models or (asking.model.name,)
    judge = _Judge(case, asking)
    opinions: list[Opinion] = []
    for sample in range(1, settings.judge_samples + 1):
        for name in names:
            opinions.append(judge.opinion(name, sample))
            if judge.spent:
                return Panel(opinions=tuple(opinions))
    return Panel(opinions=tuple(opinions))


class _Judge:
    """Asks about one case."""

    def __init__(self, case: Case, asking: Asking) -> None:
        self.spent = False
        self._case = case
        self._asking = asking
        self._tests = functions(case)[:TESTS]

    def opinion(self, model: str, sample: int) -> Opinion:
        """One answer, looked up in the texts."""
        meter = self._asking.meter
        started, tokens, cost = time.monotonic(), meter.tokens, meter.cost
        void = Opinion(model=model, prompt=PROMPT, sample=sample, void="not asked")
        try:
            answered = self._asking.ask(
                self._question, JudgeAnswer, name=model, sample=sample,
                check=lambda answer: fault(answer, len(self._tests)),
            )  # fmt: skip
            found = self._read(answered, void)
        except BudgetSpentError as spent:
            self.spent = True
            found = void.model_copy(update={"void": f"the budget is spent: {spent}"})
        except ContextFullError as full:
            found = void.model_copy(update={"void": f"too long for the model: {full}"})
        seconds = time.monotonic() - started
        spent_here = {"tokens": meter.tokens - tokens, "cost": meter.cost - cost, "seconds": seconds}
        return found.model_copy(update=spent_here)

    def _question(self, room: int) -> tuple[Message, ...]:
        case = self._case
        shown = page(case, room)
        return question(
            PROMPT, repo=case.repo, schema=json.dumps(shape_of(JudgeAnswer).schema), statement=shown.statement,
            gold_patch=shown.gold_patch, test_patch=shown.test_patch, tests=self._tests,
            more=len(functions(case)) - len(self._tests),
        )  # fmt: skip

    def _read(self, answered: Answered[JudgeAnswer], void: Opinion) -> Opinion:
        """The answer as an opinion; void when there is none, or a quote in it stands nowhere."""
        answer, transcript = answered.value, self._asking.keep(answered.talk)
        if answer is None:
            why = f"no usable answer: {answered.problem}"
            return void.model_copy(update={"void": why, "transcript": transcript})
        opinion = Opinion(
            model=void.model, prompt=PROMPT, sample=void.sample, transcript=transcript,
            tests=tuple(
                StatedTest(test=self._tests[one.number - 1], asserts=one.asserts, stated=one.stated, quote=one.quote)
                for one in sorted(answer.tests, key=lambda one: one.number)
            ),
            leaks=tuple(Quoted(claim=one.what, quote=one.quote, place=Place.STATEMENT) for one in answer.leaks),
            missing=tuple(Quoted(claim=one.what, quote=one.test_line, place=Place.TESTS) for one in answer.missing),
            underspecified=answer.underspecified / WORST, unfair_tests=answer.unfair_tests / WORST,
        )  # fmt: skip
        if why := self._invented(opinion):
            return opinion.model_copy(update={"void": why, "underspecified": None, "unfair_tests": None})
        return opinion

    def _invented(self, opinion: Opinion) -> str:
        """Why an opinion is void: the first of its quotes that stands nowhere; empty when all do."""
        tests = sides(self._case.tests)
        quotes = [(test.quote, "statement", (self._case.statement,)) for test in opinion.tests if test.quote.strip()]
        quotes += [(leak.quote, "statement", (self._case.statement,)) for leak in opinion.leaks]
        for quote, name, texts in [*quotes, *((one.quote, "test patch", tests) for one in opinion.missing)]:
            if not stands(quote, *texts):
                return f"the quote {quote[:SHOWN]!r} does not stand in the {name}"
        return ""


def functions(case: Case) -> tuple[TestId, ...]:
    """The FAIL_TO_PASS tests without their parameters, each once: what is asserted is the same for all."""
    return tuple(dict.fromkeys(_PARAMETERS.sub("", test) for test in case.fail_to_pass))
