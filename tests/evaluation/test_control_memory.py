"""What the tasks of a tree share of their controls: which runs are saved, and that the controls stay the same."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from backends.git import GitRepository
from backends.overlay import open_patched_commit
from evaluation.controls import memory
from evaluation.controls.blocks import TestBlock, TestFile, find_blocks
from evaluation.controls.controls import BlindControls, ControlBuilder
from evaluation.controls.features import TreeCounter, TreeCounts, count_tree
from evaluation.controls.memory import ControlMemory
from evaluation.controls.sites import Site, list_sites
from evaluation.runner.evaluator import Evaluator
from guest.controls import blind
from guest.controls.texts import apply_edits
from tests.evaluation.process_evaluator import KilledRunError, ProcessEvaluator, run_file
from tests.helpers import TinyRepo

ADD, OTHER = "tests/test_add.py", "tests/test_other.py"
TESTS = """\
def test_one():
    assert add(1, 41) == 42


def test_two():
    assert add(20, 13) == 33


def test_three():
    assert add(30, 22) == 52


def test_four():
    assert add(30, 33) == 63
"""
SHARED = """\
class TestShared(TestCase):
    def test_total(self):
        if SOURCE.count("def " + "test_total") > 1:
            raise RuntimeError("the file was changed")
        self.assertEqual(add(2, 3), 5)
"""


@dataclass
class Tasks:
    """Tasks whose gold trees are the same, derived one after the other."""

    sources: Mapping[str, str]
    names: Mapping[str, object] = field(default_factory=lambda: {"add": lambda a, b: a + b})
    memory: ControlMemory = field(init=False)
    listed: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with a memory that knows nothing."""
        files = {path: text.encode() for path, text in self.sources.items()}
        self.listed = frozenset(test for path in files for test in run_file(path, files[path], self.names))
        self.memory = ControlMemory(
            seed="tree", read_tree=lambda _: TreeCounts(), read_file=files.get, listed=self.listed
        )

    def store(self, seed: str = "tree") -> None:
        """Begin with the results of the memory alone, as a later call does. `seed`: seed of the values."""
        stored = json.loads(json.dumps(self.memory.list_fields()))
        self.forget()
        self.memory.seed = seed
        self.memory.restore(stored)

    def build(
        self, *required: str, foreseen: Collection[frozenset[str]] = (), others: Collection[str] | None = None
    ) -> tuple[BlindControls, ProcessEvaluator]:
        """Build the controls of a task. `required`: tests that fail with its bug."""
        evaluator = ProcessEvaluator(self.names, {path: text.encode() for path, text in self.sources.items()})
        paths = {test.partition("::")[0] for test in required}
        builder = ControlBuilder(
            evaluator=cast(Evaluator, evaluator),
            gold_patch=b"",
            required=frozenset(required),
            others=frozenset(self.listed if others is None else others) - frozenset(required),
            test_files={path: self.sources[path].encode() for path in sorted(paths)},
            old_files={},
            seconds=1.0,
            random=Random(" ".join(required)),
            memory=self.memory,
            foreseen=foreseen,
        )
        return builder.build(), evaluator


def select_blocks(controls: BlindControls) -> list[Mapping[str, Any]]:
    """Return the blocks of the required tests."""
    assert controls.document is not None
    return [block for block in controls.document["blocks"] if block["required"]]


def count_names(content: bytes, name: str) -> int:
    """Return how many instances of a test a file has."""
    return content.count(f"def {name}_".encode())


def test_a_task_whose_values_were_tried_for_another_takes_the_run_of_a_grading_alone() -> None:
    tasks = Tasks({ADD: TESTS})
    test = f"{ADD}::test_one"
    _, first = tasks.build(test)
    again, second = tasks.build(test)
    assert (first.n_runs, second.n_runs) == (2, 1)
    assert again.confirmed == [test]


