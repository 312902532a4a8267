"""Processes of checks. They read JSON alone: the world's program never ran in them.

The checks of a request share a process of ours, which reads states and sources and runs nothing foreign; each check
is run by a copy of it, which gives up all rights first and ends with its check.
"""

from __future__ import annotations

import inspect
import marshal
import os
import select
import signal
import socket
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn

from guest.world.canonical import NotJsonError, encode_json
from guest.world.confinement import CHANNEL, Confinement, give_up_rights, keep_descriptors
from guest.world.frames import pack_frame, read_frame
from guest.world.frozen import read_real_clock, seed_step, set_clock
from guest.world.reasons import CheckOutcome

ANSWER_BYTES = 4096
"""Length of the answer of a check."""
CHUNK = 1 << 16
MARSHAL_VERSION = 2
"""A version that writes equal values as equal bytes, whoever refers to them."""
VARIABLE_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
GRACE_POLLS, GRACE_SECONDS = 20, 0.005
"""How often, and how far apart, a process is looked at that gave no answer."""
NICENESS = 5
"""Checks give way to calls of tools, for whose results agents wait."""
Outcome = dict[str, str]
_OUTCOMES = frozenset(outcome.value for outcome in CheckOutcome)


def run_checks(channel: socket.socket, confinements: Sequence[Confinement]) -> None:
    """Run the checks of a request, as many at a time as there are confinements.

    The message has `initial`, `final`, `seed`, `checks` (list of `source`, `function`), `seconds` and `output_bytes` of
    a check; the answer is `{"outcomes": [{"outcome", "detail"}]}` in their order. A function takes `final_state`,
    `initial_state` or both; `initial_state` is a global as well.
    """
    message = read_frame(channel)
    if message is None:
        return
    os.nice(NICENESS)
    set_clock(message["seed"])
    outcomes = CheckRunner(message, confinements).run()
    channel.sendall(pack_frame(encode_json({"outcomes": outcomes})))


