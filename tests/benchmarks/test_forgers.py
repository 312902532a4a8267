"""Readers of tests are paid as often as they choose right, and the benchmark fails where no bound explains that."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks.forgers.__main__ import (
    LEARNED,
    KnownTree,
    ReaderCounts,
    ReadTask,
    find_word,
    grade_readers,
    read_tests,
    render_table,
)
from benchmarks.forgers.__main__ import measure as measure_tasks
from benchmarks.forgers.readers import READERS
from evaluation.controls.blocks import count_trigrams
from guest.controls import blind
from guest.controls.choices import PASSES
from tests.evaluation.test_choices import FILE, make_document

NO_TREE = KnownTree(tokens={}, trigrams={}, lines=frozenset())
GRADINGS = 300


def make_given_away(**block: Any) -> dict[str, Any]:
    """Return a document whose other values are all larger than the true ones."""
    document = make_document()
    for number, texts in enumerate((["31", "52", "73", "84"], ["41", "62", "93", "87"])):
        site = document["blocks"][number]["sites"][0]
        site["values"] = [{"text": text, "fails": site["values"][0]["fails"]} for text in texts]
        document["blocks"][number].update(block)
    return document


def measure(document: dict[str, Any]) -> dict[str, ReaderCounts]:
    counts = {name: ReaderCounts() for name in READERS}
    bound, random = blind.compute_bound(document), Random(1)
    for _ in range(GRADINGS):
        for name, is_paid in grade_readers(document, NO_TREE, READERS, counts, random).items():
            counts[name].gradings += 1
            counts[name].paid += is_paid
            counts[name].allowed += bound
    return counts


def test_the_instances_of_a_drawn_file_are_read_as_those_of_its_tests() -> None:
    (evaluation,) = blind.draw_evaluations(make_document(), Random(1))
    tests = read_tests(FILE, evaluation.files[FILE], NO_TREE).values()
    assert [(test.name, len(test.names)) for test in tests] == [("test_one", 4), ("test_two", 4)]
    values = [{token for value in test.values for token in value} for test in tests]
    assert "2" in values[0]
    assert "4" in values[1]


def test_readers_of_values_without_features_are_right_by_chance() -> None:
    counts = measure(make_document())
    for name in ("guesses", "majority of texts", "majority at each place", "first instance", "first name"):
        count = counts[name]
        assert count.choices == 2 * GRADINGS
        assert count.is_within_bounds(), (name, count)
        assert 0.15 < count.right / count.choices < 0.35


@pytest.mark.parametrize(("odds", "is_within"), [({}, False), ({"odds": 1.0}, True)])
def test_a_test_that_gives_its_value_away_is_within_the_bounds_only_if_its_odds_say_so(
    odds: dict[str, float], is_within: bool
) -> None:
    counts = measure(make_given_away(**odds))
    count = counts["smallest number"]
    assert count.paid == count.gradings == GRADINGS
    assert count.is_within_bounds() is is_within
    assert counts["guesses"].is_within_bounds()
    assert f"| smallest number | {GRADINGS} of {GRADINGS} |" in render_table(counts)


def test_a_preference_of_its_own_is_paid_more_often_than_guesses_in_two_evaluations() -> None:
    """What a submission takes for true in the first evaluation it takes for true in the second."""
    document = {**make_document(), "evaluations": 2}
    counts = measure(document)["preference of its own"]
    assert blind.compute_guess_bound(document) == 1 / 256
    assert counts.paid / counts.gradings > 3 / 256
    assert counts.is_within_bounds()


def test_a_reader_takes_the_text_whose_characters_are_usual_in_the_tree() -> None:
    document = make_document()
    text = document["files"][FILE]
    tree = replace(NO_TREE, trigrams=count_trigrams([text.encode()] * 3))
    (evaluation,) = blind.draw_evaluations(document, Random(1))
    true = {test.rpartition("_")[2] for test, outcome in evaluation.expected.items() if outcome == PASSES}
    for test in read_tests(FILE, evaluation.files[FILE], tree).values():
        scores = READERS["most usual characters"](test)
        assert test.names[scores.index(max(scores))] in true


def test_an_instance_is_known_by_its_word_where_its_id_has_another_value() -> None:
    word = find_word("test_a.py::test_one_abcdef[7-a orange]", "test_a.py::test_one[3-a yellow]")
    assert word == "abcdef"


@pytest.mark.parametrize(("paid", "is_false"), [(5, False), (12, True)])
def test_a_task_whose_bound_is_false_is_named_though_the_sums_allow_it(paid: int, is_false: bool) -> None:
    counts = ReaderCounts(gradings=1100, paid=900 + paid, allowed=901.0, tasks={"weak": 900, "false": paid})
    counts.bounds = {"weak": (1000, 0.9), "false": (100, 0.01)}
    assert counts.is_within_bounds()
    lines = counts.list_false_bounds(len(READERS))
    assert lines == (["false: paid in 12 of 100 gradings, its bound is 0.01"] if is_false else [])


def test_a_reader_learns_from_other_projects_only() -> None:
    """The true values of one kind of project are smaller than all others, and those of the other larger."""
    smallest, largest = make_given_away(), make_given_away()
    for block in largest["blocks"]:
        for value in block["sites"][0]["values"]:
            value["text"] = value["text"][0].replace("0", "1")
            block["sites"][0]["values"] = [{**value, "text": text} for text in ("-7", "-8", "-9", "-6")]
    tasks = [
        ReadTask(name=f"{project}-{number}", project=project, document=document, tree=NO_TREE)
        for number, (project, document) in enumerate(
            [("a", smallest), ("b", smallest), ("c", smallest), ("d", largest)]
        )
    ]
    paid = measure_tasks(tasks, 40)[LEARNED].tasks
    assert [paid.get(task.name, 0) > 30 for task in tasks] == [True, True, True, False]


def test_no_reader_learns_where_there_is_one_project() -> None:
    task = ReadTask(name="a-1", project="a", document=make_given_away(), tree=NO_TREE)
    assert measure_tasks([task], 5)[LEARNED].gradings == 0
