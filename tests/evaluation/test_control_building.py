"""Building controls: which values and blocks the runs of the gold patch leave, by an evaluator in this process."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from random import Random
from string import ascii_lowercase
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluation.controls.alternatives import draw_alternatives, is_number, is_string
from evaluation.controls.blocks import TestBlock, TestFile, find_blocks, parse_test_file
from evaluation.controls.calls import guard_against_crashes
from evaluation.controls.controls import BlindControls, ControlBuilder
from evaluation.controls.features import TreeCounts
from evaluation.controls.memory import ControlMemory
from evaluation.controls.planning import MIN_INSTANCES, Menu
from evaluation.controls.trials import TrialPlan, TriedBlock, TriedInstance
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from guest.controls import blind
from guest.controls.choices import count_instances
from languages.registry import parse_source
from tests.evaluation.process_evaluator import KilledRunError, ProcessEvaluator, run_file

FILE = "tests/test_add.py"


def build(
    sources: Mapping[str, str],
    names: Mapping[str, object],
    *,
    required: Sequence[str] | None = None,
    tree: Mapping[str, int] | None = None,
    test_seconds: float = 0.0,
    seconds: float = 0.0,
    grades_gold: bool = True,
    unlisted: Sequence[str] = (),
    old: Mapping[str, str] | None = None,
) -> tuple[BlindControls, ProcessEvaluator]:
    """Build the controls of test files whose tests are all listed but some, and by default all required."""
    files = {path: text.encode() for path, text in sources.items()}
    evaluator = ProcessEvaluator(names, files, test_seconds=test_seconds)
    listed = {test for path, content in files.items() for test in run_file(path, content, names)} - {*unlisted}
    wanted = frozenset(required if required is not None else listed)
    passed = {test: Outcome(status=OutcomeStatus.PASSED, seconds=test_seconds) for test in sorted(listed)}
    builder = ControlBuilder(
        evaluator=cast(Evaluator, evaluator),
        gold_patch=b"",
        required=wanted,
        others=frozenset(listed) - wanted,
        test_files=files,
        old_files={path: text.encode() for path, text in (old or {}).items()},
        random=Random(1),
        seconds=seconds,
        report=EvaluationReport(outcomes=passed, uncollected={}) if seconds else None,
        tree=TreeCounts(tokens=tree or {}),
        grades_gold=grades_gold,
    )
    return builder.build(), evaluator


def test_a_run_with_instances_may_take_longer_by_their_seconds_and_then_by_those_of_the_run_before() -> None:
    source = "def test_one():\n    assert add(1, 41) == 42\n\n\ndef test_two():\n    assert add(20, 13) == 33\n"
    _, unlimited = build({FILE: source}, ADD, test_seconds=0.5)
    assert set(unlimited.limits) == {None}
    _, evaluator = build({FILE: source}, ADD, test_seconds=0.5, seconds=30.0)
    first, second, *_ = [limit.expected if limit else 0.0 for limit in evaluator.limits]
    assert first == 30.0 + 0.5 * evaluator.drawn[0][FILE].count(b"def test_")
    assert second == 50.0


def list_values(controls: BlindControls) -> dict[str, list[tuple[str, list[str]]]]:
    """Return test -> (true text, other texts) of its sites."""
    assert controls.document is not None
    values: dict[str, list[tuple[str, list[str]]]] = {}
    for block in controls.document["blocks"]:
        text = controls.document["files"][block["file"]].encode()
        for site in block.get("sites", ()):
            start, end = site["spans"][0]
            others = [value["text"] for value in site["values"]]
            values.setdefault(block["tests"][0].rpartition("::")[2], []).append((text[start:end].decode(), others))
    return values


ADD = {"add": lambda a, b: a + b}


def test_tests_that_can_stand_side_by_side_take_two_runs() -> None:
    # All numbers stand in the file in the same way, so that nothing but guessing is left.
    numbers = "".join(f"    add(1, 2) == {number}\n\n\n" for number in range(1, 100))
    source = f'NUMBERS = """\n{numbers}"""\n\n\n'
    source += "def test_one():\n    assert add(1, 41) == 42\n\n\ndef test_two():\n    assert add(20, 13) == 33\n"
    controls, evaluator = build({FILE: source}, ADD)
    assert evaluator.n_runs == 2
    assert controls.document is not None
    assert [count_instances(block) for block in controls.document["blocks"]] == [32, 32]
    assert controls.document["evaluations"] == 1


def test_a_single_test_stands_as_a_grid_of_two_sites_where_one_evaluation_is_to_decide() -> None:
    numbers = "".join(f"    add(1, 2) == {number}\n\n\n" for number in range(1, 100))
    source = f'NUMBERS = """\n{numbers}"""\n\n\n'
    source += "def test_one():\n    assert add(1, 41) == 42\n    assert add(20, 13) == 33\n"
    controls, evaluator = build({FILE: source}, ADD)
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert controls.document["evaluations"] == 1
    assert count_instances(block) >= 1000
    assert blind.compute_bound(controls.document) <= 1 / 1000
    assert evaluator.n_runs == 2
    sizes = {prod(size for _, size in menu) for menu in block["menus"]}
    (evaluation,) = blind.draw_evaluations(controls.document, Random(1))
    assert evaluation.files[FILE].count(b"def test_one_") in sizes
    assert evaluator.drawn[-1][FILE].count(b"def test_one_") == 32, "a certificate grades gold with all of them"
    slow, _ = build({FILE: source}, ADD, test_seconds=0.02)
    assert slow.document is not None
    assert slow.document["evaluations"] == 1, "of a preference two evaluations ask little more than one"


def test_more_instances_are_taken_before_another_evaluation() -> None:
    """Of three tests one is recognized by its inverted assertion."""
    numbers = "".join(f"    add(1, 2) == {number}\n\n\n" for number in range(1, 100))
    source = f'NUMBERS = """\n{numbers}"""\n\n\n'
    source += "def test_one():\n    assert add(1, 41) == 42\n\n\ndef test_two():\n    assert add(20, 13) == 33\n\n\n"
    source += "def test_three():\n    assert isinstance(add(one, two), int)\n"
    controls, _ = build({FILE: source}, {**ADD, "one": 1, "two": 2})
    assert controls.document is not None
    assert controls.document["evaluations"] == 1
    assert blind.compute_bound(controls.document) <= 1 / 1000


def test_a_few_more_instances_are_taken_before_another_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers are right a little more often than by chance."""

    def select_menus(_sites: object, menus: Sequence[Menu], _random: Random) -> tuple[list[Menu], list[float]]:
        return [*menus], [1.15 / min(prod(size for _, size in menu) for menu in menus)]

    monkeypatch.setattr("evaluation.controls.controls.select_menus", select_menus)
    source = "def test_one():\n    assert add(1, 41) == 42\n    assert add(20, 13) == 33\n    assert add(7, 14) == 21\n"
    controls, _ = build({FILE: source}, ADD)
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert controls.document["evaluations"] == 1
    assert 1000 * 1.15 <= count_instances(block) <= 1250 * 1.1
    assert blind.compute_bound(controls.document) <= 1 / 1000


