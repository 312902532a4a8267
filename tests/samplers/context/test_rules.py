"""Context rules: transcripts of 30 turns, before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from samplers.context.rules import CLEARED, PRESETS, ClearingRule, Kept
from tests.samplers.context.transcripts import OPENING, answer, make_transcript, output

WHOLE = make_transcript(30)
NOTE, TALK = PRESETS["note"], PRESETS["talk"]
assert isinstance(NOTE, ClearingRule)
assert isinstance(TALK, ClearingRule)
LIMIT = 38_400
"""30 % of 128,000 tokens."""


def test_nothing_is_cleared_up_to_the_trigger() -> None:
    for rule in PRESETS.values():
        assert rule.clear(WHOLE, LIMIT) == WHOLE
    assert NOTE.clear(WHOLE, LIMIT + 1) != WHOLE
    assert TALK.clear(WHOLE, LIMIT + 1) != WHOLE
    assert PRESETS["none"].clear(WHOLE, 10**9) == WHOLE


def test_note_keeps_the_first_answer_the_last_five_and_all_outputs() -> None:
    expected = [*OPENING, answer(1), output(1)]
    for number in range(2, 26):
        expected += [answer(number, text=False, reasoning=False), output(number)]
    for number in range(26, 31):
        expected += [answer(number), output(number)]
    assert NOTE.clear(WHOLE, LIMIT + 1) == expected


def test_talk_clears_outputs_and_reasoning_of_all_but_the_last_five() -> None:
    expected = [*OPENING]
    for number in range(1, 26):
        expected += [answer(number, reasoning=False), output(number, CLEARED)]
    for number in range(26, 31):
        expected += [answer(number), output(number)]
    assert TALK.clear(WHOLE, LIMIT + 1) == expected


def test_settings_decide_on_each_part() -> None:
    rule = replace(NOTE, first=0, last=1, texts=Kept.KEPT, reasoning=Kept.KEPT, outputs=Kept.NONE)
    turns = [message for number in (1, 2) for message in (answer(number), output(number, CLEARED))]
    assert rule.clear(make_transcript(3), LIMIT + 1) == [*OPENING, *turns, answer(3), output(3)]
    rule = replace(NOTE, first=0, last=0, texts=Kept.NONE, reasoning=Kept.NONE, outputs=Kept.LAST)
    turns = [message for n in (1, 2) for message in (answer(n, text=False, reasoning=False), output(n, CLEARED))]
    assert rule.clear(make_transcript(3), LIMIT + 1) == [*OPENING, *turns, answer(3), output(3)]


def test_clearing_again_changes_nothing_and_the_input_stays_as_it_was() -> None:
    before = make_transcript(30)
    cleared = TALK.clear(before, LIMIT + 1)
    assert before == WHOLE
    assert TALK.clear(cleared, LIMIT + 1) == cleared


def test_messages_of_system_and_user_stay_and_an_answer_without_call_has_a_text() -> None:
    later = {"role": "user", "content": "And who added it?"}
    messages = [*OPENING, answer(1, has_call=False), later, answer(2), output(2), answer(3), output(3)]
    rule = replace(NOTE, first=0, last=1)
    assert rule.clear(messages, LIMIT + 1) == [
        *OPENING,
        {"role": "assistant", "content": CLEARED},
        later,
        answer(2, text=False, reasoning=False),
        output(2),
        answer(3),
        output(3),
    ]


def test_thoughts_in_the_text_are_reasoning() -> None:
    thought = {
        "role": "assistant",
        "content": "<think>\nLong.\n</think>\n\nI search.",
        "tool_calls": answer(1)["tool_calls"],
    }
    messages = [*OPENING, thought, output(1), answer(2), output(2)]
    cleared = replace(TALK, last=1).clear(messages, LIMIT + 1)
    assert cleared[2]["content"] == "I search."


@pytest.mark.parametrize("name", ["note", "talk"])
def test_the_version_names_every_setting(name: str) -> None:
    rule = PRESETS[name]
    assert isinstance(rule, ClearingRule)
    assert rule.version.startswith(f"{name}(window=128000,trigger=0.3,first=")
    others = [
        replace(rule, window=64_000),
        replace(rule, trigger=0.5),
        replace(rule, first=3),
        replace(rule, last=4),
        replace(rule, texts=Kept.NONE),
        replace(rule, reasoning=Kept.NONE),
        replace(rule, outputs=Kept.NONE),
    ]
    assert len({other.version for other in [rule, *others]}) == 8
