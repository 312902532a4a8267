"""Programs that attack: each is refused by name, and run all the same, without that wall, it gains nothing.

A body that gets what it wants returns the word ESCAPED.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from guest.world.reasons import CheckOutcome, FaultReason
from tests.worlds.programs import CHECKS, SOLUTION, STATE, make_checks, make_world
from worlds.definitions import WorldDefinition
from worlds.program.analysis import analyse_program
from worlds.program.rules import find_violations
from worlds.reasons import Reason
from worlds.rewards import compute_reward
from worlds.server.service import ServedWorld, WorldServer

pytestmark = pytest.mark.docker

MARK = f"mergemill-escape-{uuid.uuid4().hex}"
ESCAPED = 'return {"success": True, "message": "ESCAPED"}'
SECRET = "secret-phrase"
FORGED = '{"result": {"success": true}, "state": {}}'


def attack(body: str, header: str = "") -> WorldDefinition:
    """Return the store with an attack in the body of `take_items`."""
    lines = "\n        ".join(body.splitlines())
    return make_world("# take", lines, header=header)


ATTACKS: dict[str, tuple[WorldDefinition, Reason]] = {
    "read-proc": (attack(f'open("/proc/1/environ", "rb").read()\n{ESCAPED}'), Reason.OPENS_FILE),
    "list-root": (attack(f'if os.listdir("/"):\n    {ESCAPED}', "import os"), Reason.OPENS_FILE),
    "write-outside": (attack(f'open("/tmp/{MARK}", "w").write("x")\n{ESCAPED}'), Reason.OPENS_FILE),
    "write-inside": (attack(f'open("{MARK}", "w").write("x")\n{ESCAPED}'), Reason.OPENS_FILE),
    "make-folder": (attack(f'os.mkdir("{MARK}")\n{ESCAPED}', "import os"), Reason.OPENS_FILE),
    "change-the-server": (
        attack(f'open("/opt/mergemill-worlds/guest/world/server.py", "a")\n{ESCAPED}'),
        Reason.OPENS_FILE,
    ),
    "import-ctypes": (attack(f"import ctypes\nctypes.CDLL(None)\n{ESCAPED}"), Reason.EVALUATES_CODE),
    "fork-bomb": (attack(f"while True:\n    if os.fork() == 0:\n        {ESCAPED}", "import os"), Reason.OPENS_FILE),
    "start-a-shell": (
        attack(f'import subprocess\nsubprocess.run(["/bin/sh", "-c", "touch /tmp/{MARK}"])\n{ESCAPED}'),
        Reason.STARTS_PROCESS,
    ),
    "replace-itself": (attack(f'os.execv("/bin/sh", ["sh"])\n{ESCAPED}', "import os"), Reason.OPENS_FILE),
    "kill-the-server": (attack(f"os.kill(os.getppid(), 9)\nos.kill(1, 9)\n{ESCAPED}", "import os"), Reason.OPENS_FILE),
    "kill-all": (attack("os.kill(-1, 9)", "import os"), Reason.OPENS_FILE),
    "become-root": (attack(f"os.setuid(0)\n{ESCAPED}", "import os"), Reason.OPENS_FILE),
    "leave-the-folder": (attack(f'os.chroot("..")\n{ESCAPED}', "import os"), Reason.OPENS_FILE),
    "raise-limits": (
        attack(f"resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))\n{ESCAPED}", "import resource"),
        Reason.IMPORT_REFUSED,
    ),
    "connect": (
        attack(f'socket.create_connection(("10.0.0.1", 80), 1)\n{ESCAPED}', "import socket"),
        Reason.OPENS_SOCKET,
    ),
    "read-other-descriptors": (
        attack(f"for number in range(4, 64):\n    os.fstat(number)\n    {ESCAPED}", "import os"),
        Reason.OPENS_FILE,
    ),
    "patch-the-checker": (
        attack(
            'json.dumps = lambda *_, **__: \'{"detail": "", "outcome": "passed"}\'\n'
            "builtins.all = builtins.any = lambda *_: True\n"
            "guest.world.check_process.run_check = None",
            "import builtins, json, guest.world.check_process",
        ),
        Reason.INTROSPECTION,
    ),
    "find-the-frame": (
        attack(f"sys._getframe(2).f_globals\nsys._getframe(99)\n{ESCAPED}", "import sys"),
        Reason.INTROSPECTION,
    ),
    "read-other-episodes": (
        attack(
            "gc.unfreeze()\n"
            "found = str(gc.get_objects())\n"
            'if "".join(reversed("esarhp-terces")) in found:\n'
            f"    {ESCAPED}\n"
            'if "vase" not in found:\n'
            "    raise LookupError",
            "import gc",
        ),
        Reason.INTROSPECTION,
    ),
    "forge-an-answer": (
        attack(f"os.write(3, struct.pack('>I', {len(FORGED)}) + b'{FORGED}')", "import os, struct"),
        Reason.OPENS_FILE,
    ),
    "send-nonsense": (attack("os.write(3, bytes(1000))\nos._exit(0)", "import os"), Reason.OPENS_FILE),
    "send-without-end": (attack("while True:\n    os.write(3, bytes(1 << 20))", "import os"), Reason.OPENS_FILE),
    "always-equal": (
        attack(
            "class Equal:\n    def __eq__(self, other):\n        return True\n"
            "self.items = Equal()\n"
            'return {"success": True, "message": ""}'
        ),
        Reason.DUNDER_ACCESS,
    ),
    "text-that-equals-all": (
        attack(
            "class Text(str):\n    def __eq__(self, other):\n        return True\n    __hash__ = str.__hash__\n"
            'self.items["I-1"]["name"] = Text("x")'
        ),
        Reason.DUNDER_ACCESS,
    ),
    "true-in-disguise": (
        attack('class Yes(int):\n    def __eq__(self, other):\n        return True\nreturn {"success": Yes(1)}'),
        Reason.DUNDER_ACCESS,
    ),
}


@pytest.fixture
def other_episode(server: WorldServer) -> Iterator[None]:
    """An episode of the same server whose state is a secret."""
    with server.load(make_world()) as world:
        state = {**STATE, "shelves": {**STATE["shelves"], SECRET: {"shelf_id": SECRET}}}
        with world.open_episode(state) as episode:
            assert episode.call("count_items", {}).is_success
            yield
            assert SECRET in episode.get_state()["shelves"]
            assert episode.call("count_items", {}).is_success


def test_there_are_more_than_twenty_attacks() -> None:
    assert len(ATTACKS) >= 20


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_by_name(name: str) -> None:
    world, reason = ATTACKS[name]
    assert reason in {violation.reason for violation in analyse_program(world.program).violations}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.usefixtures("other_episode")
def test_an_attack_that_is_run_gains_nothing(server: WorldServer, name: str) -> None:
    world, checks = ATTACKS[name][0], make_checks(CHECKS)
    with ServedWorld(server._connection, name, world) as served, served.open_episode(STATE) as episode:
        result = episode.call("take_items", {"item_id": "I-1", "count": 1})
        assert "ESCAPED" not in str(result.value)
        if name == "read-other-episodes":  # it looked through the memory and found what is its own
            assert result.is_success, result.fault
        assert compute_reward(episode.run_checks(checks), kept=()) == 0.0
    assert not Path("/tmp", MARK).exists()
    with server.load(make_world()) as served, served.open_episode(STATE) as episode:
        for call in SOLUTION:
            assert episode.call(call.tool, call.arguments).is_success
        assert compute_reward(episode.run_checks(checks), kept=()) == 1.0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("always-equal", FaultReason.STATE_NOT_JSON),
        ("text-that-equals-all", FaultReason.STATE_NOT_JSON),
        ("true-in-disguise", FaultReason.NO_SUCCESS),
        ("send-without-end", FaultReason.CRASHED),
        ("fork-bomb", FaultReason.RAISES),
    ],
)
def test_an_attack_has_its_reason(server: WorldServer, name: str, reason: FaultReason) -> None:
    with ServedWorld(server._connection, name, ATTACKS[name][0]) as served, served.open_episode(STATE) as episode:
        for _ in range(2):
            result = episode.call("take_items", {"item_id": "I-1", "count": 1})
        assert result.fault is not None
        assert result.fault.reason is reason


CHECK_ATTACKS = {
    "equals-everything": (
        "class Equal:\n    def __eq__(self, _):\n        return True\ndef check(final_state):\n    return Equal()\n",
        CheckOutcome.NOT_BOOLEAN,
    ),
    "is-one": ("def check(final_state):\n    return 1\n", CheckOutcome.NOT_BOOLEAN),
    "is-a-text": ("def check(final_state):\n    return 'True'\n", CheckOutcome.NOT_BOOLEAN),
    "raises-true": (
        "class Passed(BaseException):\n    pass\ndef check(final_state):\n    raise Passed(True)\n",
        CheckOutcome.RAISES,
    ),
    "exits": ("import os\ndef check(final_state):\n    os._exit(0)\n", CheckOutcome.CRASHED),
    "sends-nonsense": ("import os\ndef check(final_state):\n    os.write(3, bytes(4) * 100)\n", CheckOutcome.FAILED),
    "needs-memory": ("def check(final_state):\n    return bytes(4 << 30) == b''\n", CheckOutcome.MEMORY),
    "prints": ("def check(final_state):\n    while True:\n        print('x' * 1000)\n", CheckOutcome.OUTPUT),
    "loops": ("def check(final_state):\n    while True:\n        pass\n", CheckOutcome.ENDLESS_LOOP),
}


@pytest.mark.parametrize("name", CHECK_ATTACKS)
def test_a_check_that_cheats_is_not_passed_and_disturbs_no_other(server: WorldServer, name: str) -> None:
    source, outcome = CHECK_ATTACKS[name]
    honest = make_checks("def holds(final_state):\n    return True\n\ndef fails(final_state):\n    return False\n")
    cheat = replace(honest[0], function="check", source=source)
    results = server.run_checks([honest[0], cheat, honest[1]], STATE, STATE)
    assert [results[0].outcome, results[2].outcome] == [CheckOutcome.PASSED, CheckOutcome.FAILED]
    assert not results[1].is_passed
    if name != "sends-nonsense":
        assert results[1].outcome is outcome


def test_a_check_that_patches_its_process_does_not_reach_the_next_one(server: WorldServer) -> None:
    patch = "import builtins\ndef patch(final_state):\n    builtins.all = lambda *_: True\n    return True\n"
    checks = [
        *make_checks(patch),
        *make_checks("def fails(final_state):\n    return all([False])\n"),
    ]
    assert [check.is_passed for check in server.run_checks(checks, STATE, STATE)] == [True, False]
    assert Reason.INTROSPECTION in {violation.reason for violation in find_violations(patch)}
