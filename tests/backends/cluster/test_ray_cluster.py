"""Ray: records over real nodes, lost workers and nodes, failing nodes, and clusters that cannot be used."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.cluster.nodes import WorkerNeeds
from core.errors import MachineError, Transient
from tests.backends.cluster import functions
from tests.backends.cluster.drivers import DRIVER
from tests.backends.cluster.functions import VERSION, CountingKeeper, ModuloKeeper, Said, StoringKeeper, make_functions
from tests.ray_nodes import QUICK, RayNode, RayNodes, list_session, read_title, start_ray_nodes

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]  # Ray's own

TWO_WORKERS = WorkerNeeds(cpus=1, memory_bytes=100 << 20, workers=2)
"""Half of the workers that the nodes have room for: each is a process that imports Ray."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    """A cluster of two nodes with two slots each."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK.items():
            patch.setenv(name, value)
        with start_ray_nodes() as cluster:
            cluster.add("node-a")
            cluster.add("node-b")
            yield cluster


@contextmanager
def connect(nodes: RayNodes, folder: Path, **options: Any) -> Iterator[Any]:
    from backends.cluster.ray_cluster.cluster import RayCluster  # noqa: PLC0415 - Ray reads the environment when it is imported

    messages: list[str] = []
    settings = {
        "address": nodes.url,
        "needs": WorkerNeeds(cpus=1, memory_bytes=100 << 20),
        "functions": make_functions(folder),
        "version": VERSION,
        "notify": messages.append,
    }
    with RayCluster(**settings | options) as cluster:
        # Its node is chosen by chance, so that each test looks: a lost one would take the messages with it.
        assert "ray::Mailbox" in list_titles(nodes.nodes["head"])
        cluster.messages = messages
        yield cluster


def list_titles(node: RayNode) -> set[str]:
    """Return what the processes of a node show as their commands, without methods of actors."""
    return {read_title(pid).partition(".")[0] for pid in list_session(node.process.pid)}