def count_instances_by_test(evaluator: ProcessEvaluator, run: int) -> dict[str, int]:
    """Return test -> number of its instances in a run."""
    names = re.findall(r"^def (test_\w+)_[a-z]{6}\(", evaluator.drawn[run][FILE].decode(), re.MULTILINE)
    return dict(Counter(names))


GRID = 'NUMBERS = """\n' + "".join(f"    add(1, 2) == {number}\n" for number in range(1, 100)) + '"""\n\n\n'
GRID += "def test_a():\n    assert add(1, 41) == 42\n    assert add(20, 13) == 33\n"
"""A test of many values, that is to stand in 1,000 combinations of them."""


NAMED_GRID = (
    "def test_a():\n    for first, total in ((1, 42), (20, 61), (32, 73)):\n        assert add(first, 41) == total\n"
)


def make_sums(number: int) -> str:
    """Return so many tests of two sums each."""
    tests = [
        f"def test_{word}():\n    assert add({n}, 41) == {n + 41}\n    assert add({n}, 52) == {n + 52}\n"
        for n, word in zip(range(11, 11 + number), ascii_lowercase, strict=False)
    ]
    return "\n\n".join(tests)


def test_few_values_are_tried_where_no_bound_depends_on_them() -> None:
    required = [f"{FILE}::test_{word}" for word in "abcde"]
    controls, evaluator = build({FILE: make_sums(7)}, ADD, required=required)
    tried, drawn = (count_instances_by_test(evaluator, run) for run in (0, 1))
    assert {drawn[f"test_{word}"] for word in "fg"} == {3}
    assert {drawn[f"test_{word}"] for word in "abcde"} == {8}
    assert max(tried[f"test_{word}"] for word in "fg") <= 13
    assert min(tried[f"test_{word}"] for word in "abcde") >= 20
    assert controls.confirmed == required


@pytest.mark.parametrize(
    ("source", "least", "slow"),
    [(make_sums(5), 4, 0.3), (f"{GRID}    assert add(7, 14) == 21\n    assert add(6, 31) == 37\n", 1000, 0.02)],
)
def test_few_more_values_of_a_slow_test_are_tried_than_its_instances_need(source: str, least: int, slow: float) -> None:
    counts = []
    for test_seconds in (0.0001, slow):
        controls, evaluator = build({FILE: source}, ADD, test_seconds=test_seconds, seconds=0.5)
        assert controls.document is not None
        assert controls.document["evaluations"] == 1
        assert blind.compute_bound(controls.document) <= 1 / 1000
        assert count_instances(controls.document["blocks"][0]) >= least
        counts.append(count_instances_by_test(evaluator, 0)["test_a"])
    assert counts[1] <= counts[0] - 20 if least == 4 else counts[1] == counts[0]


