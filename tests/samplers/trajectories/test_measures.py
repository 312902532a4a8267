"""Measures of rejection sampling, each on a conversation that has what it counts and one that has not."""

from __future__ import annotations

import pytest

from samplers.trajectories import measures
from samplers.trajectories.evidence import TrajectoryEvidence
from taskdb.records.rollouts import Leak, RolloutStatus
from tests.samplers.selection.making import PATCH, make_plain_rollout, observe
from tests.samplers.trajectories.making import SYSTEM, TASK, ask, call


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("ok", False),
        ("Error: no such file", True),
        ("<tool_use_error>File has not been read yet</tool_use_error>", True),
        ("Exit code 1\nls: cannot access", True),
        ("Process exited with code 2\nOutput:\n", True),
        ("Exit code: 0\nOutput:\nall is well", False),
        ("<returncode>127</returncode>\n<output>\nnot found</output>", True),
        ("<returncode>0</returncode>\n<output>error handling is done here</output>", False),
        ('{"output": "x", "metadata": {"exit_code": 1}}', True),
        ('{"output": "x", "metadata": {"exit_code": 0}}', False),
        ("Traceback (most recent call last):\n  File", True),
        ("def handle_error(error):\n    raise error", False),
        ("errors.py\nmain.py", False),
    ],
)
def test_a_call_has_failed_by_what_its_result_reports(result: str, failed: bool) -> None:
    assert measures.measure_failed_share(observe(("ls", result))) == float(failed)


def test_failed_calls_are_counted_as_a_share_and_in_a_row() -> None:
    evidence = observe(("a", "ok"), ("b", "Error: x"), ("c", "Error: x"), ("d", "ok"))
    assert measures.measure_failed_share(evidence) == 0.5
    assert measures.measure_failed_run(evidence) == 2


def test_the_same_call_with_another_result_is_no_repeat() -> None:
    polling = observe(("date", "1"), ("date", "2"), ("date", "3"))
    assert measures.measure_repeated_run(polling) == 1
    assert measures.measure_repeated_share(polling) == 0
    stuck = observe(("date", "1"), ("date", "1"), ("date", "1"), ("ls", "ok"))
    assert measures.measure_repeated_run(stuck) == 3
    assert measures.measure_repeated_share(stuck) == 0.5


def test_what_a_scaffold_adds_to_every_result_makes_no_other_result() -> None:
    """As Codex does."""
    header = "Chunk ID: {}\nWall time: 0.0{} seconds\nProcess exited with code 0\nOutput:\nclean"
    assert measures.measure_repeated_run(observe(*(("git status", header.format(n, n)) for n in range(3)))) == 3
    other = observe(*(("git status", header.format(n, n) + str(n)) for n in range(3)))
    assert measures.measure_repeated_run(other) == 1


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ("ab" * 3, 3),
        ("abcd" * 3 + "x", 3),
        ("xab" * 2 + "y", 2),
        ("aaaa", 0),
        ("abcdefgh", 1),
        ("abcde" * 3, 1),
        ("", 0),
    ],
)
def test_cycles_of_two_to_four_calls_are_counted(commands: str, expected: int) -> None:
    assert measures.measure_loops(observe(*((letter, "ok") for letter in commands))) == expected


def test_an_answer_that_repeats_itself_has_repeated_grams() -> None:
    sentence = " ".join(f"word{number}" for number in range(25))
    varied = " ".join(f"word{number}" for number in range(100))

    def answer(text: str) -> TrajectoryEvidence:
        request = ask(0, [SYSTEM, TASK], {"role": "assistant", "content": text})
        return TrajectoryEvidence(rollout=make_plain_rollout(), requests=[request], later=[request], submission=b"")

    assert measures.measure_repetition(answer(" ".join([sentence] * 10))) > 0.8
    assert measures.measure_repetition(answer(varied)) == 0
    assert measures.measure_repetition(answer("yes " * 30)) == 0


def test_calls_without_a_tool_or_valid_arguments_are_format_errors() -> None:
    broken = call(0)
    broken["tool_calls"][0]["function"]["arguments"] = '{"command": '
    requests = [
        ask(0, [SYSTEM, TASK], broken),
        ask(1, [SYSTEM, TASK, TASK], call(1, name="no_such_tool")),
        ask(2, [SYSTEM, TASK, {"role": "user", "content": "Format error: please give one action."}], call(2)),
    ]
    evidence = TrajectoryEvidence(rollout=make_plain_rollout(), requests=requests, later=requests, submission=b"")
    assert measures.count_format_errors(evidence) == 3


def test_cut_answers_and_a_limit_of_the_rollout_count_as_truncated() -> None:
    request = ask(0, [SYSTEM, TASK], call(0), finish_reason="length")
    evidence = TrajectoryEvidence(
        rollout=make_plain_rollout(status=RolloutStatus.FAILED), requests=[request], later=[request], submission=b""
    )
    assert measures.count_cuts(evidence) == 2
    assert measures.count_cuts(observe(("ls", "ok"))) == 0


def test_patches_of_nothing_and_of_tests_alone_are_found() -> None:
    tests_only = PATCH.replace(b"greet.py", b"tests/test_greet.py")
    assert measures.measure_emptiness(observe(submission=b" \n")) == 1
    assert measures.measure_emptiness(observe()) == 0
    assert measures.measure_test_only(observe(submission=tests_only)) == 1
    assert measures.measure_test_only(observe(submission=tests_only + PATCH)) == 0
    assert measures.measure_test_only(observe(submission=b"")) == 0


def test_leaks_of_the_rollout_are_counted() -> None:
    leak = Leak(name="git-history", exchange=0, quote="git fsck")
    assert measures.count_leaks(observe(leaks=(leak, leak))) == 2


def test_the_action_of_a_scaffold_without_tools_is_its_command() -> None:
    said = {"role": "assistant", "content": "I look.\n```bash\nls -a\n```"}
    observed = {"role": "user", "content": "<returncode>1</returncode>"}
    requests = [ask(0, [SYSTEM, TASK], said, tools=()), ask(1, [SYSTEM, TASK, said, observed], said, tools=())]
    evidence = TrajectoryEvidence(rollout=make_plain_rollout(), requests=requests, later=requests, submission=b"")
    assert [(listed.name, listed.arguments, listed.result) for listed in evidence.calls] == [
        ("text", "ls -a", "<returncode>1</returncode>"),
        ("text", "ls -a", None),
    ]


def test_the_result_of_a_call_is_found_although_its_id_was_used_before() -> None:
    first = [SYSTEM, TASK, call(0, "a"), {"role": "tool", "tool_call_id": "c0", "content": "one"}]
    second = [*first, call(0, "b"), {"role": "tool", "tool_call_id": "c0", "content": "two"}]
    requests = [ask(0, [SYSTEM, TASK], call(0, "a")), ask(1, first, call(0, "b")), ask(2, second, call(2))]
    evidence = TrajectoryEvidence(rollout=make_plain_rollout(), requests=requests, later=requests, submission=b"")
    assert [listed.result for listed in evidence.calls] == ["one", "two", None]
