"""Flaky tests by the cause of their failures, as files of small Python projects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

PROBABILITIES = (1 / 2, 1 / 4, 1 / 8, 1 / 20)
"""Failure rates of the tests that fail at random."""


@dataclass(frozen=True, kw_only=True)
class FlakyCase:
    """A sort of flaky test.

    `make_files` returns the files of one copy, given two names that are unique in the project (letters and digits) and
    a source of random choices; of these, the test `test_flaky` in the file of the first name is the flaky one.
    """

    name: str
    rate: str
    """How often a single run fails, as text."""
    make_files: Callable[[str, str, Random], Mapping[str, str]]


def _path(name: str) -> str:
    return f"tests/test_{name}.py"


def _make_single(source: str) -> Callable[[str, str, Random], Mapping[str, str]]:
    """Return a maker of one file. In `source`, NAME is the copy's name and WORD a random word."""

    def make_files(name: str, _other: str, random: Random) -> Mapping[str, str]:
        word = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=12))
        return {_path(name): source.replace("NAME", name).replace("WORD", word)}

    return make_files


def _make_pair(flaky: str, leaking: str) -> Callable[[str, str, Random], Mapping[str, str]]:
    """Return a maker of two files: `flaky` fails when it runs after `leaking`. In both, NAME is the copy's name."""

    def make_files(name: str, other: str, _random: Random) -> Mapping[str, str]:
        return {_path(name): flaky.replace("NAME", name), _path(other): leaking.replace("NAME", name)}

    return make_files


_AT_RANDOM = """import os

def test_flaky():
    assert int.from_bytes(os.urandom(6), "big") / 2**48 >= {probability}
"""
_SECOND = """import time

def test_flaky():
    assert int(time.time()) % 2 == 0
"""
_MINUTE = """import time

def test_flaky():
    assert time.time() % 60 < 57
"""
_HASH_SEED = """def test_flaky():
    assert hash("WORD") % 2 == FIRST
"""
_THREADS = """import threading
import time

def test_flaky():
    finished, start = [], threading.Barrier(3)

    def work(name):
        start.wait()
        time.sleep(0.001)
        finished.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    start.wait()
    for thread in threads:
        thread.join()
    assert finished == ["a", "b"]
"""
_PORT = """import os
import socket

def test_flaky():
    with socket.socket() as held, socket.socket() as wanted:
        held.bind(("127.0.0.1", 47000 + os.urandom(1)[0] % 8))
        wanted.bind(("127.0.0.1", 47000 + os.urandom(1)[0] % 8))
"""
_INSIDE = """STATE = []

def test_first():
    STATE.append(1)

def test_flaky():
    assert STATE
"""
_COUNTER = """import pathlib

def test_flaky():
    mark = pathlib.Path("/tmp/NAME.count")
    before = mark.exists()
    mark.touch()
    assert not before
"""
_DATE = """import datetime

def test_flaky():
    assert datetime.date.today().isoformat() == "TODAY"
"""


def _make_hash_seed(name: str, other: str, random: Random) -> Mapping[str, str]:
    files = _make_single(_HASH_SEED)(name, other, random)
    return {path: text.replace("FIRST", str(random.randrange(2))) for path, text in files.items()}


def _make_date(name: str, other: str, random: Random) -> Mapping[str, str]:
    today = datetime.now(UTC).date().isoformat()
    return {path: text.replace("TODAY", today) for path, text in _make_single(_DATE)(name, other, random).items()}


CASES: Sequence[FlakyCase] = (
    *(
        FlakyCase(
            name="fails at random",
            rate=f"1/{1 / probability:.0f}",
            make_files=_make_single(_AT_RANDOM.format(probability=probability)),
        )
        for probability in PROBABILITIES
    ),
    FlakyCase(name="passes in even seconds", rate="1/2", make_files=_make_single(_SECOND)),
    FlakyCase(name="fails before the full minute", rate="1/20", make_files=_make_single(_MINUTE)),
    FlakyCase(name="fails from the next day on", rate="0 today", make_files=_make_date),
    FlakyCase(name="depends on the hash seed", rate="1/2 of the seeds", make_files=_make_hash_seed),
    FlakyCase(name="race of two threads", rate="about 1/2", make_files=_make_single(_THREADS)),
    FlakyCase(name="conflict of ports", rate="1/8", make_files=_make_single(_PORT)),
    FlakyCase(
        name="module global of another file",
        rate="1/2 of the orders",
        make_files=_make_pair(
            "import shop\n\ndef test_flaky():\n    assert 'NAME' not in shop.SEEN\n",
            "import shop\n\ndef test_leaking():\n    shop.SEEN.add('NAME')\n",
        ),
    ),
    FlakyCase(
        name="environment variable of another file",
        rate="1/2 of the orders",
        make_files=_make_pair(
            "import os\n\ndef test_flaky():\n    assert 'NAME' not in os.environ\n",
            "import os\n\ndef test_leaking():\n    os.environ['NAME'] = '1'\n",
        ),
    ),
    FlakyCase(
        name="file in /tmp of another file",
        rate="1/2 of the orders",
        make_files=_make_pair(
            "import pathlib\n\ndef test_flaky():\n    assert not pathlib.Path('/tmp/NAME').exists()\n",
            "import pathlib\n\ndef test_leaking():\n    pathlib.Path('/tmp/NAME').touch()\n",
        ),
    ),
    FlakyCase(
        name="file in the tree of another file",
        rate="1/2 of the orders",
        make_files=_make_pair(
            "import pathlib\n\ndef test_flaky():\n    assert not pathlib.Path('NAME.out').exists()\n",
            "import pathlib\n\ndef test_leaking():\n    pathlib.Path('NAME.out').touch()\n",
        ),
    ),
    FlakyCase(
        name="needs another file to run before it",
        rate="1/2 of the orders",
        make_files=_make_pair(
            "import shop\n\ndef test_flaky():\n    assert 'NAME' in shop.SEEN\n",
            "import shop\n\ndef test_preparing():\n    shop.SEEN.add('NAME')\n",
        ),
    ),
    FlakyCase(name="needs another test of its file before it", rate="0 in any run", make_files=_make_single(_INSIDE)),
    FlakyCase(name="fails in the second run of one container", rate="0 in any run", make_files=_make_single(_COUNTER)),
)