DISTURBING = (
    "def test_a():\n    assert not items\n    items.append(1)\n    assert add(1, 41) == 42\n    items.clear()\n"
)
READING = "def test_read():\n    assert SOURCE.count('def test_a') == 1\n\n\n"


@pytest.mark.parametrize(
    ("source", "is_graded"),
    [
        (make_sums(5), False),
        (GRID, False),  # of combinations, which fail by the first of their values
        (NAMED_GRID, True),  # a combination of values that may have other effects as well
        (DISTURBING, True),  # an instance that fails leaves something for the next
        (READING + make_sums(5), True),
    ],
)
def test_gold_is_not_graded_where_the_run_of_all_values_has_shown_its_outcomes(source: str, is_graded: bool) -> None:
    counts, documents = [], []
    for grades_gold in (True, False):
        controls, evaluator = build({FILE: source}, {**ADD, "items": []}, grades_gold=grades_gold)
        assert len(controls.runs) == evaluator.n_runs
        counts.append(evaluator.n_runs)
        documents.append(controls.document)
    always, where_needed = counts
    assert where_needed == (always if is_graded else 1)
    assert documents[0] == documents[1]


@pytest.mark.parametrize(
    "source", [make_sums(1), make_sums(3), GRID, f"{GRID}    assert add(7, 14) == 21\n    assert add(6, 31) != 30\n"]
)
def test_gold_passes_whatever_is_drawn_where_it_was_not_graded(source: str) -> None:
    controls, evaluator = build({FILE: source}, ADD, grades_gold=False)
    assert evaluator.n_runs == 1
    assert controls.document is not None
    assert all(grade_gold(controls, evaluator, seed).is_right for seed in range(10))


def test_a_run_that_replaces_a_grading_is_of_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    _, evaluator = build({FILE: make_sums(5)}, ADD, grades_gold=False)
    assert evaluator.files == [()]
    _, evaluator = build({FILE: make_sums(5)}, ADD)
    assert evaluator.files == [[FILE], ()]
    monkeypatch.setattr(TriedBlock, "can_repeat", property(lambda tried: tried.name != "test_a"))
    _, evaluator = build({FILE: make_sums(5)}, ADD, grades_gold=False)
    assert evaluator.files[0] == [FILE], "a test that stands once takes other runs anyway"


def test_no_container_is_prepared_for_a_grading_that_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, evaluator = build({FILE: make_sums(5)}, ADD, grades_gold=False)
    assert evaluator.last == [True]
    _, evaluator = build({FILE: make_sums(5)}, ADD)
    assert evaluator.last == [False, True]
    monkeypatch.setattr(TriedBlock, "can_repeat", property(lambda tried: tried.name != "test_a"))
    _, evaluator = build({FILE: make_sums(5)}, ADD, grades_gold=False)
    assert not evaluator.last[0]


@pytest.mark.parametrize("is_disturbed", [False, True])
def test_an_instance_that_fails_may_disturb_a_test_of_another_file(is_disturbed: bool) -> None:
    names = {**ADD, "items": []}
    tests = re.sub(r"(?m)^    assert (.*)$", "    items.append(1)\n    assert \\1\n    items.clear()", make_sums(5))
    other = "def test_other():\n    assert not items\n" if is_disturbed else "def test_other():\n    assert True\n"
    required = [f"{FILE}::test_{word}" for word in "abcde"]
    files = {FILE: tests, "tests/test_other.py": other}
    _, evaluator = build(files, names, required=required, grades_gold=False)
    assert (evaluator.n_runs > 1) == is_disturbed


def test_a_test_that_its_instances_disturb_leaves_those_of_other_tests() -> None:
    source = (
        "calls = []\n\n\n"
        "def test_one():\n    assert add(1, 11) == 12\n\n\n"
        "def test_two():\n    assert add(20, 13) == 33\n\n\n"
        # It passes where all values are tried, and not in a draw of them.
        "def test_state():\n    number = SOURCE.count('def ' + 'test_state')\n"
        "    if 1 < number < 60:\n        raise RuntimeError(number)\n    assert add(200, 10) == 210\n"
    )
    controls, evaluator = build({FILE: source}, ADD)
    assert controls.document is not None
    repeated = [block["tests"][0] for block in controls.document["blocks"] if "menus" in block]
    assert sorted(repeated) == [f"{FILE}::test_one", f"{FILE}::test_two"]
    assert evaluator.n_runs <= 8


