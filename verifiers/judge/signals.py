"""Signals of the calibrated model: numbers about a case, each larger for a worse statement.

Every signal has a reason that fits in a sentence. The model may only add signals up, so none can count in favour of a
task because of an accident of the data.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from taskdb.records.verdicts import Finding
from verifiers.judge.case import JudgeCase
from verifiers.judge.prose import extract_prose
from verifiers.judge.words import split_name

FindingCounts = Counter[str]
"""Rule -> number of findings."""
Signal = Callable[[JudgeCase, FindingCounts], float | None]

MIN_NAME_LENGTH = 3
"""Minimum length of a name in characters."""
_NAME = re.compile(r"[^\W\d]\w{2,}")
_EXPECTATION = re.compile(r"\bexpect|\bshould\b|\bactual\b|\binstead\b", re.IGNORECASE)
_LOCATED = re.compile(r"\w+/\w+\.\w+|\w+\.\w+\.\w+|\w+\(\)|`[^`\n]+`|\b_?\w+_\w+|\bline \d+|#L\d+")
_CAUSE = re.compile(
    r"\b(?:because|due to|caused?|causes|reason|the fix|fix(?:ed)? (?:is|by|would)|the (?:problem|issue) is|introduced|"
    r"regression|as a result|therefore)\b",
    re.IGNORECASE,
)


def measure_unstated_test_names(case: JudgeCase, _: FindingCounts) -> float | None:
    """Return the share of names on the tests' added lines that are not in the statement."""
    required = {
        added.token.text
        for added in case.test_tokens
        if added.token.category == "name" and len(added.token.text) >= MIN_NAME_LENGTH
    }
    return _compute_missing_share(required, set(_NAME.findall(case.statement)))


def measure_unstated_test_words(case: JudgeCase, _: FindingCounts) -> float | None:
    """Return the share of words in names and strings of the tests' added lines that are not in the statement."""
    types = ("name", "string")
    required = {
        part for added in case.test_tokens if added.token.category in types for part in split_name(added.token.text)
    }
    return _compute_missing_share(required, _split_words(case.statement))


def measure_unstated_gold_names(case: JudgeCase, _: FindingCounts) -> float | None:
    """Return the share of names on the gold patch's added lines that are not in the statement."""
    added = {
        token.text for _, token in case.gold_tokens if token.category == "name" and len(token.text) >= MIN_NAME_LENGTH
    }
    return _compute_missing_share(added, set(_NAME.findall(case.statement)))


def measure_new_gold_words(case: JudgeCase, _: FindingCounts) -> float:
    """Return the number of words added by the gold patch that are in neither statement nor old lines (logarithm)."""
    added = {
        part for _, token in case.gold_tokens if token.category in ("name", "string") for part in split_name(token.text)
    }
    return math.log1p(len(added - set(split_name(case.old_text)) - _split_words(case.statement)))


def measure_gold_patch_size(case: JudgeCase, _: FindingCounts) -> float:
    """Return the number of lines added by the gold patch (logarithm): a larger change can be made in more ways."""
    return math.log1p(sum(len(file.get_lines("+")) for file in case.gold_files))


def measure_unstated_values(_: JudgeCase, findings: FindingCounts) -> float:
    """Return the number of long values in assertions that are not stated (logarithm)."""
    return math.log1p(findings["value-not-stated"])


def measure_unstated_messages(_: JudgeCase, findings: FindingCounts) -> float:
    """Return 1 if the tests expect a message that is not stated."""
    return float(findings["message-not-stated"] > 0)


def measure_unstated_interface(_: JudgeCase, findings: FindingCounts) -> float:
    """Return 1 if the tests use a new name that is not stated."""
    return float(findings["name-not-stated"] > 0)


def measure_missing_expectation(case: JudgeCase, _: FindingCounts) -> float:
    """Return 1 if no word of the statement describes an expectation."""
    return float(not _EXPECTATION.search(case.statement))


def measure_changed_old_tests(case: JudgeCase, _: FindingCounts) -> float | None:
    """Return the share of FAIL_TO_PASS tests that no added line names: their expectations were changed."""
    names = {_parse_test_name(test) for test in case.fail_to_pass} - {""}
    added = "\n".join(text for file in case.test_files for text in file.get_lines("+"))
    return _compute_missing_share(names, set(_NAME.findall(added))) if names else None


def measure_missing_locations(case: JudgeCase, _: FindingCounts) -> float:
    """Return the number of files, calls and code names in the prose (negative logarithm: fewer is worse)."""
    return -math.log1p(len(_LOCATED.findall(extract_prose(case.statement))))


def measure_missing_cause(case: JudgeCase, _: FindingCounts) -> float:
    """Return the number of words for a cause or remedy in the prose (negative logarithm: fewer is worse)."""
    return -math.log1p(len(_CAUSE.findall(extract_prose(case.statement))))


STATEMENT_SIGNALS: Mapping[str, Signal] = {
    "unstated_gold_names": measure_unstated_gold_names,
    "gold_patch_size": measure_gold_patch_size,
    "unstated_messages": measure_unstated_messages,
    "unstated_interface": measure_unstated_interface,
    "missing_expectation": measure_missing_expectation,
    "changed_old_tests": measure_changed_old_tests,
    "missing_locations": measure_missing_locations,
    "missing_cause": measure_missing_cause,
}
"""Signals of a statement that leaves open the work that has to be done."""

TEST_SIGNALS: Mapping[str, Signal] = {
    "unstated_test_names": measure_unstated_test_names,
    "unstated_test_words": measure_unstated_test_words,
    "new_gold_words": measure_new_gold_words,
    "unstated_values": measure_unstated_values,
}
"""Signals of the tests alone. Tests are also unfair for a vague statement, so their label uses all signals."""

SIGNALS: Mapping[str, Signal] = {**STATEMENT_SIGNALS, **TEST_SIGNALS}
"""Name in `data/model.json` -> signal."""


def compute_signals(case: JudgeCase, findings: Sequence[Finding]) -> Mapping[str, float | None]:
    """Return name -> value of every signal; None where a signal is undefined."""
    counted = Counter(finding.rule for finding in findings)
    return {name: signal(case, counted) for name, signal in SIGNALS.items()}


def _compute_missing_share(required: set[str], stated: set[str]) -> float | None:
    return len(required - stated) / len(required) if required else None


def _split_words(text: str) -> set[str]:
    return set(split_name(text)) | set(re.findall(r"[a-z]+", text.lower()))


def _parse_test_name(test: str) -> str:
    """Return the test's own name from an id of any style: the last word before parameters."""
    head = re.split(r"[\[(]|\s", test.strip(), maxsplit=1)[0]
    words = re.findall(r"\w+", re.split(r"::|#|\.|/", head)[-1])
    return words[0] if words else ""
