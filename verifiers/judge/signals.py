"""What the calibrated model looks at: numbers about a case, each larger where one would worry more.

Every signal has a reason that one can say in a sentence, and the model may only add them up: none can count in favour
of a task because some data happened to say so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from taskdb.verdicts import Finding
from verifiers.judge.case import Case
from verifiers.judge.prose import prose_of
from verifiers.judge.words import parts

Findings = Counter[str]
"""Rule -> how many findings."""
Signal = Callable[[Case, Findings], float | None]

SHORTEST = 3
"""Letters of a name that counts."""
_NAME = re.compile(r"[^\W\d]\w{2,}")
_EXPECTATION = re.compile(r"\bexpect|\bshould\b|\bactual\b|\binstead\b", re.IGNORECASE)
_LOCATED = re.compile(r"\w+/\w+\.\w+|\w+\.\w+\.\w+|\w+\(\)|`[^`\n]+`|\b_?\w+_\w+|\bline \d+|#L\d+")
_CAUSE = re.compile(
    r"\b(?:because|due to|caused?|causes|reason|the fix|fix(?:ed)? (?:is|by|would)|the (?:problem|issue) is|introduced|"
    r"regression|as a result|therefore)\b",
    re.IGNORECASE,
)


def names_untold(case: Case, _: Findings) -> float | None:
    """Share of the names in the tests' new lines that the statement does not have: what they exercise is not told."""
    asked = {one.token.text for one in case.asked if one.token.sort == "name" and len(one.token.text) >= SHORTEST}
    return _share_missing(asked, set(_NAME.findall(case.statement)))


def words_untold(case: Case, _: Findings) -> float | None:
    """The same of the words that names and strings of the tests are made of."""
    kinds = ("name", "string")
    asked = {part for one in case.asked if one.token.sort in kinds for part in parts(one.token.text)}
    return _share_missing(asked, _parts_of(case.statement))


def solution_untold(case: Case, _: Findings) -> float | None:
    """Share of the names in the gold patch's new lines that the statement does not have: the way is not shown."""
    added = {token.text for _, token in case.added if token.sort == "name" and len(token.text) >= SHORTEST}
    return _share_missing(added, set(_NAME.findall(case.statement)))


def solution_news(case: Case, _: Findings) -> float:
    """Words that the gold patch brings and neither statement nor old lines have (logarithm)."""
    added = {part for _, token in case.added if token.sort in ("name", "string") for part in parts(token.text)}
    return math.log1p(len(added - set(parts(case.shown)) - _parts_of(case.statement)))


def solution_size(case: Case, _: Findings) -> float:
    """Lines that the gold patch adds (logarithm): a larger change has more ways to be made."""
    return math.log1p(sum(len(file.side("+")) for file in case.gold_files))


def values_untold(_: Case, findings: Findings) -> float:
    """Long values that the tests compare with and nobody told (logarithm)."""
    return math.log1p(findings["value-not-stated"])


def messages_untold(_: Case, findings: Findings) -> float:
    """1 where the tests look for a message that nobody told."""
    return float(findings["message-not-stated"] > 0)


def interface_untold(_: Case, findings: Findings) -> float:
    """1 where the tests use a new name that nobody told."""
    return float(findings["name-not-stated"] > 0)


def no_expectation(case: Case, _: Findings) -> float:
    """1 where no word speaks of what should be."""
    return float(not _EXPECTATION.search(case.statement))


def old_tests(case: Case, _: Findings) -> float | None:
    """Share of the FAIL_TO_PASS tests that no new line names: old expectations were changed."""
    names = {_bare(test) for test in case.fail_to_pass} - {""}
    added = "\n".join(text for file in case.test_files for text in file.side("+"))
    return _share_missing(names, set(_NAME.findall(added))) if names else None


def nothing_located(case: Case, _: Findings) -> float:
    """Names of files, calls and code in the statement's prose, fewer is worse (negative logarithm)."""
    return -math.log1p(len(_LOCATED.findall(prose_of(case.statement))))


def no_cause(case: Case, _: Findings) -> float:
    """Words that tell a cause or a remedy, fewer is worse (negative logarithm)."""
    return -math.log1p(len(_CAUSE.findall(prose_of(case.statement))))


OF_THE_STATEMENT: tuple[Signal, ...] = (
    solution_untold,
    solution_size,
    messages_untold,
    interface_untold,
    no_expectation,
    old_tests,
    nothing_located,
    no_cause,
)
"""What speaks of a statement that leaves open what is to be done."""

OF_THE_TESTS: tuple[Signal, ...] = (names_untold, words_untold, solution_news, values_untold)
"""What speaks of the tests alone. They are unfair also where the statement is vague, so they are judged by all."""

SIGNALS: tuple[Signal, ...] = (*OF_THE_STATEMENT, *OF_THE_TESTS)


def signals_of(case: Case, findings: Sequence[Finding]) -> Mapping[str, float | None]:
    """Name -> value of every signal; None where it has nothing to say."""
    counted = Counter(finding.rule for finding in findings)
    return {signal.__name__: signal(case, counted) for signal in SIGNALS}


def _share_missing(asked: set[str], told: set[str]) -> float | None:
    return len(asked - told) / len(asked) if asked else None


def _parts_of(text: str) -> set[str]:
    return set(parts(text)) | set(re.findall(r"[a-z]+", text.lower()))


def _bare(test: str) -> str:
    """The test's own name in an id of any style: the last word before parameters."""
    head = re.split(r"[\[(]|\s", test.strip(), maxsplit=1)[0]
    found = re.findall(r"\w+", re.split(r"::|#|\.|/", head)[-1])
    return found[0] if found else ""
