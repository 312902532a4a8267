"""The same seed and calls give the same states, in other containers and on other days."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from guest.world.reasons import CheckOutcome
from tests.worlds.conftest import LIMITS
from tests.worlds.programs import STATE, make_checks, make_world
from worlds.definitions import Call
from worlds.examples.loading import list_example_worlds, load_example_world
from worlds.gates.arguments import StateValues, draw_arguments
from worlds.server.connection import ServerConnection
from worlds.server.service import COMMAND, ServedWorld, WorldServer, collect_server_files

pytestmark = pytest.mark.docker

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static const long DAYS = 400 * 86400L;
int clock_gettime(clockid_t clock, struct timespec *at) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, at);
    if (clock == CLOCK_REALTIME) at->tv_sec += DAYS;
    return code;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
"""A library that shows programs a clock 400 days ahead."""
RESTLESS_ADD = """stamps = [datetime.datetime.now().isoformat(), str(datetime.date.today()), str(time.time_ns())]
        name = "/".join([name, str(uuid.uuid4()), str(uuid.uuid1()), str(random.random()), *stamps])
        name += "".join({"a", "b", "c", name, shelf_id}) + str(hash(name)) + str(random.SystemRandom().random())
        name += str(random.Random().random()) + os.urandom(4).hex()"""
RESTLESS = make_world("# add", RESTLESS_ADD, header="import datetime, os, random, time, uuid")
"""The store, whose new items have names made of everything that differs between runs."""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "clock.c").write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "clock.so", "clock.c", "-ldl"], cwd=folder, check=True)
    return (folder / "clock.so").read_bytes()


@pytest.fixture(scope="module")
def later_server(world_sandbox: DockerSandbox, world_image: str, shim: bytes) -> Iterator[WorldServer]:
    """A server whose container's clock is 400 days ahead."""
    options: Mapping[str, Any] = {
        "limits": LIMITS.build_container_limits(),
        "files": {**collect_server_files(), "/opt/clock.so": shim},
        "env": {"PYTHONHASHSEED": "0", "LD_PRELOAD": "/opt/clock.so"},
    }
    with (
        world_sandbox.open_process(world_image, [*COMMAND, json.dumps(LIMITS.to_json())], **options) as process,
        ServerConnection(process) as connection,
    ):
        yield WorldServer(connection)


def test_the_clocks_of_the_containers_differ(world_sandbox: DockerSandbox, world_image: str, shim: bytes) -> None:
    limits = ResourceLimits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=1000)
    shown = world_sandbox.run(
        world_image,
        ["python3", "-c", "import time; print(time.time())"],
        limits=limits,
        files={"/opt/clock.so": shim},
        env={"LD_PRELOAD": "/opt/clock.so"},
    )
    assert float(shown.output) - time.time() > 399 * 86400


def replay(first: ServedWorld, second: ServedWorld, number: int, drawn: Mapping[str, list[Any]]) -> int:
    """Make random calls in both worlds, compare results and states, and return how many changed the state."""
    draw = random.Random(number)
    name = sorted(first.definition.states)[number % len(first.definition.states)]
    state, n_changes = first.definition.states[name], 0
    with first.open_episode(state, seed=number) as episode, second.open_episode(state, seed=number) as other:
        assert episode.digest == other.digest
        for _ in range(12):
            tool = draw.choice(sorted(drawn))
            call = Call(tool=tool, arguments=StateValues(episode.get_state()).fill(draw.choice(drawn[tool])))
            digest, result = episode.digest, episode.call(call.tool, call.arguments)
            assert result == other.call(call.tool, call.arguments), call
            n_changes += result.digest != digest
        assert json.dumps(episode.get_state()) == json.dumps(other.get_state())
    return n_changes


def replay_many(server: WorldServer, later_server: WorldServer, count: int) -> None:
    worlds = [RESTLESS, *(load_example_world(name) for name in list_example_worlds())]
    for world in worlds:
        with ExitStack() as opened:
            # The restless world reads the clock: it is loaded past the rules.
            first, second = (
                opened.enter_context(ServedWorld(service._connection, world.name, world))
                for service in (server, later_server)
            )
            drawn = draw_arguments(first.analysis.tools, 60, 7)
            n_changes = sum(replay(first, second, number, drawn) for number in range(count // len(worlds)))
            assert n_changes > 0


def test_random_calls_give_the_same_states_on_two_clocks(server: WorldServer, later_server: WorldServer) -> None:
    replay_many(server, later_server, 40)


@pytest.mark.slow
def test_1000_sequences_of_random_calls_give_the_same_states_on_two_clocks(
    server: WorldServer, later_server: WorldServer
) -> None:
    replay_many(server, later_server, 1000)


def test_another_seed_gives_other_values(server: WorldServer) -> None:
    with ServedWorld(server._connection, "restless", RESTLESS) as world:
        names = []
        for seed in (0, 0, 1):
            with world.open_episode(STATE, seed=seed) as episode:
                added = episode.call("add_item", {"name": "clock", "shelf_id": "S-1"})
                names.append(episode.get_state()["items"][added.value["item_id"]]["name"])
    assert names[0] == names[1]
    first, last = names[0].split("/"), names[2].split("/")
    assert all(outcome != other for outcome, other in zip(first[1:], last[1:], strict=True))


def test_random_numbers_of_a_check_are_those_of_the_seed(server: WorldServer) -> None:
    checks = make_checks("import random\n\n\ndef draws(final_state):\n    return random.random() < 0.5\n")
    outcomes = {
        tuple(server.run_checks(checks, STATE, STATE, seed=seed)[0].outcome for seed in range(12)) for _ in range(3)
    }
    (drawn,) = outcomes
    assert set(drawn) == {CheckOutcome.PASSED, CheckOutcome.FAILED}


def test_an_episode_goes_on_from_a_saved_state(server: WorldServer) -> None:
    with ServedWorld(server._connection, "restless", RESTLESS) as world, world.open_episode(STATE, seed=3) as episode:
        episode.call("add_item", {"name": "clock", "shelf_id": "S-1"})
        saved = episode.get_state()
        episode.call("add_item", {"name": "clock", "shelf_id": "S-2"})
        with world.open_episode(saved, seed=3, step=1) as other:
            other.call("add_item", {"name": "clock", "shelf_id": "S-2"})
            assert other.digest == episode.digest


def test_a_digest_does_not_depend_on_the_order_of_keys(server: WorldServer) -> None:
    turned = {
        name: dict(reversed(value.items())) if isinstance(value, dict) else value for name, value in STATE.items()
    }
    with (
        server.load(make_world()) as served,
        served.open_episode(STATE) as episode,
        served.open_episode(turned) as other,
    ):
        assert episode.digest == other.digest