def test_a_test_that_reads_its_own_file_takes_the_instances_of_that_file_alone() -> None:
    sources = {
        FILE: "def test_one():\n    assert add(1, 11) == 12\n\n\n"
        "def test_size():\n    assert len(SOURCE) < 120 + add(0, 1)\n",
        "tests/test_more.py": "def test_two():\n    assert add(20, 13) == 33\n\n\n"
        "def test_three():\n    assert add(4, 13) == 17\n",
    }
    controls, _ = build(sources, ADD)
    assert controls.document is not None
    repeated = [block["tests"][0] for block in controls.document["blocks"] if "menus" in block]
    assert sorted(repeated) == ["tests/test_more.py::test_three", "tests/test_more.py::test_two"]


def raise_unless_simple(backend: str) -> str:
    if backend != "simple":
        raise ValueError(backend)
    return backend


SINGLE = """\
class TestShared(TestCase):
    def test_backend(self):
        if SOURCE.count("def " + "test_backend") > 1:
            raise RuntimeError("the file was changed")
        check(make(backend="simple"))
"""


def test_an_input_on_which_every_tree_raises_controls_nothing() -> None:
    """Nor does it where a test stands once."""
    controls, evaluator = build({FILE: SINGLE}, {"make": raise_unless_simple, "check": str})
    assert controls.document is None
    assert evaluator.n_runs == 1


@pytest.mark.parametrize("table", ["cases", "[(1, 11, 12), (20, 13, 33), (5, 40, 45)]"])
def test_the_expected_column_of_a_table_is_changed(table: str) -> None:
    source = (
        "def test_table():\n    cases = [(1, 11, 12), (20, 13, 33), (5, 40, 45)]\n"
        f"    for first, second, expected in {table}:\n        assert add(first, second) == expected\n"
    )
    controls, _ = build({FILE: source}, ADD)
    values = list_values(controls)["test_table"]
    columns = {true: others for true, others in values if true.isdigit()}
    assert columns
    assert columns.keys() <= {"12", "33", "45"}
    assert max(map(len, columns.values())) >= 20


TABLE = """\
@pytest.mark.parametrize("first, second, total", [
    (1, 11, 12),
    (20, 13, 33),
    pytest.param(5, 40, 45, id="large"),
])
def test_table(first, second, total):
    assert add(first, second) == total
"""


def grade_gold(controls: BlindControls, evaluator: ProcessEvaluator, seed: int = 3) -> blind.Judgement:
    """Grade the functions that pass all tests."""
    assert controls.document is not None
    judgement = blind.Judgement(controls.required)
    for evaluation in blind.draw_evaluations(controls.document, Random(seed)):
        report = evaluator.run(test_files=evaluation.files).report
        judgement.add(evaluation, report.list_results())
    return judgement


def test_the_compared_column_of_a_parametrized_test_is_changed() -> None:
    """The changed values are part of the tests' ids."""
    source = TABLE.replace('pytest.param(5, 40, 45, id="large")', "(5, 40, 45)")
    controls, evaluator = build({FILE: source}, ADD, required=[f"{FILE}::test_table[20-13-33]"])
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert block["tests"] == [f"{FILE}::test_table[{case}]" for case in ("1-11-12", "20-13-33", "5-40-45")]
    ((true, others),) = list_values(controls)["test_table[1-11-12]"]
    assert true == "33"
    assert len(others) >= 20
    for value in block["sites"][0]["values"]:
        test = f"{FILE}::test_table[20-13-33]"
        assert value["fails"] == {test: "assertion"}
        assert value["ids"] == {test: f"{FILE}::test_table[20-13-{value['text']}]"}
    assert controls.confirmed == [test]
    assert all(grade_gold(controls, evaluator).is_right for _ in range(5))
    evaluator.names = {"add": lambda _a, _b: 33}
    assert not grade_gold(controls, evaluator).is_right


def test_an_input_of_a_parametrized_test_is_changed_where_an_assertion_sees_it() -> None:
    source = (
        "@pytest.mark.parametrize('value', ['0x4e5acf9684652BEa', '0x22B0f92af10FdC25'])\n"
        "def test_known(value):\n    assert is_known(value)\n"
    )
    known = {"0x4e5acf9684652BEa", "0x22B0f92af10FdC25"}
    controls, evaluator = build({FILE: source}, {"is_known": known.__contains__})
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert all(site["is_input"] for site in block["sites"])
    others = [text for _, texts in next(iter(list_values(controls).values())) for text in texts]
    shapes = {re.sub("[a-f]", "a", re.sub("[A-F]", "A", re.sub(r"\d", "0", text))) for text in others}
    assert len(others) > 20
    assert shapes <= {"0a0aaa0000000AAa", "00A0a00aa00AaA00"}
    assert grade_gold(controls, evaluator).is_right
    assert max(block["readers"]) < 0.2


