"""Collect opinions: several answers of one or several models to the same question, and their summary.

A failing endpoint raises `Transient`, and all opinions are requested again later. An unusable answer, or an answer with
invented quotes, is stored as invalid with the reason and does not count, so it never passes for approval.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from statistics import fmean

from backends.llm.base import ContextLengthError, Message
from backends.llm.meter import BudgetExceededError
from backends.llm.structured import StructuredAnswer, build_response_schema
from core.quotes import is_quoted_from, normalize_whitespace
from taskdb.records.base import TestId
from taskdb.records.verdicts import Opinion, QuotedClaim, QuoteSource, TestOpinion
from verifiers.judge.case import JudgeCase
from verifiers.judge.client import JudgeClient
from verifiers.judge.opinions import agreement
from verifiers.judge.opinions.answer import MAX_LEVEL, JudgeAnswer, find_error
from verifiers.judge.prompting import render_conversation
from verifiers.judge.quotes import extract_patch_texts
from verifiers.judge.truncation import truncate_case

PROMPT = "judge-2"
"""Name and version of the prompt, see `verifiers.judge.prompting`."""
MAX_TESTS = 20
"""Maximum number of test functions in a single question."""
MAX_QUOTE_CHARS = 80
"""Maximum number of characters of an invented quote in the reason why an opinion is invalid."""


_PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class OpinionPanel:
    """All opinions on a single statement in the order of the requests."""

    opinions: tuple[Opinion, ...]

    @property
    def valid_opinions(self) -> tuple[Opinion, ...]:
        """Opinions that are valid."""
        return tuple(opinion for opinion in self.opinions if not opinion.invalid_reason)

    @property
    def underspecified(self) -> float | None:
        """Average of the valid opinions, 0..1; None if there are none."""
        levels = [item.underspecified for item in self.valid_opinions if item.underspecified is not None]
        return fmean(levels) if levels else None

    @property
    def unfair_tests(self) -> float | None:
        """Average of the valid opinions, 0..1; None if there are none."""
        levels = [item.unfair_tests for item in self.valid_opinions if item.unfair_tests is not None]
        return fmean(levels) if levels else None

    @property
    def agreement(self) -> float | None:
        """Agreement of the valid opinions, see `verifiers.judge.opinions.agreement.compute_agreement`."""
        return agreement.compute_agreement(self.valid_opinions)

    @property
    def alpha(self) -> float | None:
        """Agreement of the valid opinions, see `verifiers.judge.opinions.agreement.compute_alpha`."""
        return agreement.compute_alpha(self.valid_opinions)

    @property
    def missing(self) -> tuple[QuotedClaim, ...]:
        """Missing information, each quoted line once, if at least half of the valid opinions report any."""
        missing = [item for item in self.valid_opinions if item.missing]
        if 2 * len(missing) < len(self.valid_opinions):
            return ()
        claims: dict[str, QuotedClaim] = {}
        for opinion in missing:
            for quoted in opinion.missing:
                claims.setdefault(normalize_whitespace(quoted.quote), quoted)
        return tuple(claims.values())


def collect_opinions(case: JudgeCase, client: JudgeClient) -> OpinionPanel:
    """Query every model of the settings several times about a case with FAIL_TO_PASS tests.

    When the budget is exceeded, the last opinion is invalid with this reason, and no further request is sent.

    Raises:
        Transient: the endpoint failed, so there are no opinions and no verdict can be made.
        InputError: the endpoint rejects key, model or request.
        Stopped: the user interrupted.
    """
    if not case.fail_to_pass:
        return OpinionPanel(opinions=())
    names = client.judge.models or (client.model.name,)
    judge = _PanelJudge(case, client)
    opinions: list[Opinion] = []
    for sample in range(1, client.judge.samples + 1):
        for name in names:
            opinions.append(judge.collect_opinion(name, sample))
            if judge.spent:
                return OpinionPanel(opinions=tuple(opinions))
    return OpinionPanel(opinions=tuple(opinions))


class _PanelJudge:
    """Queries models about a case."""

    def __init__(self, case: JudgeCase, client: JudgeClient) -> None:
        self.spent = False
        self._case = case
        self._client = client
        self._tests = list_test_functions(case)[:MAX_TESTS]

    def collect_opinion(self, model: str, sample: int) -> Opinion:
        """Return an answer as an opinion with verified quotes."""
        meter = self._client.meter
        started, tokens, cost = time.monotonic(), meter.tokens, meter.cost
        invalid = Opinion(model=model, prompt=PROMPT, sample=sample, invalid_reason="no request was sent")
        try:
            structured_answer = self._client.query(
                self._build_question,
                JudgeAnswer,
                name=model,
                sample=sample,
                check=lambda answer: find_error(answer, len(self._tests)),
            )
            opinion = self._parse_answer(structured_answer, invalid)
        except BudgetExceededError as spent:
            self.spent = True
            opinion = invalid.model_copy(update={"invalid_reason": f"the budget is exceeded: {spent}"})
        except ContextLengthError as full:
            opinion = invalid.model_copy(update={"invalid_reason": f"too long for the model: {full}"})
        seconds = time.monotonic() - started
        usage = {"tokens": meter.tokens - tokens, "cost": meter.cost - cost, "seconds": seconds}
        return opinion.model_copy(update=usage)

    def _build_question(self, room: int) -> tuple[Message, ...]:
        case = self._case
        shown = truncate_case(case, room)
        return render_conversation(
            PROMPT,
            repo=case.repo,
            schema=json.dumps(build_response_schema(JudgeAnswer).schema),
            statement=shown.statement,
            gold_patch=shown.gold_patch,
            test_patch=shown.test_patch,
            tests=self._tests,
            more=len(list_test_functions(case)) - len(self._tests),
        )

    def _parse_answer(self, structured_answer: StructuredAnswer[JudgeAnswer], invalid: Opinion) -> Opinion:
        """Convert an answer; the opinion is invalid without a usable answer or with an invented quote."""
        answer, transcript = structured_answer.value, self._client.store_transcript(structured_answer.messages)
        if answer is None:
            reason = f"no usable answer: {structured_answer.problem}"
            return invalid.model_copy(update={"invalid_reason": reason, "transcript": transcript})
        opinion = Opinion(
            model=invalid.model,
            prompt=PROMPT,
            sample=invalid.sample,
            transcript=transcript,
            tests=tuple(
                TestOpinion(
                    test=self._tests[item.number - 1], asserts=item.asserts, stated=item.stated, quote=item.quote
                )
                for item in sorted(answer.tests, key=lambda item: item.number)
            ),
            leaks=tuple(
                QuotedClaim(claim=item.what, quote=item.quote, quote_source=QuoteSource.STATEMENT)
                for item in answer.leaks
            ),
            missing=tuple(
                QuotedClaim(claim=item.what, quote=item.test_line, quote_source=QuoteSource.TESTS)
                for item in answer.missing
            ),
            underspecified=answer.underspecified / MAX_LEVEL,
            unfair_tests=answer.unfair_tests / MAX_LEVEL,
        )
        if reason := self._find_invented_quote(opinion):
            return opinion.model_copy(update={"invalid_reason": reason, "underspecified": None, "unfair_tests": None})
        return opinion

    def _find_invented_quote(self, opinion: Opinion) -> str:
        """Return why an opinion is invalid: its first quote that does not occur in its source; empty if all occur."""
        tests = extract_patch_texts(self._case.test_patch)
        quotes = [(test.quote, "statement", (self._case.statement,)) for test in opinion.tests if test.quote.strip()]
        quotes += [(leak.quote, "statement", (self._case.statement,)) for leak in opinion.leaks]
        for quote, name, texts in [*quotes, *((item.quote, "test patch", tests) for item in opinion.missing)]:
            if not is_quoted_from(quote, *texts):
                return f"the quote {quote[:MAX_QUOTE_CHARS]!r} does not occur in the {name}"
        return ""


def list_test_functions(case: JudgeCase) -> tuple[TestId, ...]:
    """Return the FAIL_TO_PASS tests without their parameters, each once: all parameters share the assertions."""
    return tuple(dict.fromkeys(_PARAMETERS.sub("", test) for test in case.fail_to_pass))
