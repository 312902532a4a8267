"""Functions for the nodes of a cluster; what they did is in a folder."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from backends.cluster.base import RecordKeeper
from backends.cluster.nodes import NodeFunctions, NodeReport, get_node_name

VERSION = "1.0"


def check(problems: dict[str, str], versions: dict[str, str]) -> NodeReport:
    name = get_node_name()
    return NodeReport(name=name, version=versions.get(name, VERSION), problem=problems.get(name, ""), disk_slots=99)


def stop(folder: Path) -> None:
    (folder / "stop").touch()


def drain(folder: Path) -> None:
    (folder / "drain").touch()


def make_functions(
    folder: Path, *, problems: dict[str, str] | None = None, versions: dict[str, str] | None = None
) -> NodeFunctions:
    return NodeFunctions(
        check=partial(check, problems or {}, versions or {}), stop=partial(stop, folder), drain=partial(drain, folder)
    )


@dataclass(frozen=True)
class Said:
    """Result: where and when a record was processed. `problem`: the node failed at it."""

    record: int
    node: str
    pid: int
    part: str
    problem: str = ""


def say(record: int, part: str, problem: str = "") -> Said:
    return Said(record, get_node_name(), os.getpid(), part, problem)


def work(record: int, *, seconds: float = 0.05) -> Iterator[Said]:
    yield say(record, "begin")
    time.sleep(seconds)
    yield say(record, "end")


def work_with_others(record: int, folder: Path, workers: int) -> Iterator[Said]:
    """Let no record end before so many workers have begun one: on a busy machine some start late."""
    yield say(record, "begin")
    (folder / f"worker-{os.getpid()}").touch()
    end = time.monotonic() + 60
    while len(list(folder.glob("worker-*"))) < workers and time.monotonic() < end:
        time.sleep(0.05)
    yield say(record, "end")


def work_until_stopped(record: int, folder: Path) -> Iterator[Said]:
    """Leave a mark when the record ends, whether at its next result or before it."""
    try:
        yield say(record, "begin")
        while not (folder / "stop").exists():
            time.sleep(0.05)
        yield say(record, "end")
    finally:
        (folder / f"stopped-{record}").touch()


def die_once(record: int, folder: Path, mortal: int, mortal_at_end: int) -> Iterator[Said]:
    """End the worker's process in the middle of a record, and after the last result of another, the first time."""
    yield say(record, "begin")
    mark = folder / f"died-{record}"
    is_new = record in {mortal, mortal_at_end} and not mark.exists()
    mark.touch()
    if is_new and record == mortal:
        os.kill(os.getpid(), signal.SIGKILL)
    yield say(record, "end")
    if is_new:
        os.kill(os.getpid(), signal.SIGKILL)


def die(record: int) -> Iterator[Said]:
    yield say(record, "begin")
    os.kill(os.getpid(), signal.SIGKILL)


def fail_on(record: int, nodes: tuple[str, ...]) -> Iterator[Said]:
    yield say(record, "begin")
    time.sleep(0.05)
    yield say(record, "end", "disk is full" if get_node_name() in nodes else "")


def break_down(record: int) -> Iterator[Said]:
    yield say(record, "begin")
    if record == 3:
        raise ZeroDivisionError("three")


@dataclass
class CountingKeeper(RecordKeeper[int, Said]):
    """Keeps the arguments of its calls. `finished`: records that are resumed as None."""

    def __post_init__(self) -> None:
        self.observed: list[Said] = []
        self.ended: list[tuple[int, bool]] = []
        self.resumed: list[int] = []
        self.places: set[str] = set()

    def observe(self, result: Said, place: str) -> None:
        self.observed.append(result)
        self.places.add(place)

    def end_record(self, record: int, *, is_finished: bool) -> None:
        self.ended.append((record, is_finished))

    def is_node_failure(self, result: Said) -> bool:
        return bool(result.problem)

    def resume(self, record: int) -> int | None:
        self.resumed.append(record)
        return record

    def make_loss(self, record: int, detail: str) -> Said:
        return Said(record, "", 0, "lost", detail)


class StoringKeeper(CountingKeeper):
    """Does not resume a record whose last result its caller has stored, as a run does not. `stored`: such records."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stored: set[int] = set()

    def store(self, results: Iterable[Said]) -> Iterator[Said]:
        """Yield results, and store the last of each record."""
        for result in results:
            if result.part == "end":
                self.stored.add(result.record)
            yield result

    def resume(self, record: int) -> int | None:
        super().resume(record)
        return None if record in self.stored else record


class ModuloKeeper(CountingKeeper):
    """Four kinds of records share something: two for each of two nodes, so that none has to move."""

    def get_locality(self, record: int) -> str:
        return str(record % 4)
