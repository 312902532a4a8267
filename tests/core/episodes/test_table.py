"""Life of episodes in a table, whatever plays them: numbers, limits, expiry, concurrent requests, a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from core.episodes.errors import ConflictError, RefusedRequestError
from core.episodes.table import EpisodeLimits, EpisodeTable
from core.errors import Transient
from tests.core.episodes.counters import FAIL, CounterEpisode, CounterPlayer, CounterStore

Counters = EpisodeTable[CounterEpisode, int, int, int, int]


@contextmanager
def hold_a_step(player: CounterPlayer, table: Counters, name: str) -> Iterator[list[int]]:
    """Take an action in another thread, which waits inside until the block ends; yield its answers."""
    answers: list[int] = []
    player.may_go_on.clear()
    player.entered.clear()
    thread = threading.Thread(target=lambda: answers.append(table.step(name, 1)))
    thread.start()
    assert player.entered.wait(10)
    try:
        yield answers
    finally:
        player.may_go_on.set()
        thread.join()


def test_an_action_is_taken_once_by_its_number() -> None:
    table: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits())
    name = table.reset(5).id
    assert table.step(name, 1, 0) == 6
    assert table.step(name, 1, 0) == 6
    assert table.step(name, 1, 1) == 7
    assert table.step(name, 1) == 8
    assert table.step(name, 1, 0) == 6
    with pytest.raises(ConflictError):
        table.step(name, 1, 7)
    assert table.evaluate(name) == 8


def test_what_follows_the_end_is_decided_by_the_player() -> None:
    table: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits())
    name = table.reset(5).id
    table.step(name, 100, 0)
    assert table.step(name, 100, 0) == 105
    with pytest.raises(ConflictError, match="has ended"):
        table.step(name, 1)
    assert table.evaluate(name) == 105


def test_an_unknown_episode_is_refused_with_advice() -> None:
    table: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits(advice="begin one"))
    for request in (lambda: table.step("x", 1), lambda: table.evaluate("x"), lambda: table.close_episode("x")):
        with pytest.raises(RefusedRequestError, match="there is no episode x") as refused:
            request()
        assert (refused.value.status, refused.value.advice) == (404, "begin one")
    table.close_episode("x", missing_ok=True)


def test_a_named_episode_takes_the_place_of_another() -> None:
    player = CounterPlayer()
    table: Counters = EpisodeTable(player, EpisodeLimits())
    table.reset(1, "mine")
    table.reset(2, "mine")
    assert [episode.is_closed for episode in player.opened] == [True, False]
    assert table.evaluate("mine") == 2


def test_open_episodes_are_limited_and_ended_ones_do_not_count() -> None:
    table: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits(most_open=2))
    first = table.reset(0).id
    table.reset(0)
    with pytest.raises(RefusedRequestError, match="2 episodes are open") as refused:
        table.reset(0)
    assert refused.value.status == 429
    table.step(first, 100)
    assert table.count_open() == 1
    table.reset(0)
    table.close_episode(first)
    assert table.count_open() == 2


def test_idle_episodes_are_closed_and_ended_ones_above_the_limit_forgotten() -> None:
    player = CounterPlayer()
    table: Counters = EpisodeTable(player, EpisodeLimits(most_open=2, idle_seconds=0.3))
    for number in range(4):
        name = table.reset(100, f"ended-{number}").id
        table.touch(name)
    assert table.close_idle() == 2
    with pytest.raises(RefusedRequestError):
        table.evaluate("ended-0")
    assert table.evaluate("ended-3") == 100
    name = table.reset(0).id
    time.sleep(0.4)
    with hold_a_step(player, table, name):
        assert table.close_idle() == 2
    assert table.evaluate(name) == 1
    time.sleep(0.4)
    assert table.close_idle() == 1
    assert player.opened[-1].is_closed
    assert EpisodeTable(player, EpisodeLimits()).close_idle() == 0


def test_a_second_request_is_refused_or_waits() -> None:
    player = CounterPlayer()
    refusing: Counters = EpisodeTable(player, EpisodeLimits())
    name, other = refusing.reset(0).id, refusing.reset(0).id
    with hold_a_step(player, refusing, name):
        with pytest.raises(ConflictError, match="is busy with another request"):
            refusing.evaluate(name)
        assert refusing.evaluate(other) == 0
    waiting: Counters = EpisodeTable(player, EpisodeLimits(waits=True))
    name = waiting.reset(0).id
    with ThreadPoolExecutor(8) as threads:
        with hold_a_step(player, waiting, name) as answers:
            totals = [threads.submit(waiting.step, name, 1) for _ in range(8)]
            time.sleep(0.1)
            assert not answers
            assert not any(total.done() for total in totals)
        assert sorted(total.result() for total in totals) == list(range(2, 10))


def test_an_episode_whose_place_is_gone_is_an_outage_and_not_a_refusal() -> None:
    player = CounterPlayer()
    table: Counters = EpisodeTable(player, EpisodeLimits())
    name = table.reset(0).id
    player.opened[0].is_lost = True
    for request in (lambda: table.step(name, 1), lambda: table.touch(name)):
        with pytest.raises(Transient, match="is lost"):
            request()
    table.close_episode(name)
    assert player.opened[0].is_closed


def test_a_restarted_table_goes_on_from_its_store() -> None:
    store = CounterStore()
    first: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits(waits=True), store)
    name = first.reset(5).id
    first.step(name, 1, 0)
    second: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits(waits=True), store)
    assert second.step(name, 1, 0) == 6
    assert second.step(name, 1, 1) == 7
    assert store.records[name] == (7, (6, 7))
    with pytest.raises(RefusedRequestError, match="there is no episode x"):
        second.evaluate("x")
    assert not store.records.keys() - {name}


def test_what_a_failed_action_changed_is_read_again() -> None:
    store = CounterStore()
    table: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits(waits=True), store)
    name = table.reset(5).id
    with pytest.raises(Transient):
        table.step(name, FAIL, 0)
    assert table.step(name, 1, 0) == 6


def test_few_episodes_of_a_store_stay_in_memory() -> None:
    store = CounterStore()
    table: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits(waits=True, most_kept=2), store)
    names = [table.reset(number).id for number in range(3)]
    assert table.evaluate(names[2]) == 2
    assert store.n_loads == 0
    assert table.evaluate(names[0]) == 0
    assert store.n_loads == 1
    table.step(names[0], 100)
    assert table.evaluate(names[0]) == 100
    assert store.n_loads == 2, "an episode that has ended is not kept"


def test_requests_of_an_episode_that_is_read_from_the_store_follow_each_other() -> None:
    store = CounterStore()
    name = EpisodeTable(CounterPlayer(), EpisodeLimits(), store).reset(0).id
    for _ in range(20):
        store.records[name] = (0, ())
        table: Counters = EpisodeTable(CounterPlayer(), EpisodeLimits(waits=True, most_kept=1), store)
        with ThreadPoolExecutor(8) as threads:
            assert sorted(threads.map(table.step, [name] * 8, [1] * 8)) == list(range(1, 9))
