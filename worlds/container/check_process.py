"""Process of one check function. It reads JSON alone: the world's program never ran in it."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Mapping
from typing import Any

from worlds.container.canonical import NotJsonError, copy_json, encode_json
from worlds.container.frames import pack_frame, read_frame
from worlds.container.frozen import freeze_clock, replace_randomness, seed_step
from worlds.container.reasons import CheckOutcome


def run_check(channel: socket.socket) -> None:
    """Run one check. The message has `source`, `function`, `initial`, `final`, `seed`; the answer `outcome`, `detail`.

    The function takes `final_state`, `initial_state` or both; `initial_state` is a global as well.
    """
    message = read_frame(channel)
    if message is None:
        return
    freeze_clock(message["seed"])
    replace_randomness()
    seed_step(message["seed"], 0)
    try:
        outcome, detail = _run(message)
    except MemoryError:
        outcome, detail = CheckOutcome.MEMORY, ""
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        outcome, detail = CheckOutcome.RAISES, type(error).__name__
    channel.sendall(pack_frame(encode_json({"outcome": outcome.value, "detail": detail})))


def _run(message: Mapping[str, Any]) -> tuple[CheckOutcome, str]:
    states = {"initial_state": message["initial"], "final_state": message["final"]}
    before = encode_json(states)
    namespace: dict[str, Any] = {"__name__": "check", "initial_state": copy_json(states["initial_state"])}
    exec(compile(message["source"], "check", "exec"), namespace)  # noqa: S102 - in a process without rights
    function = namespace[message["function"]]
    given = {name: states[name] for name in inspect.signature(function).parameters}
    value = function(**given)
    try:
        is_altered = encode_json(states) != before
    except NotJsonError:
        is_altered = True
    if is_altered:
        return CheckOutcome.ALTERED, ""
    if value is True:
        return CheckOutcome.PASSED, ""
    return (CheckOutcome.FAILED, "") if value is False else (CheckOutcome.NOT_BOOLEAN, type(value).__name__)