def test_what_was_tried_is_known_to_a_later_call() -> None:
    tasks = Tasks({ADD: TESTS, OTHER: SHARED})
    repeated, single = f"{ADD}::test_one", f"{OTHER}::TestShared::test_total"
    first = [tasks.build(test)[0] for test in (repeated, single)]
    tasks.memory.crowded.add("tests/test_spoilt.py")
    tasks.store()
    stored = json.dumps(tasks.memory.list_fields(), sort_keys=True)
    again = [tasks.build(test) for test in (repeated, single)]
    assert [evaluator.n_runs for _, evaluator in again] == [1, blind.FIRST_EVALUATIONS]
    assert [evaluator.n_series for _, evaluator in again] == [0, 0]
    assert [select_blocks(controls) for controls, _ in again] == [select_blocks(controls) for controls in first]
    assert tasks.memory.crowded == {"tests/test_spoilt.py"}
    assert json.dumps(tasks.memory.list_fields(), sort_keys=True) == stored, "what no task has asked for is kept, too"


def test_what_was_tried_in_another_tree_or_file_is_not_used() -> None:
    tasks = Tasks({ADD: TESTS})
    test = f"{ADD}::test_one"
    tasks.build(test)
    tasks.store(seed="another tree")
    assert tasks.build(test)[1].n_runs == 2
    tasks.memory.seed = "tree"
    tasks.store()
    tasks.sources = {ADD: f"{TESTS}# the end\n"}
    assert tasks.build(test)[1].n_runs == 2


def test_forms_that_were_tried_in_vain_are_not_tried_in_a_later_call() -> None:
    check = "self.assertEqual(add(2, 3), 5)"
    swallowed = f"try:\n            {check}\n        except AssertionError:\n            pass"
    tasks = Tasks({ADD: SHARED.replace(check, swallowed)})
    test = f"{ADD}::TestShared::test_total"
    first, evaluator = tasks.build(test)
    tasks.store()
    _, later = tasks.build(test)
    assert (first.document, later.n_runs) == (None, 0)
    assert evaluator.n_runs > 1


def test_controls_are_the_same_with_and_without_earlier_tasks() -> None:
    tasks = Tasks({ADD: TESTS, OTHER: TESTS.replace("test_", "test_other_")})
    required = [f"{ADD}::test_one", f"{ADD}::test_three"]
    tasks.build(f"{OTHER}::test_other_two")
    tasks.build(f"{ADD}::test_two")
    tasks.build(f"{ADD}::test_one", f"{ADD}::test_two")
    later, _ = tasks.build(*required)
    tasks.forget()
    alone, _ = tasks.build(*required)
    assert select_blocks(later) == select_blocks(alone)
    assert later.confirmed == alone.confirmed == sorted(required)


def test_only_values_that_no_task_has_tried_are_run() -> None:
    tasks = Tasks({ADD: TESTS})
    tasks.build(f"{ADD}::test_one", others=())
    _, evaluator = tasks.build(f"{ADD}::test_one", f"{ADD}::test_two", others=())
    assert evaluator.n_runs == 2
    trial = evaluator.drawn[0][ADD]
    assert count_names(trial, "test_one") == 0
    assert count_names(trial, "test_two") > 20


def test_values_of_further_tasks_are_tried_in_the_same_run() -> None:
    tasks = Tasks({ADD: TESTS, OTHER: TESTS.replace("test_", "test_other_")})
    further = [frozenset({f"{ADD}::test_two", f"{OTHER}::test_other_one"}), frozenset({f"{OTHER}::test_other_four"})]
    _, first = tasks.build(f"{ADD}::test_one", foreseen=further)
    assert first.n_runs == 2
    assert first.drawn[1].keys() == {ADD}, "a grading has the files of its task"
    for failing in further:
        controls, evaluator = tasks.build(*failing)
        assert evaluator.n_runs == 1
        assert set(controls.confirmed) == failing


def test_a_run_that_values_of_further_tasks_spoil_is_repeated_without_them() -> None:
    def kill() -> int:
        raise KilledRunError

    text = TESTS.replace("test_", "test_other_") + "\n\ndef test_other_five():\n    assert limit(5) == 5\n"
    tasks = Tasks({ADD: TESTS, OTHER: text}, {"add": lambda a, b: a + b, "limit": lambda n: n if n == 5 else kill()})
    further = [frozenset({f"{OTHER}::test_other_five"})]
    controls, evaluator = tasks.build(f"{ADD}::test_one", foreseen=further)
    if evaluator.n_runs == 2:
        pytest.fail("no value of the further task was tried")
    assert evaluator.n_runs == 3
    assert controls.confirmed == [f"{ADD}::test_one"]
    _, later = tasks.build(f"{ADD}::test_two", foreseen=further)
    assert later.n_runs == 2, "they are not tried once more"