HELPER_FUNCTIONS = """\
def use(value):
    assert is_known(value)


def use_twice(value):
    use(value)
    use(value)


def test_one():
    use_twice('0x4e5acf9684652BEa')


def test_two():
    use('0x22B0f92af10FdC25')
"""
HELPER_METHODS = """\
class TestKnown(TestCase):
    def use(self, value, expected):
        self.assertEqual(is_known(value), expected and bool(value))

    def test_one(self):
        self.use('0x4e5acf9684652BEa', True)
        self.use('0x22B0f92af10FdC25', True)
"""


@pytest.mark.parametrize("source", [HELPER_FUNCTIONS, HELPER_METHODS])
def test_an_input_is_changed_where_a_helper_asserts(source: str) -> None:
    known = {"0x4e5acf9684652BEa", "0x22B0f92af10FdC25"}
    controls, evaluator = build({FILE: source}, {"is_known": known.__contains__})
    assert controls.document is not None
    assert controls.confirmed == sorted(controls.required)
    assert all(site["is_input"] for block in controls.document["blocks"] for site in block["sites"])
    assert evaluator.n_runs == 2
    assert grade_gold(controls, evaluator).is_right
    drawn = evaluator.drawn[-1][FILE].decode()
    assert [drawn.count(f"def {helper}") for helper in ("use(", "use_")] == [1, source.count("def use_")]


def test_an_input_on_which_a_helper_raises_controls_nothing() -> None:
    """In any tree, that is: it is no assertion that sees it."""
    source = "def use(value):\n    assert make(value)\n\n\ndef test_one():\n    use('simple')\n"
    controls, _ = build({FILE: source}, {"make": raise_unless_simple})
    assert controls.document is None or not any(
        site["is_input"] for block in controls.document["blocks"] for site in block.get("sites", ())
    )


def test_two_inputs_are_not_changed_at_once() -> None:
    """They may give equal results again."""
    source = "def test_one():\n    total = sum((1, 2))\n    assert add(1, 2) == total\n"
    controls, evaluator = build({FILE: source}, ADD)
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert len(block["sites"]) > 1
    assert all(len(menu) == 1 for menu in block["menus"])
    assert evaluator.n_runs == 2


@pytest.mark.parametrize("condition", ["add(one, two) != one", "isinstance(total, int)"])
def test_an_inverted_assertion_shows(condition: str) -> None:
    source = f"def test_one():\n    one, two, total = numbers()\n    assert {condition}\n"
    controls, _ = build({FILE: source}, {**ADD, "numbers": lambda: (1, 2, 3)})
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert [value["text"][:4] for site in block["sites"] for value in site["values"]] in ([" == "], ["not "])
    assert max(block["readers"]) > 0.98


def test_an_inverted_assertion_of_a_test_that_stands_once_shows() -> None:
    source = SINGLE.replace('check(make(backend="simple"))', "assert isinstance(make('simple'), str)")
    controls, _ = build({FILE: source}, {"make": raise_unless_simple})
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert [form["edits"][0][2][:4] for form in block["forms"]] == ["not "]
    assert blind.compute_guess_bound(controls.document) <= 1 / 1000
    assert blind.compute_bound(controls.document) > 0.9


def test_an_assertion_is_inverted_where_none_sees_the_inputs() -> None:
    inputs = "".join(f"        source.update('{word}')\n" for word in ("balo", "cemi", "dono", "celu"))
    words = {"".join(letters): 1 for letters in product("bcd", "aeo", "lmn", "iou")}
    check = "self.assertIs(source.lock, source.lock)"
    source = f"class TestCopy(TestCase):\n    def test_one(self):\n        source = make()\n{inputs}        {check}\n"
    maker = {"make": lambda: SimpleNamespace(update=lambda *_: None, lock=object())}
    controls, _ = build({FILE: source}, maker, tree={**words, "assertIs": 50})
    assert controls.document is not None
    assert ["menus" in block for block in controls.document["blocks"]] == [True]


def test_a_run_that_an_input_kills_is_repeated_without_inputs() -> None:
    def make_numbers(size: int) -> list[int]:
        if size > 3:
            raise KilledRunError
        return [0] * size

    source = "def test_one():\n    assert make_numbers(3)[0] == 0\n    assert len(make_numbers(2)) == 2\n"
    controls, evaluator = build({FILE: source}, {"make_numbers": make_numbers})
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    assert "menus" in block
    assert not any(site["is_input"] for site in block["sites"])
    assert evaluator.n_runs == 3


