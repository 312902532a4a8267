"""Gates of worlds: the examples pass, and each of twenty-odd faulty worlds is refused under its own reason."""

from __future__ import annotations

import time

import pytest

from backends.sandbox.docker import DockerSandbox
from tests.worlds.conftest import LIMITS
from tests.worlds.programs import STATE, make_world
from worlds.definitions import WorldDefinition
from worlds.examples.loading import list_example_worlds, load_example_world
from worlds.gates.world_gates import RUN_GATES, TEXT_GATES, WorldGateSettings, assess_world
from worlds.reasons import Reason
from worlds.server.service import WorldServer, open_world_server

pytestmark = pytest.mark.docker
FEW = WorldGateSettings(calls_per_tool=40)

COUNTED = """    seen: ClassVar[list[str]] = []

    def __init__"""
FAULTY: dict[str, tuple[WorldDefinition, Reason]] = {
    "raises": (make_world("# take", 'self.items[item_id]["count"] -= 0'), Reason.RAISES),
    "exits": (make_world("# take", "raise SystemExit(0)"), Reason.RAISES),
    "no-success": (make_world('{"success": True, "message": "taken"}', '{"message": "taken"}'), Reason.NO_SUCCESS),
    "success-is-one": (make_world('{"success": True, "message": "taken"}', '{"success": 1}'), Reason.NO_SUCCESS),
    "result-is-no-json": (make_world('"message": "taken"', '"message": {1, 2}'), Reason.NO_SUCCESS),
    "failed-call-mutates": (make_world("# move", "self.clock += 1"), Reason.FAILED_CALL_MUTATES),
    "query-mutates": (make_world("# count", "self.clock += 1"), Reason.QUERY_MUTATES),
    "dangling-key": (
        make_world("or shelf_id not in self.shelves:\n            return", "or not shelf_id:\n            return"),
        Reason.DANGLING_KEY,
    ),
    "dangling-key-at-the-start": (make_world(state={**STATE, "shelves": {}}), Reason.DANGLING_KEY),
    "reads-clock": (
        make_world("# add", "name += datetime.datetime.now().isoformat()", header="import datetime"),
        Reason.READS_CLOCK,
    ),
    "opens-socket": (make_world("# add", "socket.socket()", header="import socket"), Reason.OPENS_SOCKET),
    "opens-file": (make_world("# add", "open('/etc/passwd')"), Reason.OPENS_FILE),
    "starts-process": (
        make_world("# add", "subprocess.run(['ls'])", header="import subprocess"),
        Reason.STARTS_PROCESS,
    ),
    "evaluates-code": (make_world("# add", "eval(name)"), Reason.EVALUATES_CODE),
    "import-refused": (make_world(header="import numpy"), Reason.IMPORT_REFUSED),
    "dunder": (make_world("# add", "name.__class__"), Reason.DUNDER_ACCESS),
    "introspection": (make_world("# add", "getattr(self, name)"), Reason.INTROSPECTION),
    "endless-loop": (make_world("# take", "while True:\n            pass"), Reason.ENDLESS_LOOP),
    "memory": (make_world("# take", "name = bytes(4 << 30)"), Reason.MEMORY),
    "output": (make_world("# take", "for _ in range(100):\n            print('x' * 1_000_000)"), Reason.OUTPUT),
    "large-result": (make_world('"message": "taken"', '"message": "x" * 20_000_000'), Reason.OUTPUT),
    "state-not-json": (make_world('self.items[item_id]["name"] = name', "self.clock = {1}"), Reason.STATE_NOT_JSON),
    "wrong-state-type": (
        make_world('self.items[item_id]["name"] = name', 'self.items[item_id]["name"] = None'),
        Reason.WRONG_STATE_TYPE,
    ),
    "wrong-type-at-the-start": (make_world(state={**STATE, "clock": "noon"}), Reason.WRONG_STATE_TYPE),
    "hidden-state": (
        make_world("    def __init__", COUNTED)
        .program.replace("# count", "self.seen.append('x')")
        .replace('"data": sum(', '"data": len(self.seen) + sum('),
        Reason.HIDDEN_STATE,
    ),
    "dead-tool": (make_world("# take", 'return {"success": False, "error": "closed"}'), Reason.DEAD_TOOL),
    "few-changes": (
        make_world('self.items[item_id]["name"] = name', "pass").program.replace(
            'self.items[item_id]["shelf_id"] = shelf_id', "pass"
        ),
        Reason.FEW_CHANGES,
    ),
    "syntax-error": (make_world("# add", "return ("), Reason.SYNTAX_ERROR),
    "untyped-tool": (make_world("item_id: str, count: int", "item_id: str, count"), Reason.UNTYPED_TOOL),
    "undocumented-tool": (make_world('"""Count all items."""', ""), Reason.UNDOCUMENTED_TOOL),
    "wrong-foreign-key": (
        make_world('"items.shelf_id": "shelves"', '"items.shelf_id": "racks"'),
        Reason.WRONG_FOREIGN_KEY,
    ),
    "no-world-class": (make_world("class Store:", "class Store(TypedDict):"), Reason.NO_WORLD_CLASS),
    "not-loaded": (make_world("class Store:", "1 / 0\n\n\nclass Store:"), Reason.NOT_LOADED),
    "state-not-loaded": (make_world('state["clock"]', 'state["watch"]'), Reason.STATE_NOT_LOADED),
}


def get_world(name: str) -> WorldDefinition:
    made = FAULTY[name][0]
    if isinstance(made, str):
        return WorldDefinition(name="store", program=made, documentation="", states={"first": STATE})
    return made


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_world_is_refused_under_its_own_reason(server: WorldServer, name: str) -> None:
    started = time.monotonic()
    report = assess_world(get_world(name), server, settings=FEW)
    assert report.reason == FAULTY[name][1], report.failure
    assert time.monotonic() - started < 60


def test_the_server_lives_on_after_all_of_them(server: WorldServer) -> None:
    report = assess_world(make_world(), server, settings=FEW)
    assert report.reason is None, report.failure
    assert [result.gate for result in report.results][-2:] == ["dead-tools", "changes"]
    assert len(report.values) == len(TEXT_GATES) + len(RUN_GATES)
    assert report.values["changes"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", list_example_worlds())
def test_the_example_worlds_pass_all_gates(server: WorldServer, name: str) -> None:
    report = assess_world(load_example_world(name), server)
    assert report.reason is None, report.failure
    assert report.values["changes"] == 1.0


def test_a_world_without_states_is_refused(server: WorldServer) -> None:
    world = WorldDefinition(name="store", program=make_world().program, documentation="", states={})
    assert assess_world(world, server, settings=FEW).reason == Reason.NO_STATE


def test_the_same_world_gives_the_same_values(server: WorldServer) -> None:
    first, second = (assess_world(get_world("failed-call-mutates"), server, settings=FEW) for _ in range(2))
    assert first == second


def test_states_that_hold_addresses_are_not_repeatable(world_sandbox: DockerSandbox, world_image: str) -> None:
    world = make_world("# add", "name += repr(object())")
    with (
        open_world_server(world_sandbox, world_image, LIMITS) as first,
        open_world_server(world_sandbox, world_image, LIMITS) as second,
    ):
        assert assess_world(world, first, second, FEW).reason == Reason.NOT_REPEATABLE
        assert assess_world(make_world(), first, second, FEW).reason is None