def test_a_value_with_which_a_file_cannot_be_loaded_shows_nothing_of_the_others_there() -> None:
    """It is one of a table, which is made when the file is loaded."""

    def limit(number: int) -> int:
        if number != 5:
            raise ValueError(number)
        return number

    table = '\n\n@pytest.mark.parametrize("v", [limit(5)])\ndef test_other_five(v):\n    assert is_five(v)\n'
    names = {"add": lambda a, b: a + b, "limit": limit, "is_five": lambda number: number == 5}
    tasks = Tasks({ADD: TESTS, OTHER: TESTS.replace("test_", "test_other_") + table}, names)
    further = [frozenset({f"{OTHER}::test_other_five[5]"}), frozenset({f"{OTHER}::test_other_one"})]
    _, first = tasks.build(f"{ADD}::test_one", foreseen=further)
    assert "limit(5)" in first.drawn[0][OTHER].decode()
    assert (first.n_runs, tasks.memory.crowded) == (2, {OTHER}), "its own tests lie in another file"
    controls, _ = tasks.build(f"{OTHER}::test_other_one", foreseen=further, others=())
    assert controls.confirmed == [f"{OTHER}::test_other_one"]
    assert "menus" in select_blocks(controls)[0], "a run of its own shows its values"


def test_a_value_that_cannot_be_parsed_in_its_place_is_not_tried() -> None:
    path, source = "test/a.test.js", b"""it("has no keys", () => {\n  expect({}.x).toEqual({});\n});\n"""
    memory = ControlMemory(seed="tree", read_tree=lambda _: TreeCounts())
    file = memory.parse(path, source)
    assert file is not None
    (block,) = find_blocks(file)
    tried = memory.find_block(file, block, frozenset())
    assert tried is not None
    member = source.index(b"{}.x")
    drawn = {text for site in tried.sites for text in site.texts if (member, member + 2) in site.spans}
    assert "0" in drawn, "as an empty value, which has no members"
    trials = tried.choose_trials(32, 800)
    assert trials
    for trial in trials:
        parsed = memory.parse(path, apply_edits(source, trial.make_variant([]).edits))
        assert parsed is not None
        assert not parsed.root.has_error, trial.text


def test_the_sample_of_other_tests_needs_no_run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Tasks({ADD: TESTS})
    monkeypatch.setattr("evaluation.controls.controls.MAX_OTHER_BLOCKS", 0)
    tasks.build(f"{ADD}::test_one", f"{ADD}::test_two", others=())
    monkeypatch.setattr("evaluation.controls.controls.MAX_OTHER_BLOCKS", 1)
    controls, evaluator = tasks.build(f"{ADD}::test_two")
    assert evaluator.n_runs == 1
    assert controls.document is not None
    others = [block["tests"] for block in controls.document["blocks"] if not block["required"]]
    assert others == [[f"{ADD}::test_one"]]


