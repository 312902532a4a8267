"""Bugs that can be tried in an environment, before any is: read and parsed once for all steps of a search."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from derivers.injected.bug_sites import FunctionMap
from evaluation.controls.memory import ControlMemory
from mutation import Mutation

MAX_KEPT = 4
"""Searches whose inputs a process keeps: each holds the text of thousands of mutants."""


@dataclass(frozen=True, kw_only=True)
class SearchInputs:
    """Files of the base tree, and the bugs that follow from them and from the history."""

    contents: Mapping[str, bytes]
    """Path -> content of the files into which bugs are injected."""
    functions: FunctionMap
    history_bugs: Sequence[Mutation]
    mutants: Sequence[Mutation]
    memory: ControlMemory | None = None
    """Values of controls with their results; None before the first task."""


class RecentInputs:
    """Inputs of the searches of this process whose next step may follow, the oldest of too many left out.

    They depend on the environment and on the measurements of the first step, so the progress of a search is their key.
    """

    def __init__(self) -> None:
        self._inputs: OrderedDict[str, SearchInputs] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, progress: bytes) -> SearchInputs | None:
        """Remove and return the inputs of the search with this progress; None where another process has them."""
        with self._lock:
            return self._inputs.pop(_make_key(progress), None)

    def keep(self, progress: bytes, inputs: SearchInputs) -> None:
        """Keep the inputs for the next step."""
        with self._lock:
            self._inputs[_make_key(progress)] = inputs
            while len(self._inputs) > MAX_KEPT:
                self._inputs.popitem(last=False)


def _make_key(progress: bytes) -> str:
    return hashlib.sha256(progress).hexdigest()
