"""Columns of SWT-Bench from runs in containers."""

from __future__ import annotations

import pytest

from mergemill.bench.swt_runs import SwtRuns
from tests.verifiers.rewards.test_writing import NEW, open_writing_exam
from verifiers.rewards import writing

FAILING = "from pieces import chunks\n\n\ndef test_rest():\n    assert chunks([1, 2, 3], 2) == [[1, 2], [3]]\n"
FAILING += "\n\ndef test_more():\n    assert chunks([1], 1) == 7\n"


@pytest.mark.docker
def test_submitted_tests_are_compared_with_the_base_suite_and_the_own_tests(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    exam = open_writing_exam(tmp_path_factory, test_timeout=60)
    runs = SwtRuns(services=exam.services)
    assert runs.applies_to(exam.task)
    own = runs.measure(exam.task, writing.load_gold_tests(exam.task, exam.services))
    assert (own["applies"], own["success"], own["fail_to_pass"]) == (1.0, 1.0, 1.0)
    assert own["coverage_of_gold"] == 1.0
    assert 0 < own["coverage_delta"] <= 1
    spoiled = runs.measure(exam.task, exam.patch("failing", {NEW: FAILING}))
    assert (spoiled["success"], spoiled["fail_to_pass"], spoiled["fails_before"]) == (0.0, 1.0, 1.0)
    assert runs.measure(exam.task, b"no diff")["applies"] == 0.0
