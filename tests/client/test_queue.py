"""The queue of rollouts: order, window, failures, threads and event loops."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable

import pytest
from mergemill_client.queue import QueueClosedError, WindowedQueue


def make_queue(capacity: int, window: int | None = None, *, submitted: int = 0) -> WindowedQueue[str]:
    queue: WindowedQueue[str] = WindowedQueue(capacity, window)
    for _ in range(submitted):
        queue.submit(timeout=0)
    return queue


def take_all(queue: WindowedQueue[str]) -> list[int]:
    taken = []
    while True:
        try:
            taken.append(queue.take(timeout=0)[0])
        except TimeoutError:
            return taken


def finish(queue: WindowedQueue[str], *positions: int) -> None:
    for position in positions:
        assert queue.finish(position, f"rollout {position}")


def test_rollouts_are_taken_in_the_order_in_which_they_are_done() -> None:
    queue = make_queue(10, 4, submitted=4)
    finish(queue, 2, 0, 3)
    assert queue.take() == (2, "rollout 2")
    assert take_all(queue) == [0, 3]


def test_a_rollout_behind_the_window_waits_until_the_head_is_taken() -> None:
    queue = make_queue(10, 3, submitted=8)
    finish(queue, 7, 4, 3, 2, 1)
    assert take_all(queue) == [2, 1]
    assert queue.head == 0
    finish(queue, 0)
    assert queue.take(timeout=0)[0] == 0
    assert queue.head == 3
    assert take_all(queue) == [4, 3, 7]  # 7 was done first, and is in the window from 5 on
    assert queue.head == 5


def test_the_window_is_three_tenths_of_the_capacity() -> None:
    assert [WindowedQueue(capacity).window for capacity in (1, 10, 11, 1000)] == [1, 3, 4, 300]


def test_a_window_of_1_is_strict_order() -> None:
    queue = make_queue(5, 1, submitted=5)
    finish(queue, 4, 3, 2, 1)
    assert take_all(queue) == []
    finish(queue, 0)
    assert take_all(queue) == [0, 1, 2, 3, 4]


def test_before_a_rollout_at_most_w_minus_1_later_ones_are_taken() -> None:
    reached = 0
    for seed in range(100):
        generator = random.Random(seed)
        window = generator.randint(1, 12)
        queue = make_queue(20, window)
        running: list[int] = []
        taken: list[int] = []
        for _ in range(400):
            while len(queue) < 20:
                running.append(queue.submit(timeout=0))
            slow = [number for number in running if number % 17 == 0 and generator.random() < 0.97]
            ready = [number for number in running if number not in slow]
            for position in generator.sample(ready, min(len(ready), 3)):
                running.remove(position)
                if generator.random() < 0.1:
                    assert queue.drop(position)
                else:
                    finish(queue, position)
            taken += take_all(queue)
        overtaken = [sum(later > earlier for later in taken[:index]) for index, earlier in enumerate(taken)]
        assert max(overtaken) <= window - 1
        assert len(set(taken)) == len(taken) > 50
        reached += max(overtaken) == window - 1
    assert reached > 90


def test_a_full_queue_takes_no_rollout_until_one_is_taken_or_dropped() -> None:
    queue = make_queue(2, submitted=2)
    with pytest.raises(TimeoutError):
        queue.submit(timeout=0)
    finish(queue, 0)
    with pytest.raises(TimeoutError):
        queue.submit(timeout=0)
    queue.take()
    assert queue.submit(timeout=0) == 2
    assert queue.drop(1)
    assert queue.submit(timeout=0) == 3
    assert len(queue) == 2


def test_a_failed_rollout_that_is_dropped_holds_nothing_up() -> None:
    queue = make_queue(10, 2, submitted=5)
    finish(queue, 2, 3)
    assert take_all(queue) == []
    assert queue.drop(1)
    assert queue.drop(0)
    assert take_all(queue) == [2, 3]


def test_a_replaced_rollout_keeps_its_position() -> None:
    queue = make_queue(10, 2, submitted=3)
    finish(queue, 1, 2)
    assert take_all(queue) == [1]
    assert queue.finish(0, "second run")
    assert queue.take() == (0, "second run")


def test_results_that_nobody_awaits_are_dropped() -> None:
    queue = make_queue(10, submitted=2)
    finish(queue, 0)
    assert not queue.finish(0, "twice")
    assert not queue.drop(0)
    assert queue.take() == (0, "rollout 0")
    assert not queue.finish(0, "late")
    assert queue.drop(1)
    assert not queue.finish(1, "late")
    assert take_all(queue) == []
    for action in (queue.drop, lambda position: queue.finish(position, "never submitted")):
        for position in (2, -1):
            with pytest.raises(LookupError, match=f"position {position}"):
                action(position)


def test_a_closed_queue_ends_when_everything_is_taken() -> None:
    queue = make_queue(10, submitted=3)
    finish(queue, 1)
    queue.close()
    with pytest.raises(QueueClosedError):
        queue.submit()
    taken = iter(queue)
    assert next(taken)[0] == 1
    with pytest.raises(TimeoutError):
        queue.take(timeout=0)
    finish(queue, 0)
    queue.drop(2)
    assert [position for position, _ in taken] == [0]
    with pytest.raises(QueueClosedError):
        queue.take()


@pytest.mark.parametrize(("capacity", "window"), [(0, None), (3, 0), (-1, 1)])
def test_a_queue_without_room_is_refused(capacity: int, window: int | None) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        WindowedQueue(capacity, window)


def run_threads(*targets: Callable[[], None]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_threads_share_a_queue() -> None:
    queue = make_queue(20)
    taken: list[tuple[int, str]] = []
    submitting = threading.Semaphore(600)

    def work() -> None:
        while submitting.acquire(blocking=False):
            position = queue.submit()
            if position % 50:
                queue.finish(position, f"rollout {position}")
            else:
                queue.drop(position)

    def train() -> None:
        taken.extend(queue)

    def supervise() -> None:
        run_threads(*[work] * 8)
        queue.close()

    run_threads(supervise, train, train)
    assert sorted(taken) == [(number, f"rollout {number}") for number in range(600) if number % 50]
    assert len(queue) == 0


def test_closing_ends_the_wait_of_every_thread() -> None:
    queue = make_queue(5)
    started = threading.Barrier(4)

    def wait() -> None:
        started.wait()
        with pytest.raises(QueueClosedError):
            queue.take()

    def close() -> None:
        started.wait()
        time.sleep(0.05)  # until the others wait, most likely
        queue.close()

    run_threads(wait, wait, wait, close)


def test_taking_a_rollout_ends_the_wait_for_room() -> None:
    queue = make_queue(1, submitted=1)
    finish(queue, 0)
    started = threading.Barrier(2)

    def submit() -> None:
        started.wait()
        assert queue.submit() == 1

    def take() -> None:
        started.wait()
        time.sleep(0.05)  # until the other waits, most likely
        queue.take()

    run_threads(submit, take)


def test_an_event_loop_waits_for_results_of_threads_and_for_room() -> None:
    queue = make_queue(1)

    async def produce() -> None:
        for number in range(50):
            position = await queue.submit_async()
            assert position == number
            await asyncio.to_thread(queue.finish, position, f"rollout {position}")
        queue.close()

    async def run() -> list[int]:
        producing = asyncio.create_task(produce())
        taken = [position async for position, _ in queue]
        await producing
        return taken

    assert asyncio.run(asyncio.wait_for(run(), 60)) == list(range(50))


def test_a_cancelled_take_loses_no_rollout() -> None:
    queue = make_queue(5, submitted=2)

    problems = []

    async def run() -> list[tuple[int, str]]:
        asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
        waiting = [asyncio.create_task(queue.take_async()) for _ in range(3)]
        await asyncio.sleep(0)
        finish(queue, 0)
        waiting[0].cancel()
        finish(queue, 1)
        return sorted([await waiting[1], await waiting[2]])

    assert asyncio.run(asyncio.wait_for(run(), 60)) == [(0, "rollout 0"), (1, "rollout 1")]
    assert not problems


def test_a_loop_that_has_ended_does_not_disturb_the_queue() -> None:
    queue = make_queue(5, submitted=1)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.take_async(), 0.01)

    asyncio.run(give_up())
    finish(queue, 0)
    assert queue.take() == (0, "rollout 0")


def test_a_window_without_a_bound_is_greedy() -> None:
    queue = make_queue(3, 10**9)
    for position in range(60):
        assert queue.submit(timeout=0) == position
        if position:
            finish(queue, position)
            assert queue.take(timeout=0)[0] == position
    assert queue.head == 0
    assert len(queue) == 1