class CrashError(Exception):
    """Ends the process of all tests."""


class CrashingEvaluator(ProcessEvaluator):
    """An evaluator whose runs have no outcomes after a crash."""

    def run(self, *args: object, **options: Any) -> EvaluationRun:
        run = super().run(*args, **options)
        outcomes = list(run.report.outcomes.items())
        crashes = [n for n, (_, outcome) in enumerate(outcomes) if outcome.message.startswith("CrashError")]
        kept = dict(outcomes[: crashes[0]] if crashes else outcomes)
        return cast(EvaluationRun, SimpleNamespace(report=replace(run.report, outcomes=kept), record=run.record))


def test_tests_after_a_crash_are_tried_once_more_without_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_numbers(size: int) -> list[int]:
        if size > 20:
            raise CrashError
        return [0] * size

    def parse(path: str, content: bytes) -> TestFile | None:
        file = parse_test_file(path, content)
        return replace(file, sites=replace(file.sites, crash_guard=("never", ""))) if file else None

    monkeypatch.setattr("evaluation.controls.memory.parse_test_file", parse)
    monkeypatch.setattr("tests.evaluation.test_control_building.ProcessEvaluator", CrashingEvaluator)
    source = "def test_a():\n    assert add(1, 41) == 42\n\n\n"
    source += "def test_b():\n    assert len(make_numbers(20)) == 20\n    assert make_numbers(13)[0] == 0\n\n\n"
    source += "def test_c():\n    assert add(3, 61) == 64\n"
    controls, evaluator = build({FILE: source}, {**ADD, "make_numbers": make_numbers})
    assert evaluator.n_runs == 3
    assert len(controls.confirmed) == 3


def test_a_letter_is_replaced_by_letters() -> None:
    controls, _ = build({FILE: "def test_one():\n    assert name() == 'd'\n"}, {"name": lambda: "d"})
    others = dict(list_values(controls)["test_one"])["d"]
    assert len(others) > 20
    assert set(others) <= set(ascii_lowercase) - {"d"}


def test_a_number_of_a_text_takes_the_place_of_a_number_alone() -> None:
    text = "'a = {b = 1, c = 22, d = 3, e = 47}'"
    controls, _ = build({FILE: f"def test_one():\n    assert name() == {text}\n"}, {"name": lambda: text[1:-1]})
    shapes = {
        re.sub(r"\d", "0", re.sub("[a-z]", "a", other))
        for true, others in list_values(controls)["test_one"]
        if len(true) > 2
        for other in others
    }
    assert shapes
    assert {re.sub("0+", "0", shape) for shape in shapes} == {"a = {a = 0, a = 0, a = 0, a = 0}"}


@pytest.mark.parametrize("number", [12, 15, 2024])
def test_other_numbers_lie_on_both_sides(number: int) -> None:
    controls, _ = build({FILE: f"def test_one():\n    assert add({number - 1}, 1) == {number}\n"}, ADD)
    others = dict(list_values(controls)["test_one"])[str(number)]
    below = sum(int(other) < number for other in others)
    assert len(others) / 4 <= below <= 3 * len(others) / 4


FRUITS = ("pear", "plum", "kiwi", "lime", "date", "fig", "nut", "apple", "mango", "peach", "lemon", "grape")
TREE = (
    "door",
    "roof",
    "wall",
    "floor",
    "stair",
    "lamp",
    "chair",
    "table",
    "shelf",
    "bed",
    "sofa",
    "stool",
    "mat",
    "rug",
)


@pytest.mark.parametrize("tree", [(), TREE])
def test_common_words_hide_a_word_that_stands_nowhere_else(tree: Sequence[str]) -> None:
    source = "".join(f"def test_{n}():\n    assert name({n}) == '{fruit}'\n\n\n" for n, fruit in enumerate(FRUITS))
    controls, _ = build(
        {FILE: source},
        {"name": lambda number: FRUITS[number]},
        required=[f"{FILE}::test_{FRUITS.index('pear')}"],
        tree=dict.fromkeys(tree, 1),
    )
    assert controls.document is not None
    (odds,) = [max(block["readers"]) for block in controls.document["blocks"] if block["required"]]
    assert odds < 0.02


def test_a_value_that_its_test_is_named_after_is_found() -> None:
    source = "".join(f"def test_{fruit}():\n    assert name({n}) == '{fruit}'\n\n\n" for n, fruit in enumerate(FRUITS))
    controls, _ = build({FILE: source}, {"name": lambda number: FRUITS[number]}, required=[f"{FILE}::test_{FRUITS[0]}"])
    assert controls.document is not None
    (odds,) = [max(block["readers"]) for block in controls.document["blocks"] if block["required"]]
    assert odds > 0.99


