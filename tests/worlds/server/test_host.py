"""The host of worlds: one container, loaded worlds, another container after its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from backends.sandbox.docker import DockerSandbox
from core.errors import Transient
from tests.worlds.conftest import LIMITS
from tests.worlds.programs import STATE, make_world
from worlds.server.host import WorldHost
from worlds.server.service import ServedWorld, WorldServer, open_world_server


@contextlib.contextmanager
def open_nothing() -> Iterator[WorldServer]:
    raise Transient("no engine answers")
    yield


def test_a_container_that_does_not_start_is_tried_again_by_the_next_call() -> None:
    with WorldHost(open_nothing) as host:
        for _ in range(2):
            with pytest.raises(Transient, match="no engine answers"):
                host.find(make_world())
        assert (host.is_running, host.n_started) == (False, 0)


def open_until_it_fails(world: ServedWorld) -> None:
    while True:
        world.open_episode(STATE).close()


@pytest.mark.docker
def test_threads_share_a_container_and_a_dead_one_is_replaced(world_sandbox: DockerSandbox, world_image: str) -> None:
    world = make_world()
    with WorldHost(lambda: open_world_server(world_sandbox, world_image, LIMITS)) as host:
        with ThreadPoolExecutor(8) as threads:
            numbers = list(threads.map(lambda _: host.find(world), range(8)))
        assert len({id(served) for pair in numbers for served in pair}) == 2
        assert (host.is_running, host.n_started) == (True, 1)
        server, served = numbers[0]
        with served.open_episode(STATE) as episode:
            assert episode.call("count_items", {}).is_success
        server._connection._process.write(b'{"op": "no such operation"}\n')
        with pytest.raises(Transient):
            open_until_it_fails(served)
        assert host.is_running is False
        other, served = host.find(world)
        assert other is not server
        with served.open_episode(STATE) as episode:
            assert episode.call("count_items", {}).is_success
        assert host.n_started == 2
    assert host.is_running is False
