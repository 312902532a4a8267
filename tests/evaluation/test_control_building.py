"""Building controls: which values and blocks the runs of the gold patch leave, by an evaluator in this process."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluation.controls.controls import BlindControls, ControlBuilder
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from guest.controls import blind
from guest.controls.choices import count_instances

FILE = "tests/test_add.py"


def run_file(path: str, content: bytes, names: Mapping[str, object]) -> dict[str, Outcome]:
    """Return test id -> outcome of a file of pytest functions and unittest classes."""
    space: dict[str, Any] = {**names, "TestCase": unittest.TestCase, "SOURCE": content.decode()}
    exec(compile(content, path, "exec"), space)  # noqa: S102 - our own text
    outcomes = {}
    for name, value in list(space.items()):
        tests: dict[str, Callable[[], object]] = {name: value} if name.startswith("test_") else {}
        if isinstance(value, type) and name.startswith("Test") and value is not unittest.TestCase:
            tests = {f"{name}::{key}": getattr(value(key), key) for key in dir(value) if key.startswith("test_")}
        for key, test in tests.items():
            try:
                test()
                outcome = Outcome(status=OutcomeStatus.PASSED)
            except AssertionError as error:
                outcome = Outcome(status=OutcomeStatus.FAILED, message=f"AssertionError: {error}")
            except Exception as error:  # noqa: BLE001 - as a test runner does
                outcome = Outcome(status=OutcomeStatus.FAILED, message=f"{type(error).__name__}: {error}")
            outcomes[f"{path}::{key}"] = outcome
    return outcomes


@dataclass
class ProcessEvaluator:
    """Runs tests in this process, with the functions of the gold patch."""

    names: Mapping[str, object]
    n_runs: int = 0
    drawn: list[Mapping[str, bytes]] = field(default_factory=list)

    def run(self, *_: object, test_files: Mapping[str, bytes], **__: object) -> EvaluationRun:
        self.n_runs += 1
        self.drawn.append(test_files)
        outcomes: dict[str, Outcome] = {}
        for path, content in test_files.items():
            outcomes |= run_file(path, content, self.names)
        report = EvaluationReport(outcomes=outcomes, uncollected={})
        return cast(EvaluationRun, SimpleNamespace(report=report, result=SimpleNamespace(report=report), record=None))


def build(
    sources: Mapping[str, str],
    names: Mapping[str, object],
    *,
    required: Sequence[str] | None = None,
    tree: Mapping[str, int] | None = None,
) -> tuple[BlindControls, ProcessEvaluator]:
    """Build the controls of test files whose tests are all listed, and by default all required."""
    files = {path: text.encode() for path, text in sources.items()}
    evaluator = ProcessEvaluator(names)
    listed = {test for path, content in files.items() for test in run_file(path, content, names)}
    wanted = frozenset(required if required is not None else listed)
    builder = ControlBuilder(
        evaluator=cast(Evaluator, evaluator),
        gold_patch=b"",
        required=wanted,
        others=frozenset(listed) - wanted,
        test_files=files,
        old_files={},
        random=Random(1),
        tree=tree or {},
    )
    return builder.build(), evaluator


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
    source = "def test_one():\n    assert add(1, 41) == 42\n\n\ndef test_two():\n    assert add(20, 13) == 33\n"
    controls, evaluator = build({FILE: source}, ADD)
    assert evaluator.n_runs == 2
    assert controls.document is not None
    assert [count_instances(block) for block in controls.document["blocks"]] == [32, 32]
    assert controls.document["evaluations"] == 1


def test_a_test_that_its_instances_disturb_leaves_those_of_other_tests() -> None:
    source = (
        "calls = []\n\n\n"
        "def test_one():\n    assert add(1, 11) == 12\n\n\n"
        "def test_two():\n    assert add(20, 13) == 33\n\n\n"
        # It passes where all values are tried, and not in a draw of them.
        "def test_state():\n    number = SOURCE.count('def ' + 'test_state')\n"
        "    if 1 < number < 14:\n        raise RuntimeError(number)\n    assert add(200, 10) == 210\n"
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


@pytest.mark.parametrize(("tree", "least", "most"), [((), 0.98, 1.0), (TREE, 0.0, 0.6)])
def test_words_of_the_tree_hide_a_word_that_stands_once(tree: Sequence[str], least: float, most: float) -> None:
    source = "".join(f"def test_{fruit}():\n    assert name({n}) == '{fruit}'\n\n\n" for n, fruit in enumerate(FRUITS))
    controls, _ = build(
        {FILE: source},
        {"name": lambda number: FRUITS[number]},
        required=[f"{FILE}::test_pear"],
        tree=dict.fromkeys(tree, 1),
    )
    assert controls.document is not None
    (odds,) = [block["odds"] for block in controls.document["blocks"] if block["required"]]
    assert least <= odds <= most


def test_gold_passes_what_is_drawn() -> None:
    source = "def test_one():\n    assert add(1, 41) == 42\n\n\ndef test_two():\n    assert add(20, 13) == 33\n"
    controls, evaluator = build({FILE: source}, ADD)
    assert controls.document is not None
    judgement = blind.Judgement(controls.required)
    for evaluation in blind.draw_evaluations(controls.document, Random(3)):
        report = evaluator.run(test_files=evaluation.files).report
        judgement.add(evaluation, report.list_results())
    assert judgement.is_right