class CheckRunner:
    """Runs the checks of a message; see `run_checks`."""

    def __init__(self, message: Mapping[str, Any], confinements: Sequence[Confinement]) -> None:
        self._message = message
        self._states = {"initial_state": message["initial"], "final_state": message["final"]}
        self._packed = marshal.dumps(self._states, MARSHAL_VERSION)
        self._free = list(confinements)
        self._running: dict[int, RunningCheck] = {}
        self._poll = select.poll()

    def run(self) -> list[Outcome]:
        """Return the outcomes in the order of the checks."""
        waiting = list(enumerate(self._message["checks"]))
        outcomes: dict[int, Outcome] = {}
        while waiting or self._running:
            while waiting and self._free:
                self._start(*waiting.pop(0))
            for running in self._wait():
                outcomes[running.number] = running.finish()
                self._free.append(running.confinement)
        return [outcomes[number] for number in range(len(outcomes))]

    def _start(self, number: int, check: Mapping[str, str]) -> None:
        running = RunningCheck(number, self._free.pop(), read_real_clock() + self._message["seconds"])
        if running.is_child:
            seed_step(self._message["seed"], 0)  # `random` has drawn itself a seed in the fork
            running.become_check(check, self._states, self._packed)
        for descriptor in running.descriptors:
            self._running[descriptor] = running
            self._poll.register(descriptor, select.POLLIN)

    def _wait(self) -> list[RunningCheck]:
        """Read the messages that are there, and return the processes that have answered, ended or exceeded a limit."""
        running = set(self._running.values())
        left = min(check.deadline for check in running) - read_real_clock()
        for descriptor, _ in self._poll.poll(max(0.0, 1000 * left)):
            if not self._running[descriptor].receive(descriptor, self._message["output_bytes"]):
                self._forget(descriptor)
        now = read_real_clock()
        over = [check for check in running if check.check_time(now)]
        for descriptor in [number for number, check in self._running.items() if check in over]:
            self._forget(descriptor)
        return over

    def _forget(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._running[descriptor]


class RunningCheck:
    """Process of a check.

    Args:
        number: number of the check.
        confinement: confinement of the process.
        deadline: seconds of the real clock at which it is ended.
    """

    def __init__(self, number: int, confinement: Confinement, deadline: float) -> None:
        self.number = number
        self.confinement = confinement
        self.deadline = deadline
        self._answer = bytearray()
        self._printed = 0
        self._reason: tuple[CheckOutcome, str] | None = None
        self._answers, self._their_answers = os.pipe()
        self._output, self._their_output = os.pipe()
        self.descriptors = (self._answers, self._output)
        self._pid = os.fork()
        if not self.is_child:
            os.close(self._their_answers)
            os.close(self._their_output)

    @property
    def is_child(self) -> bool:
        """Whether this is the process of the check."""
        return self._pid == 0

    def become_check(self, check: Mapping[str, str], states: dict[str, Any], packed: bytes) -> NoReturn:
        """Run the check in this process and end it. `packed` holds the states, too."""
        try:
            keep_descriptors(self._their_output, self._their_answers)
            give_up_rights(self.confinement)
            outcome, detail = _run(check, states, packed)
            os.write(CHANNEL, f"{outcome.value}\n{detail}".encode(errors="replace"))
        finally:
            os._exit(0)

    def receive(self, descriptor: int, output_bytes: int) -> bool:
        """Take the messages that the process sent or printed; return whether there can be more."""
        data = os.read(descriptor, CHUNK)
        if descriptor == self._output:
            self._printed += len(data)
            if self._printed > output_bytes:
                self._reason = CheckOutcome.OUTPUT, f"more than {output_bytes} bytes were printed"
        else:
            self._answer += data
            if not data or len(self._answer) > ANSWER_BYTES:
                self._reason = CheckOutcome.CRASHED, "the process has ended"
        return bool(data)

    def check_time(self, now: float) -> bool:
        """Return whether the process is over: by its end, by a limit, or by its time."""
        if self._reason is None and now >= self.deadline:
            self._reason = CheckOutcome.ENDLESS_LOOP, "the time of the check is used up"
        return self._reason is not None

    def finish(self) -> Outcome:
        """End the process and return the outcome."""
        reason, detail = self._reason or (CheckOutcome.CRASHED, "the process was ended")
        outcome = _read_answer(self._answer) if reason is CheckOutcome.CRASHED else None
        if outcome is None and reason is CheckOutcome.CRASHED and self._was_killed():
            reason, detail = CheckOutcome.MEMORY, "the container has no more memory"
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        for descriptor in self.descriptors:
            os.close(descriptor)
        return outcome or {"outcome": reason.value, "detail": detail}

    def _was_killed(self) -> bool:
        """Return whether the kernel ended the process, which it does for memory."""
        for _ in range(GRACE_POLLS):  # it closes its files a moment before it is known to have ended
            ended = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                return ended.si_code == os.CLD_KILLED and ended.si_status == signal.SIGKILL
            select.select([], [], [], GRACE_SECONDS)
        return False


def _read_answer(data: bytearray) -> Outcome | None:
    """Return the outcome that a process sent; None for anything else."""
    outcome, _, detail = data.decode(errors="replace").partition("\n")
    return {"outcome": outcome, "detail": detail[:500]} if outcome in _OUTCOMES else None


def run_check(check: Mapping[str, str], initial: Any, final: Any) -> tuple[CheckOutcome, str]:
    """Return the outcome of a check and a detail. It is run in this process, which should have no rights.

    `check` has `source` and `function`.
    """
    states = {"initial_state": initial, "final_state": final}
    return _run(check, states, marshal.dumps(states, MARSHAL_VERSION))


def _run(check: Mapping[str, str], states: dict[str, Any], packed: bytes) -> tuple[CheckOutcome, str]:
    """Run a check in this process, which has no rights; `packed` holds the states as they were."""
    try:
        value, is_altered = _call(check, states, packed)
    except MemoryError:
        return CheckOutcome.MEMORY, ""
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return CheckOutcome.RAISES, type(error).__name__
    if is_altered:
        return CheckOutcome.ALTERED, ""
    if value is True:
        return CheckOutcome.PASSED, ""
    return (CheckOutcome.FAILED, "") if value is False else (CheckOutcome.NOT_BOOLEAN, type(value).__name__)


def _call(check: Mapping[str, str], states: dict[str, Any], packed: bytes) -> tuple[Any, bool]:
    """Return the value that the function of a check returns, and whether it altered the states."""
    namespace: dict[str, Any] = {"__name__": "check"}
    if "initial_state" in check["source"]:
        namespace["initial_state"] = marshal.loads(packed)["initial_state"]  # noqa: S302
    exec(compile(check["source"], "check", "exec"), namespace)  # noqa: S102
    function = namespace[check["function"]]
    value = function(**{name: states[name] for name in _list_parameters(function)})
    return value, _is_altered(states, packed)


def _list_parameters(function: Any) -> Sequence[str]:
    """Return the names of a function's parameters."""
    if type(function) is FunctionType and not hasattr(function, "__wrapped__"):
        code = function.__code__
        if not code.co_flags & VARIABLE_FLAGS:
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return list(inspect.signature(function).parameters)


def _is_altered(states: dict[str, Any], packed: bytes) -> bool:
    try:
        if marshal.dumps(states, MARSHAL_VERSION) == packed:
            return False
        return encode_json(states) != encode_json(marshal.loads(packed))  # noqa: S302 - keys may have another order
    except (NotJsonError, ValueError):
        return True
