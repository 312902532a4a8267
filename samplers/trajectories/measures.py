"""Measures of trajectories, by which rejection sampling decides: each takes the evidence and returns a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice

from core.patch_headers import read_path, split_sections
from languages.paths import is_test_path
from samplers.trajectories.evidence import TrajectoryEvidence
from samplers.trajectories.requests import get_text
from taskdb.records.rollouts import RolloutStatus

GRAM_WORDS = 20
"""Words of a gram."""
MIN_GRAMS = 20
"""Grams of an answer below which repeated grams do not count: short answers repeat themselves by chance."""
CYCLE_CALLS = range(2, 5)
"""Lengths of a cycle of calls; the same call over and over is counted by `repeats`."""
FORMAT_COMPLAINTS = re.compile(
    r"\A\W*(?:format error|please always provide exactly one|no (?:action|tool call)s? (?:was |were )?found"
    r"|(?:your|the) (?:last )?(?:answer|output|response) (?:was not|could not be) (?:formatted|parsed))",
    re.IGNORECASE,
)
"""Beginnings of the texts that scaffolds answer to a text in which they find no action."""


def measure_failed_share(evidence: TrajectoryEvidence) -> float:
    """Return the share of calls whose result reports a failure, 0..1."""
    calls = evidence.calls
    return sum(call.has_failed for call in calls) / len(calls) if calls else 0.0


def measure_failed_run(evidence: TrajectoryEvidence) -> float:
    """Return the largest number of failed calls in a row."""
    return float(_find_longest_run([call.has_failed for call in evidence.calls]))


def measure_repeated_run(evidence: TrajectoryEvidence) -> float:
    """Return how often, at most, the same call with the same result was made in a row."""
    return float(max((len(list(same)) for _, same in groupby(call.outcome for call in evidence.calls)), default=0))


def measure_repeated_share(evidence: TrajectoryEvidence) -> float:
    """Return the share of calls that were made before, with the same result, 0..1."""
    calls = [call.outcome for call in evidence.calls]
    return 1 - len(set(calls)) / len(calls) if calls else 0.0


def measure_loops(evidence: TrajectoryEvidence) -> float:
    """Return how often, at most, a cycle of two to four calls was made in a row."""
    actions = [call.action for call in evidence.calls]
    return float(max((_count_cycles(actions, length) for length in CYCLE_CALLS), default=0))


def measure_repetition(evidence: TrajectoryEvidence) -> float:
    """Return the largest share of repeated grams of 20 words in an answer, 0..1."""
    return max((_measure_repeated_grams(answer.split()) for answer in evidence.answers), default=0.0)


def count_format_errors(evidence: TrajectoryEvidence) -> float:
    """Return how many calls have no tool or no valid arguments, or were not found in an answer."""
    unknown = sum(not call.is_known for call in evidence.calls)
    complaints = sum(
        bool(request.messages)
        and request.messages[-1].get("role") == "user"
        and FORMAT_COMPLAINTS.search(get_text(request.messages[-1])) is not None
        for request in evidence.requests
    )
    return float(unknown + complaints)


def count_cuts(evidence: TrajectoryEvidence) -> float:
    """Return how many answers were cut at the token limit, and 1 more where a limit ended the rollout."""
    cut = sum(request.finish_reason in ("length", "max_tokens") for request in evidence.requests)
    return float(cut + (evidence.rollout.status is RolloutStatus.FAILED))


def measure_emptiness(evidence: TrajectoryEvidence) -> float:
    """Return 1 for a submission with nothing in it, else 0."""
    return float(not evidence.submission.strip())


def measure_test_only(evidence: TrajectoryEvidence) -> float:
    """Return 1 for a patch that changes test files alone, else 0."""
    paths = list_changed_paths(evidence.submission)
    return float(bool(paths) and all(is_test_path(path) for path in paths))


def count_leaks(evidence: TrajectoryEvidence) -> float:
    """Return the number of attempts to get at the secrets that the task hides."""
    return float(len(evidence.rollout.leaks))


def count_broken_instructions(evidence: TrajectoryEvidence) -> float:
    """Return the number of instructions of the task whose checks failed."""
    score = evidence.rollout.score
    return score.parts.get("failed_constraints", 0.0) if score else 0.0


MEASURES: Mapping[str, Callable[[TrajectoryEvidence], float]] = {
    "leaks": count_leaks,
    "truncated": count_cuts,
    "empty_patch": measure_emptiness,
    "test_only_patch": measure_test_only,
    "broken_instructions": count_broken_instructions,
    "format_errors": count_format_errors,
    "tool_errors": measure_failed_share,
    "tool_error_run": measure_failed_run,
    "repeats": measure_repeated_share,
    "repeat_run": measure_repeated_run,
    "loops": measure_loops,
    "repetition": measure_repetition,
}
"""Key in `Trajectory.metrics` -> the function that computes it."""


def measure_all(evidence: TrajectoryEvidence) -> dict[str, float]:
    """Return the value of every measure."""
    return {name: measure(evidence) for name, measure in MEASURES.items()}


def list_changed_paths(patch: bytes) -> list[str]:
    """Return the new paths of the files that a patch of git changes."""
    return [path for section in split_sections(patch.decode(errors="replace")) if (path := read_path(section))]


def _find_longest_run(flags: Sequence[bool]) -> int:
    return max((len(list(run)) for value, run in groupby(flags) if value), default=0)


def _count_cycles(actions: Sequence[tuple[str, str]], length: int) -> int:
    """Return how often, at most, `length` calls that are not all the same follow each other."""
    best = 0
    for start in range(len(actions) - length + 1):
        cycle = actions[start : start + length]
        if len(set(cycle)) == 1:
            continue
        count, at = 1, start + length
        while actions[at : at + length] == cycle:
            count, at = count + 1, at + length
        best = max(best, count)
    return best


def _measure_repeated_grams(words: Sequence[str]) -> float:
    count = len(words) - GRAM_WORDS + 1
    if count < MIN_GRAMS:
        return 0.0
    # One after the other: a list of the grams of an answer of 5 MB takes 200 MB, and seconds.
    grams = zip(*(islice(words, start, None) for start in range(GRAM_WORDS)), strict=False)
    return 1 - len(set(grams)) / count
