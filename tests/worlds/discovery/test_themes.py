"""The choice of themes: labels, least values, clusters."""

from __future__ import annotations

import math
from typing import Any

import pytest

from core.config import Settings
from core.settings.worlds import WorldsSettings
from worlds.discovery.seed_tasks import SeedTask
from worlds.discovery.themes import ThemeDraft, choose_themes, find_nearest
from worlds.reasons import Reason


def make_theme(label: str, usefulness: int = 8, modelability: int = 8) -> ThemeDraft:
    seed = SeedTask(text=f"Do something with {label} {usefulness} {modelability}.", source="x")
    return ThemeDraft(label=label, description="It.", usefulness=usefulness, modelability=modelability, seed=seed)


def make_options(**changes: Any) -> WorldsSettings:
    return Settings(**changes).worlds


def refuse(_: Any) -> Any:
    raise AssertionError("no embeddings are needed")


def test_the_published_values_are_the_defaults() -> None:
    options = make_options()
    assert (options.min_usefulness, options.min_modelability, options.draw) == (7, 7, 42)
    assert (options.embedding_model, options.attempts) == ("text-embedding-3-large", 3)
    assert (options.rounds, options.calls_per_tool, options.min_score) == (100, 10, 0.85)
    assert (options.checker_temperature, options.verdict_attempts) == (0.0, 5)
    assert (options.test_states, options.test_state_temperature) == (1, 0.5)
    assert (options.states, options.state_temperature, options.min_task_words, options.check_attempts) == (
        50,
        0.7,
        50,
        5,
    )
    assert (options.gate_calls, options.min_changes, options.min_noticed, options.max_steps) == (200, 0.6, 0.7, 40)


def test_of_one_label_the_best_stays_by_modelability_first() -> None:
    themes = [
        make_theme("Library", 10, 7),
        make_theme("library", 7, 9),
        make_theme("LIBRARY", 8, 9),
        make_theme("x", 8, 9),
    ]
    chosen, rejected = choose_themes(themes, make_options(), refuse)
    assert chosen == [themes[2], themes[3]]
    assert [(rejection.theme, rejection.reason, rejection.detail) for rejection in rejected] == [
        (themes[0], Reason.SAME_LABEL, "library"),
        (themes[1], Reason.SAME_LABEL, "LIBRARY"),
    ]


def test_equal_themes_of_one_label_leave_the_first() -> None:
    themes = [make_theme("a"), make_theme("A")]
    chosen, rejected = choose_themes(themes, make_options(), refuse)
    assert (chosen, [rejection.theme for rejection in rejected]) == ([themes[0]], [themes[1]])


def test_both_values_must_reach_their_least() -> None:
    themes = [make_theme("a", 7, 7), make_theme("b", 6, 10), make_theme("c", 10, 6), make_theme("d", 6, 6)]
    chosen, rejected = choose_themes(themes, make_options(), refuse)
    assert chosen == [themes[0]]
    assert [rejection.reason for rejection in rejected] == [
        Reason.LOW_USEFULNESS,
        Reason.LOW_MODELABILITY,
        Reason.LOW_MODELABILITY,
    ]
    assert len(choose_themes(themes, make_options(worlds_min_usefulness=1, worlds_min_modelability=1), refuse)[0]) == 4


def embed(texts: list[str]) -> list[list[float]]:
    """Vectors of labels such as `b2`: the letter is the cluster, number 0 its centre."""
    vectors = []
    for text in texts:
        angle = 2 * math.pi * int(text[1]) / 3
        offset = [math.cos(angle), math.sin(angle)] if text[1] != "0" else [0.0, 0.0]
        vectors.append([20.0 * (ord(text[0]) - ord("a")), *offset])
    return vectors


def test_of_each_cluster_the_theme_nearest_to_the_centre_stays_in_any_order() -> None:
    themes = [make_theme(f"{letter}{number}") for letter in "abc" for number in (3, 1, 0, 2)]
    options = make_options(worlds_themes=3)
    chosen, rejected = choose_themes(themes, options, embed)
    assert [theme.label for theme in chosen] == ["a0", "b0", "c0"]
    assert {(rejection.theme.label, rejection.detail) for rejection in rejected} == {
        (f"{a}{n}", f"{a}0") for a in "abc" for n in "123"
    }
    assert {rejection.reason for rejection in rejected} == {Reason.SIMILAR_THEME}
    again, _ = choose_themes(themes[::-1], options, embed)
    assert again == chosen
    assert len(choose_themes(themes, make_options(worlds_themes=12), refuse)[0]) == 12


def test_equal_vectors_are_fewer_clusters_without_a_warning() -> None:
    assert find_nearest([[1.0, 0.0]] * 4 + [[0.0, 1.0]], 3, 42) == [0, 0, 0, 0, 4]


@pytest.mark.parametrize("label", ["a", "b"])
def test_the_id_of_a_theme_is_its_content(label: str) -> None:
    assert make_theme(label).id == make_theme(label).id
    assert make_theme(label).id != make_theme("c").id
