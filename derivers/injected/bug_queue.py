"""Queue of bugs to try: in turn from all files, functions and operators, so that tasks differ."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable

from derivers.injected.bug_sites import FunctionMap
from derivers.injected.bug_writer import MODEL_OPERATOR
from derivers.injected.history_bugs import HISTORY_OPERATOR
from mutation import Mutation
from taskdb.records import Injection

SHARES = {HISTORY_OPERATOR: 5, MODEL_OPERATOR: 5}
"""How often bugs of an operator are chosen for each of another operator: people and models make many sorts of bugs."""

Place = tuple[str, str]
"""Path of a file, and name of a function in it."""


class BugQueue:
    """Bugs to try, the next from the file, the function and the operator of which the fewest were used.

    A bug that gives a task counts for its operator, a bug that is tried for its place. Deterministic: of equally good
    bugs the first is next.

    Args:
        bugs: the bugs, in order of preference.
        functions: functions of their files.
        used: bugs of tasks that exist, which are not tried again.
        tried: keys of further bugs that were tried before (`make_key`). Their places and operators count.
    """

    def __init__(
        self,
        bugs: Iterable[Mutation],
        functions: FunctionMap,
        used: Iterable[Injection] = (),
        tried: Collection[str] = (),
    ) -> None:
        self._functions = functions
        self._operators: Counter[str] = Counter()
        self._tried_operators: Counter[str] = Counter()
        self._places: Counter[Place] = Counter()
        self._files: Counter[str] = Counter()
        self._tasks: Counter[str | Place] = Counter()
        taken = set()
        for injection in used:
            taken.add((injection.path, injection.line, injection.operator, injection.detail))
            self._operators[injection.operator] += 1
            self._tasks.update([injection.path, (injection.path, injection.function)])
            self._count_place((injection.path, injection.function))
        self._waiting: dict[str, dict[Place, list[Mutation]]] = {}
        self.tried: dict[str, Mutation] = {}
        """Key of a bug that was tried before -> the bug."""
        for bug in bugs:
            if (bug.path, bug.line, bug.operator, bug.detail) in taken:
                continue
            if tried and (key := make_key(bug)) in tried:
                self.tried[key] = bug
                self._count_place(self.find_place(bug))
                self._tried_operators[bug.operator] += 1
                continue
            self._waiting.setdefault(bug.path, {}).setdefault(self.find_place(bug), []).append(bug)

    def __len__(self) -> int:
        """Return the number of bugs that were not taken."""
        return sum(len(bugs) for places in self._waiting.values() for bugs in places.values())

    def find_place(self, bug: Mutation) -> Place:
        """Return the file and the function of a bug."""
        return bug.path, self._functions.find_name(bug.path, bug.line)

    def take(self, number: int) -> list[Mutation]:
        """Remove and return the next bugs, at most `number`."""
        taken: list[Mutation] = []
        while self._waiting and len(taken) < number:
            path = min(self._waiting, key=self._files.__getitem__)
            places = self._waiting[path]
            place = min(places, key=self._places.__getitem__)
            bug = min(places[place], key=self._rank_operator)
            self._remove(bug, place)
            self._count_place(place)
            self._tried_operators[bug.operator] += 1
            taken.append(bug)
        return taken

    def count_task(self, bug: Mutation) -> None:
        """Count the operator and the place of a bug that gives a task."""
        self._operators[bug.operator] += 1
        self._tasks.update([bug.path, self.find_place(bug)])

    def rank_place(self, bug: Mutation) -> tuple[int, int]:
        """Return how many bugs of tasks are in the file and in the function of a bug."""
        return self._tasks[bug.path], self._tasks[self.find_place(bug)]

    def _rank_operator(self, bug: Mutation) -> tuple[float, float]:
        share = SHARES.get(bug.operator, 1)
        return self._operators[bug.operator] / share, self._tried_operators[bug.operator] / share

    def _remove(self, bug: Mutation, place: Place) -> None:
        places = self._waiting[bug.path]
        places[place].remove(bug)
        if not places[place]:
            del places[place]
        if not places:
            del self._waiting[bug.path]

    def _count_place(self, place: Place) -> None:
        self._places[place] += 1
        self._files[place[0]] += 1


def make_key(bug: Mutation) -> str:
    """Return the key of a bug: a hash of its file with it."""
    return hashlib.sha256(f"{bug.path}\0".encode(errors="surrogateescape") + bug.after).hexdigest()[:32]