def group(results: list[Said]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for result in results:
        names.setdefault(result.record, []).append(result.part)
    return names


WHOLE = ["begin", "end"]


class TestOneConnection:
    """Maps that use the same workers, one after the other."""

    @pytest.fixture(scope="class")
    def cluster(self, nodes: RayNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
        with connect(nodes, tmp_path_factory.mktemp("cluster")) as connected:
            yield connected

    def test_all_nodes_work_and_each_result_arrives_once_and_in_order(self, cluster: Any, tmp_path: Path) -> None:
        keeper = CountingKeeper()
        together = partial(functions.work_with_others, folder=tmp_path, workers=4)
        results = list(cluster.map(together, range(40), keeper))
        again = list(cluster.map(partial(functions.work, seconds=0.0), range(40, 60), keeper))
        assert group(results) == dict.fromkeys(range(40), WHOLE)
        assert group(again) == dict.fromkeys(range(40, 60), WHOLE)
        assert {result.node for result in results} == keeper.places == {"node-a", "node-b"}
        assert len({result.pid for result in results}) == 4
        assert sorted(keeper.ended) == [(n, True) for n in range(60)]
        assert keeper.resumed == []

    def test_records_that_share_something_go_to_the_same_node(self, cluster: Any) -> None:
        results = list(cluster.map(functions.work, range(60), ModuloKeeper()))
        places = [(result.record % 4, result.node) for result in results if result.part == "end"]
        moved = sum(min(places.count((kind, node)) for node in ("node-a", "node-b")) for kind in range(4))
        assert moved <= 10  # of 60; by chance about 24

    def test_the_record_of_a_lost_worker_is_resumed_elsewhere_unless_it_is_stored(
        self, cluster: Any, tmp_path: Path
    ) -> None:
        keeper = StoringKeeper()
        work = partial(functions.die_once, folder=tmp_path, mortal=5, mortal_at_end=2)
        results = list(keeper.store(cluster.map(work, range(12), keeper)))
        assert {(tmp_path / f"died-{mortal}").exists() for mortal in (2, 5)} == {True}
        assert group(results) == dict.fromkeys(range(12), WHOLE) | {5: ["begin", *WHOLE]}
        first, second = (result.node for result in results if result.record == 5 and result.part == "begin")
        assert first != second
        assert sorted(keeper.resumed) == [2, 5]
        assert {(2, False), (2, True), (5, False), (5, True)} <= set(keeper.ended)

    def test_a_record_that_kills_each_worker_is_given_up(self, cluster: Any) -> None:
        keeper = CountingKeeper()
        results = list(cluster.map(functions.die, [1], keeper))
        after = list(cluster.map(functions.work, range(4), keeper))
        assert [result.part for result in results] == ["begin"] * 3 + ["lost"]
        assert "lost" in results[-1].problem
        assert group(after) == dict.fromkeys(range(4), WHOLE)

    @pytest.mark.usefixtures("cluster")
    def test_no_node_that_can_be_lost_keeps_the_messages(self, nodes: RayNodes) -> None:
        titles = {name: list_titles(node) for name, node in nodes.nodes.items()}
        assert {name for name, node_titles in titles.items() if "ray::Mailbox" in node_titles} == {"head"}

    def test_a_record_at_which_a_node_fails_is_given_to_another(self, cluster: Any) -> None:
        keeper = CountingKeeper()
        results = list(cluster.map(partial(functions.fail_on, nodes=("node-a",)), range(30), keeper))
        done = [result for result in results if result.part == "end"]
        assert sorted(result.record for result in done) == list(range(30))
        assert {(result.node, result.problem) for result in done} == {("node-b", "")}
        assert any("node-a failed 3 times in a row" in message for message in cluster.messages)
        assert keeper.resumed

    def test_an_exception_of_the_function_ends_the_map_with_its_traceback(self, cluster: Any) -> None:
        """The last, as the map stops its workers; node-a may still rest from the failures before."""
        with pytest.raises(ZeroDivisionError, match="three") as raised:
            list(cluster.map(functions.break_down, range(6)))
        assert "break_down" in raised.value.__notes__[0]
        assert re.search(r"on node-[ab]:", raised.value.__notes__[0])


class TestTwoWorkers:
    """Maps of a connection with fewer workers than the nodes have room for."""

    @pytest.fixture(scope="class")
    def left(self) -> list[BaseException]:
        """Exceptions by which a map was left early."""
        return []

    @pytest.fixture(scope="class")
    def addresses(self) -> list[str]:
        """Addresses that Ray was asked to connect to."""
        return []

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("cluster")

    @pytest.fixture(scope="class")
    def cluster(self, nodes: RayNodes, folder: Path, left: list[BaseException], addresses: list[str]) -> Iterator[Any]:
        """A connection to a head that fails to start a server for the driver the first time."""
        from backends.cluster.ray_cluster import connection  # noqa: PLC0415 - as in `connect`

        init = connection.ray.init

        def fail_once(address: str, **options: Any) -> None:
            addresses.append(address)
            if len(addresses) == 1:
                raise RuntimeError("Starting Ray client server failed. See ray_client_server_23000.err for details.")
            init(address, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connection.ray, "init", fail_once)
            with connect(nodes, folder, needs=TWO_WORKERS, stop=left.append) as connected:
                yield connected

    def test_a_head_that_fails_to_start_a_server_for_the_driver_is_asked_again(
        self, nodes: RayNodes, cluster: Any, addresses: list[str]
    ) -> None:
        assert group(list(cluster.map(functions.work, range(2)))) == dict.fromkeys(range(2), WHOLE)
        assert addresses[:2] == [nodes.url, nodes.url]  # the head itself may be busy, too, and be asked once more

    def test_no_more_workers_are_started_than_allowed(self, cluster: Any) -> None:
        results = list(cluster.map(functions.work, range(20)))
        assert len({result.pid for result in results}) == 2
        assert {result.node for result in results} == {"node-a", "node-b"}

    def test_the_failure_of_all_nodes_is_a_result(self, cluster: Any) -> None:
        keeper = CountingKeeper()
        results = list(cluster.map(partial(functions.fail_on, nodes=("node-a", "node-b")), [1, 2], keeper))
        assert group(results) == {n: ["begin"] * 3 + ["end"] for n in (1, 2)}
        assert {result.problem for result in results if result.part == "end"} == {"disk is full"}
        assert [end for end in keeper.ended if end[1]] == [(1, True), (2, True)] or [
            end for end in keeper.ended if end[1]
        ] == [(2, True), (1, True)]

    def test_leaving_a_map_early_stops_the_workers(self, cluster: Any, folder: Path, left: list[BaseException]) -> None:
        """The last, as the workers end each further record early."""
        results = cluster.map(partial(functions.work_until_stopped, folder=folder), range(8))
        begun = {next(results).record, next(results).record}
        assert len(begun) == 2
        results.close()
        assert len(list(folder.glob("stopped-*"))) >= 2
        assert [type(error) for error in left] == [GeneratorExit]


def draw_records(most: int, keeper: CountingKeeper, begun: list[int]) -> Iterator[int]:
    """Yield records, and note them, until a node was lost, and some more for the nodes that are left."""
    after = 0
    while len(begun) < most and after < 10:
        after += bool(keeper.resumed)
        begun.append(len(begun))
        yield begun[-1]


def test_a_node_that_joins_is_used_and_one_that_is_killed_costs_nothing(
    nodes: RayNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backends.cluster.ray_cluster import pool  # noqa: PLC0415 - as in `connect`

    monkeypatch.setattr(pool, "NODES_SECONDS", 2.0)
    keeper, begun = StoringKeeper(), list[int]()

    with connect(nodes, tmp_path) as cluster:
        results = []
        records = draw_records(240, keeper, begun)
        for result in keeper.store(cluster.map(partial(functions.work, seconds=0.3), records, keeper)):
            if not results:
                nodes.add("node-c")
            if result.node == "node-c" and nodes.nodes["node-c"].process.poll() is None:
                nodes.nodes["node-c"].kill()
            results.append(result)
        messages = cluster.messages
    finished = [result.record for result in results if result.part == "end"]
    assert sorted(finished) == begun
    assert "node-c" in {result.node for result in results}
    assert keeper.resumed
    assert any("node-c is gone" in message for message in messages)


def test_the_loss_of_all_nodes_ends_the_map(nodes: RayNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from backends.cluster.ray_cluster import ray_map  # noqa: PLC0415 - as in `connect`

    monkeypatch.setattr(ray_map, "NO_NODE_SECONDS", 3.0)
    last = nodes.add("node-e")
    others = make_functions(tmp_path, problems=dict.fromkeys(("node-a", "node-b"), "no engine"))
    with connect(nodes, tmp_path, functions=others) as cluster:
        results = cluster.map(partial(functions.work, seconds=0.2), range(40))
        next(results)
        last.kill()
        with pytest.raises(Transient, match="no node of the cluster is left"):
            list(results)


def test_messages_that_nobody_waits_for_are_sent_together(nodes: RayNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    from backends.cluster.ray_cluster import actors  # noqa: PLC0415 - as in `connect`

    calls: list[list[bytes]] = []
    monkeypatch.setattr(actors.ray, "get", lambda reference: reference)
    monkeypatch.setattr(actors, "NOTICE_SECONDS", 30.0)
    mailbox = SimpleNamespace(put=SimpleNamespace(remote=calls.append))
    sender = actors.Sender(mailbox)
    for number in range(5):
        sender.send(actors.WorkerMessage(actors.RESULT, "attempt", number))
        time.sleep(0.02)
    sender.flush()
    contents = [[pickle.loads(message).content for message in messages] for messages in calls]  # noqa: S301 - our own
    assert contents == [[0, 1, 2, 3, 4]]

    def fail(messages: list[bytes]) -> None:
        raise ConnectionError("the mailbox is gone")

    mailbox.put.remote = fail
    sender.send(actors.WorkerMessage(actors.DONE, "attempt"))
    with pytest.raises(ConnectionError):
        sender.flush()
    with pytest.raises(ConnectionError):
        sender.send(actors.WorkerMessage(actors.DONE, "attempt"))


def test_results_of_a_node_that_comes_back_are_dropped(nodes: RayNodes, tmp_path: Path) -> None:
    keeper, begun = CountingKeeper(), list[int]()

    frozen = nodes.add("node-d", cpus=2, engines=2)
    try:
        with connect(nodes, tmp_path) as cluster:
            results, woken = [], False
            for result in cluster.map(partial(functions.work, seconds=1.0), draw_records(60, keeper, begun), keeper):
                if result.node == "node-d" and not keeper.resumed and not results_of(results, "node-d"):
                    frozen.signal(signal.SIGSTOP)
                if keeper.resumed and not woken:
                    woken = True
                    frozen.signal(signal.SIGCONT)
                results.append(result)
    finally:
        frozen.kill()
    assert woken
    finished = [result.record for result in results if result.part == "end"]
    assert sorted(finished) == begun


def test_a_node_that_answers_slowly_keeps_its_records(nodes: RayNodes, tmp_path: Path) -> None:
    keeper = CountingKeeper()
    slow = nodes.add("node-f")
    slowing = threading.Thread(target=slow.slow_down, args=(20.0,))
    slowing.start()
    try:
        with connect(nodes, tmp_path) as cluster:
            results = list(cluster.map(partial(functions.work, seconds=0.5), range(60), keeper))
            messages = cluster.messages
    finally:
        slowing.join()
        slow.kill()
    assert group(results) == dict.fromkeys(range(60), WHOLE)
    assert "node-f" in {result.node for result in results}
    assert (keeper.resumed, messages) == ([], [])


def results_of(results: list[Said], node: str) -> list[Said]:
    return [result for result in results if result.node == node]


# ---------------------------------------------------------------------------------------------------- bad input


def test_a_node_that_cannot_be_used_is_left_out_with_its_reason(nodes: RayNodes, tmp_path: Path) -> None:
    problem = make_functions(tmp_path, problems={"node-a": "no Docker engine answers"})
    with connect(nodes, tmp_path, functions=problem) as cluster:
        results = list(cluster.map(functions.work, range(6)))
        assert cluster.messages == ["a node is left out: node-a: no Docker engine answers"]
    assert {result.node for result in results} == {"node-b"}


def test_a_cluster_without_a_usable_node_is_an_error(nodes: RayNodes, tmp_path: Path) -> None:
    others = make_functions(tmp_path, problems={"node-a": "no engine"}, versions={"node-b": "0.9"})
    with pytest.raises(MachineError) as raised, connect(nodes, tmp_path, functions=others):
        pass
    assert "node-a: no engine" in str(raised.value)
    assert "node-b has mergemill 0.9, this machine 1.0" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_node_that_is_too_small_is_an_error(nodes: RayNodes, tmp_path: Path) -> None:
    needs = WorkerNeeds(cpus=1, memory_bytes=1 << 40)
    expected = "too small for a worker, which needs 1048576 MB of memory"
    with pytest.raises(MachineError, match=expected), connect(nodes, tmp_path, needs=needs):
        pass


def test_the_workers_of_a_killed_driver_end(nodes: RayNodes, tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRIVER, nodes.url, str(tmp_path), "600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **QUICK}) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        assert pid in list_session(nodes.nodes["node-a"].process.pid) + list_session(nodes.nodes["node-b"].process.pid)
        driver.kill()
    end = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.2)
    assert not Path(f"/proc/{pid}").exists()