def test_of_the_other_tests_of_a_file_few_are_searched_for_values(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def list_searched(file: TestFile, block: TestBlock, *arguments: Any) -> list[Site]:
        searched.append(block.start)
        return list_sites(file, block, *arguments)

    monkeypatch.setattr(memory, "list_sites", list_searched)
    tests = "\n\n".join(
        f"def test_{number}():\n    assert add({number}, 41) == {number + 41}\n" for number in range(30, 60)
    )
    tasks = Tasks({ADD: tests})
    controls, _ = tasks.build(f"{ADD}::test_42")
    assert controls.document is not None
    assert len(controls.document["blocks"]) == len(searched) == 9


def test_a_test_of_a_file_that_was_not_run_may_inherit_another() -> None:
    base = "class TestBase(TestCase):\n    def test_sum(self):\n        self.assertEqual(add(10, 13), 23)\n"
    tasks = Tasks({ADD: base, OTHER: base})
    tasks.build(f"{ADD}::TestBase::test_sum")
    _, alone = tasks.build(f"{ADD}::TestBase::test_sum")
    _, both = tasks.build(f"{ADD}::TestBase::test_sum", f"{OTHER}::TestBase::test_sum")
    assert (alone.n_runs, both.n_runs) == (1, 2)
    assert both.drawn[0].keys() == {ADD, OTHER}


def test_forms_of_tests_that_stand_once_are_confirmed_for_the_first_task() -> None:
    tasks = Tasks({ADD: SHARED, OTHER: SHARED.replace("Shared", "Other")})
    first, second = f"{ADD}::TestShared::test_total", f"{OTHER}::TestOther::test_total"
    _, evaluator = tasks.build(first, foreseen=[frozenset({second})])
    n_gradings = blind.FIRST_EVALUATIONS
    assert evaluator.n_series == 1
    assert evaluator.n_runs <= 2 + n_gradings
    assert not tasks.memory.crowded
    for test in (first, second):
        controls, later = tasks.build(test)
        assert (later.n_runs, later.n_series) == (n_gradings, 0)
        (block,) = select_blocks(controls)
        assert {tuple(form["fails"]) for form in block["forms"]} == {(test,)}


def test_forms_are_confirmed_in_runs_of_their_own_where_one_disturbs_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessEvaluator, "run_series", lambda *_, **__: None)
    tasks = Tasks({ADD: SHARED, OTHER: SHARED.replace("Shared", "Other")})
    first, second = f"{ADD}::TestShared::test_total", f"{OTHER}::TestOther::test_total"
    controls, evaluator = tasks.build(first, foreseen=[frozenset({second})])
    assert evaluator.n_runs > 2 + blind.FIRST_EVALUATIONS
    assert controls.confirmed == [first]


def test_a_form_names_no_test_that_the_task_does_not_list() -> None:
    cases = SHARED.replace("5)", "5)\n\n\nclass TestMore(TestShared):\n    pass")
    tasks = Tasks({ADD: cases})
    tests = [f"{ADD}::TestShared::test_total", f"{ADD}::TestMore::test_total"]
    both, _ = tasks.build(*tests)
    controls, evaluator = tasks.build(tests[0], others=())
    assert evaluator.n_runs == blind.FIRST_EVALUATIONS
    for document, listed in ((both, tests), (controls, tests[:1])):
        (block,) = select_blocks(document)
        assert {test for form in block["forms"] for test in form["fails"]} == set(listed)


def test_names_of_instances_are_drawn_for_each_run() -> None:
    tasks = Tasks({ADD: TESTS})
    words = []
    for _ in range(2):
        _, evaluator = tasks.build(f"{ADD}::test_one")
        words.append(set(re.findall("test_one_([a-z]+)", evaluator.drawn[-1][ADD].decode())))
    assert words[0].isdisjoint(words[1])


@pytest.mark.parametrize("limit", [400, 2])
def test_a_tree_is_counted_from_one_that_differs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("evaluation.controls.features._MAX_TREE_FILES", limit)
    repo = TinyRepo(tmp_path / "repo")
    files = {"a.py": "word = 1\n", "b.py": "word = other\n", "c.py": "third = word\n", "tests/test_a.py": "word\n"}
    files |= {"README.md": "a page of words\n", "a.png": "no\0text\n"}
    base = repo.commit("Start", files)
    repository, counter = GitRepository(repo.path), TreeCounter()
    counter.count(repository, base)
    patch = b"""\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-word = 1
+word = 2 + other
diff --git a/b.py b/b.py
deleted file mode 100644
--- a/b.py
+++ /dev/null
@@ -1 +0,0 @@
-word = other
"""
    with open_patched_commit(repository, base, patch) as (overlay, commit):
        assert counter.count(overlay, commit) == count_tree(overlay, commit)
    without = counter.count(repository, base, without="b.py")
    assert without.tokens.get("other") is None
    assert without.tokens["word"] == (3 if limit > 2 else 2)
    assert (without.lines.get(b"a page of words"), without.tokens.get("text")) == (1 if limit > 2 else None, None)