def test_members_of_a_set_do_not_take_the_place_of_each_other() -> None:
    source = "def test_one():\n    assert name(1) == {\n        1,\n        3,\n        6,\n    }\n"
    controls, evaluator = build({FILE: source}, {"name": lambda _: {1, 3, 6}})
    assert controls.document is not None
    (block,) = controls.document["blocks"]
    grids = [[block["sites"][number] for number, _ in menu] for menu in block["menus"]]
    assert all(len(sites) > 1 for sites in grids)
    texts = {value["text"] for sites in grids for site in sites for value in site["values"]}
    assert texts == set("0245789")
    assert all(grade_gold(controls, evaluator).is_right for _ in range(3))


def test_gold_passes_what_is_drawn() -> None:
    source = "def test_one():\n    assert add(1, 41) == 42\n\n\ndef test_two():\n    assert add(20, 13) == 33\n"
    assert grade_gold(*build({FILE: source}, ADD)).is_right


GO_TEST = """package a

import "testing"

func TestLimits(t *testing.T) {
	t.Run("greatest", func(t *testing.T) {
		if got := Greatest(); got[0] != %s {
			t.Fatalf("it differs: %%v", got)
		}
	})
}

func helper(n int, t *testing.T) int { return n }

func (s *Suite) TestOfSuite() {
	s.Equal(s.add(), 12)
}
"""


@pytest.mark.parametrize(
    ("number", "limit"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("2147483000", 2**31 - 1),
        ("0xffffff00", 2**32 - 1),
        ("4294967000", 2**32 - 1),
    ],
)
def test_a_type_that_holds_a_number_holds_the_others(number: str, limit: int) -> None:
    file = parse_test_file("a_test.go", (GO_TEST % number).encode())
    assert file is not None
    nodes = [file.root]
    while not (is_number(nodes[0]) and file.read(nodes[0]) == number):
        nodes = [*nodes[0].named_children, *nodes[1:]]
    (drawn,) = draw_alternatives(nodes[0], file.literals, file.literals, Random(1))
    assert drawn.texts
    assert max(int(text, 0) for text in drawn.texts) <= limit


def plan_go_trials() -> TrialPlan:
    file = parse_test_file("a_test.go", (GO_TEST % "12").encode())
    assert file is not None
    block = next(block for block in find_blocks(file) if file.read(block.node).startswith("func TestLimits"))
    memory = ControlMemory(seed="tree", read_tree=lambda _: TreeCounts())
    tried = memory.find_block(file, block, frozenset())
    assert tried is not None
    return TrialPlan(tried=tried, trials=tried.choose_trials(4, 40), seconds=0.0)


def test_a_crash_in_go_fails_a_tried_instance_alone() -> None:
    plan = plan_go_trials()
    _, _, text = plan.make_instances(None, Random(1)).edit
    guard = 'recover(); fault != nil { t.Fatalf("test panicked: %v", fault) } }();'
    instances = text.split("func TestLimits_")[1:]
    assert len(instances) == len(plan.trials) + 3
    assert [instance.count(guard) for instance in instances] == [2] * len(instances), "test and subtest"
    parsed = parse_source("a_test.go", f"package a\n{text}".encode())
    assert parsed
    assert not parsed[1].has_error


@pytest.mark.parametrize(("by_assertion", "is_kept"), [(True, True), (False, False), (None, True)])
def test_a_value_of_which_gold_crashes_in_go_is_not_kept(by_assertion: bool | None, is_kept: bool) -> None:
    plan, test = plan_go_trials(), "a_test.go::TestLimits"
    outcome = Outcome(status=OutcomeStatus.FAILED, message="a_test.go:9: it differs", by_assertion=by_assertion)
    instance = TriedInstance(old="TestLimits", name="TestLimits_abcdef", outcomes={f"{test}_abcdef": outcome})
    builder = ControlBuilder(
        evaluator=cast(Evaluator, None),
        gold_patch=b"",
        required=frozenset({test}),
        others=frozenset(),
        test_files={},
        old_files={},
        random=Random(1),
    )
    candidate: Any = SimpleNamespace(file=plan.tried.file, tests=(test,), is_required=True)
    fails = builder._list_failures(candidate, instance, {}, ("assertion", "failed"))
    assert fails == ({test: "failed"} if is_kept else {})


def test_a_function_whose_parameters_are_no_tests_has_no_guard() -> None:
    file = parse_test_file("a_test.go", (GO_TEST % "12").encode())
    assert file is not None
    for name, n_guards in (("helper", 0), ("TestOfSuite", 0)):
        (block,) = (function for other, function in [*file.functions, *_name_blocks(file)] if other == name)
        assert len(guard_against_crashes(file, block)) == n_guards


