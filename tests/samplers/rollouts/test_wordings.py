"""Where, and when, each instruction of a guidance is found in the recorded requests."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest

from samplers.rollouts.recorded import RecordedTraffic
from samplers.rollouts.wordings import list_wordings
from samplers.subjects.guidance import Guidance
from taskdb.records.instructions import InstructionSource
from tests.samplers.guidance import GUIDANCE, keep_sources
from tests.samplers.trajectories.making import BASH, SYSTEM, TASK, call, give
from tests.samplers.trajectories.test_build import exchange

Json = dict[str, Any]


def find(guidance: Guidance, *requests: list[Json], tools: tuple[Json, ...] = (BASH,)) -> dict[str, int | None]:
    """Return what is found in requests, which are numbered from 3."""
    exchanges = [exchange(number, sent, call(0), body={"tools": tools}) for number, sent in enumerate(requests, 3)]
    return RecordedTraffic(exchanges=exchanges, n_doubtful=0, raw=b"").find_delivery(guidance)


def describe(text: str) -> Json:
    """Return a tool with a description."""
    return {"type": "function", "function": {"name": "tool", "description": text, "parameters": {"type": "object"}}}


def test_every_text_has_a_key_of_its_own() -> None:
    assert {wording.key: wording.text for wording in list_wordings(GUIDANCE)} == {
        "system": GUIDANCE.system,
        "reminder": GUIDANCE.reminder,
        "repository": GUIDANCE.repository,
        "memory": GUIDANCE.memory,
        "skill-1": GUIDANCE.skills[0].description,
        "skill-2": GUIDANCE.skills[1].description,
        "tool-1": GUIDANCE.tools[0].description,
        "turn-2": GUIDANCE.turns[0],
        "turn-3": GUIDANCE.turns[1],
    }
    assert list_wordings(Guidance()) == []


IN_SYSTEM = ("system", "reminder", "repository", "memory", "skill-1", "skill-2")
IN_USER = ("reminder", "repository", "memory", "skill-1", "skill-2", "turn-2", "turn-3")
IN_TOOLS = ("skill-1", "skill-2", "tool-1")
EVERYTHING = "\n".join(wording.text for wording in list_wordings(GUIDANCE))


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        ({"role": "system", "content": EVERYTHING}, IN_SYSTEM),
        ({"role": "developer", "content": EVERYTHING}, IN_SYSTEM),
        ({"role": "user", "content": EVERYTHING}, IN_USER),
        ({"role": "user", "content": [{"type": "text", "text": EVERYTHING}]}, IN_USER),
        ({"role": "assistant", "content": EVERYTHING}, ()),
        (give(0, EVERYTHING), ()),
    ],
)
def test_a_text_counts_where_its_source_may_be(message: Json, keys: tuple[str, ...]) -> None:
    delivered = find(GUIDANCE, [SYSTEM, TASK, call(0), message])
    assert {key for key, number in delivered.items() if number == 3} == set(keys)
    assert {number for key, number in delivered.items() if key not in keys} <= {None}


def test_descriptions_are_found_in_the_list_of_tools() -> None:
    delivered = find(GUIDANCE, [SYSTEM, TASK], tools=(BASH, describe(f"First. {EVERYTHING}")))
    assert {key for key, number in delivered.items() if number == 3} == set(IN_TOOLS)


def test_the_first_request_counts() -> None:
    guidance = keep_sources(GUIDANCE, [InstructionSource.MEMORY, InstructionSource.TURN])
    with_memory = [SYSTEM, {"role": "user", "content": f"<memory>{guidance.memory}</memory>"}, TASK]
    second = [*with_memory, call(0), give(0), {"role": "user", "content": guidance.turns[0]}]
    assert find(guidance, [TASK], with_memory, second, second) == {"memory": 4, "turn-2": 5, "turn-3": None}


def test_white_space_and_entities_are_no_difference_but_words_are() -> None:
    guidance = keep_sources(GUIDANCE, [InstructionSource.SKILL])
    first, second = (skill.description for skill in guidance.skills)
    listed = f"<skill>{html.escape(first)}</skill>\n<skill>{second.replace(' ', chr(10) + '  ')}</skill>"
    assert find(guidance, [{"role": "system", "content": listed}]) == {"skill-1": 3, "skill-2": 3}
    cut = f"<skill>{first[:-3]}...</skill>"
    assert find(guidance, [{"role": "system", "content": cut}]) == {"skill-1": None, "skill-2": None}


def test_requests_of_other_dialects_are_read() -> None:
    guidance = keep_sources(GUIDANCE, [InstructionSource.SYSTEM, InstructionSource.REMINDER, InstructionSource.TOOL])
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": guidance.system}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": f"<system-reminder>{guidance.reminder}"}]},
        ],
        "tools": [{"name": "t", "description": guidance.tools[0].description, "input_schema": {"type": "object"}}],
    }
    sent = exchange(0, [], None, upstream_dialect="messages", request=json.dumps(body))
    delivered = RecordedTraffic(exchanges=[sent], n_doubtful=0, raw=b"").find_delivery(guidance)
    assert delivered == {"system": 0, "reminder": 0, "tool-1": 0}