def _name_blocks(file: TestFile) -> list[tuple[str, TestBlock]]:
    blocks = [block for block in find_blocks(file) if block.name_span]
    return [(file.source[slice(*block.name_span)].decode(), block) for block in blocks if block.name_span]


def test_an_instance_in_go_takes_a_compiler_as_long_as_its_text_is() -> None:
    plan = plan_go_trials()
    block = plan.tried.block
    assert plan.tried.compile_seconds == pytest.approx(0.008 * (block.end - block.start) / 1000)
    assert plan.cost == pytest.approx(len(plan.trials) * plan.tried.compile_seconds)


def test_few_values_of_many_tests_are_tried_where_all_together_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    for least in (10, 11):
        monkeypatch.setattr("evaluation.controls.controls.SPARING_TESTS", least)
        _, evaluator = build({FILE: make_sums(10)}, ADD, test_seconds=0.005, seconds=1.0)
        tried.append(count_instances_by_test(evaluator, 0))
    few, many = tried
    assert few.keys() == many.keys()
    assert sum(few.values()) < sum(many.values()), "of fewer tests the bound depends on the values of each"
    assert min(few.values()) > 2 * MIN_INSTANCES


def test_tests_that_the_agent_has_stand_few_times_where_others_count() -> None:
    sources = {FILE: make_sums(7)}
    # The agent's tree has the first two tests.
    controls, evaluator = build(sources, ADD, old={FILE: make_sums(2)})
    tried, drawn = (count_instances_by_test(evaluator, run) for run in (0, 1))
    assert {drawn[f"test_{word}"] for word in "ab"} == {MIN_INSTANCES}
    assert min(drawn[f"test_{word}"] for word in "cdefg") > MIN_INSTANCES, "the bound is of these"
    assert max(tried[f"test_{word}"] for word in "ab") < min(tried[f"test_{word}"] for word in "cdefg")
    assert len(controls.confirmed) == 7
    assert controls.document is not None
    assert blind.compute_bound(controls.document) <= 1 / 1000
    _, alone = build({FILE: make_sums(2)}, ADD, old={FILE: make_sums(2)})
    tried = count_instances_by_test(alone, 0)
    assert min(tried.values()) > 100, "where there is no other they count"


def test_no_instance_is_made_of_a_test_that_is_in_no_list() -> None:
    source = "def test_one():\n    assert add(1, 41) == 42\n\n\ndef test_bench():\n    assert add(20, 13) == 33\n"
    _, evaluator = build({FILE: source}, ADD, required=[f"{FILE}::test_one"])
    assert b"def test_bench_" in evaluator.drawn[0][FILE]
    _, evaluator = build({FILE: source}, ADD, required=[f"{FILE}::test_one"], unlisted=[f"{FILE}::test_bench"])
    assert b"def test_bench_" not in evaluator.drawn[0][FILE]


class CountingRandom(Random):
    """Counts its choices."""

    n_choices = 0

    def choice(self, seq: Any) -> Any:
        self.n_choices += 1
        return super().choice(seq)


class SamplingRandom(Random):
    """A random that counts its samples."""

    n_samples = 0

    def sample(self, *args: Any, **options: Any) -> Any:
        self.n_samples += 1
        return super().sample(*args, **options)


def test_orders_of_words_are_drawn_until_nothing_but_repetitions_comes() -> None:
    file = parse_test_file("test_a.py", b"def test_a():\n    assert f() == 'one two three'\n")
    assert file is not None
    nodes = [file.root]
    while not is_string(nodes[0]):
        nodes = [*nodes[0].named_children, *nodes[1:]]
    random = SamplingRandom(1)
    drawn = draw_alternatives(nodes[0], file.literals, file.literals, random)
    orders = {text for part in drawn for text in part.texts if sorted(text.split()) == ["one", "three", "two"]}
    assert len(orders) == 5
    assert random.n_samples < 200


@pytest.mark.parametrize("number", ["7", "12", "0x1f", "8.5", "100", "0b1", "2026"])
def test_numbers_are_drawn_until_nothing_but_repetitions_comes(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = parse_test_file("test_a.py", f"def test_a():\n    assert f() == {number}\n".encode())
    assert file is not None
    nodes = [file.root]
    while not is_number(nodes[0]):
        nodes = [*nodes[0].named_children, *nodes[1:]]
    texts, n_choices = [], []
    for repeats in (10, 1_000_000):
        monkeypatch.setattr("evaluation.controls.alternatives._REPEATS", repeats)
        random = CountingRandom(1)
        (drawn,) = draw_alternatives(nodes[0], file.literals, file.literals, random)
        texts.append(drawn.texts)
        n_choices.append(random.n_choices)
    assert texts[0] == texts[1]
    if number == "7":
        assert len(texts[0]) == 9
        assert n_choices == [0, 0], "each digit is taken once"
