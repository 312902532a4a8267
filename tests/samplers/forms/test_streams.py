"""Record and agent have the calls that a stream was made of, however its server cuts and marks them."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from samplers.gateway.client_stream import render_event
from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import GatewayFailure
from samplers.gateway.pending_answers import PendingAnswer
from samplers.gateway.recorder import fill_with_failure
from tests.samplers.forms.playing import Call, play_answer, play_stream
from tests.samplers.forms.streams import (
    BLOCK_INDICES,
    INPUTS,
    REFUSED_CHUNKS,
    REFUSED_EVENTS,
    KnownCall,
    draw_calls,
    list_forms,
    make_chunk,
    write_chunks,
    write_events,
)

NO_IDS: list[dict[str, Any]] = [{}, {"id": None}, {"id": ""}]
FORMS = list_forms()
CLIENTS = (Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES)


def check_calls(known: Sequence[KnownCall], recorded: list[Call], read: list[Call], *, has_ids: bool = True) -> None:
    assert recorded == read
    assert [call[1:] for call in read] == [(call.name, call.arguments) for call in known]
    ids = [call[0] for call in read]
    assert ids == [call.id for call in known] if has_ids else len(set(ids)) == len(ids) and all(ids)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_form_of_a_stream_has_the_same_calls_for_record_and_agent(client: Dialect) -> None:
    assert len(FORMS) >= 200
    for seed, form in enumerate(FORMS):
        draw = random.Random(seed)
        known = draw_calls(draw)
        chunks = list(write_chunks(known, form, draw))
        recorded, read, _ = play_stream(chunks, client, Dialect.CHAT)
        try:
            check_calls(known, recorded, read, has_ids=form.ids != "in none")
        except AssertionError as error:
            raise AssertionError(f"{seed}: {form}") from error


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("form", INPUTS)
@pytest.mark.parametrize("index", BLOCK_INDICES)
def test_blocks_of_messages_have_the_same_calls_for_record_and_agent(client: Dialect, index: str, form: str) -> None:
    for seed in range(20):
        draw = random.Random(seed)
        known = draw_calls(draw)
        recorded, read, _ = play_stream(list(write_events(known, index, form, draw)), client, Dialect.MESSAGES)
        check_calls(known, recorded, read)


@pytest.mark.parametrize("client", CLIENTS)
def test_calls_of_whole_answers_are_the_same_for_record_and_agent(client: Dialect) -> None:
    for seed in range(100):
        draw = random.Random(seed)
        known = draw_calls(draw)
        has_ids = draw.random() < 0.7
        calls = [
            {
                **({"id": call.id} if has_ids else draw.choice(NO_IDS)),
                "function": {"name": call.name, "arguments": write_arguments(call, draw)},
            }
            for call in known
        ]
        content = draw.choice([None, "", "I call.", [{"type": "text", "text": "I call."}]])
        message = {"role": "assistant", "content": content, "tool_calls": calls}
        answer = {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        usage = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
        check_calls(known, *play_answer(answer | usage, client, Dialect.CHAT)[:2], has_ids=has_ids)


def write_arguments(call: KnownCall, draw: random.Random) -> Any:
    return draw.choice([call.arguments, json.dumps(call.arguments)])


def test_a_stream_of_the_published_form_reaches_chat_clients_byte_for_byte() -> None:
    published = [
        form
        for form in FORMS
        if (form.index.title, form.ids, form.names)
        == ("that of its call", "in the first piece", "whole in the first piece")
        and form.arguments != "an object"
        and form.order in ("one call after the other", "in turns")
    ]
    assert published
    for seed, form in enumerate(published):
        draw = random.Random(seed)
        known = [call for call in draw_calls(draw) if call.name != "add"]  # `add` may be the beginning of `add_all`
        if not known:
            continue
        chunks = [chunk for chunk in write_chunks(known, form, draw) if "usage" not in chunk]
        if any(isinstance(choice["delta"].get("content"), list) for chunk in chunks for choice in chunk["choices"]):
            continue
        _, _, content = play_stream(chunks, Dialect.CHAT, Dialect.CHAT)
        assert content == b"".join(render_event("", chunk) for chunk in chunks) + b"data: [DONE]\n\n"


PYTHON = re.compile(r"Error|Traceback|object has no|NoneType|not subscriptable|dict|pydantic|Input should")
REFUSED = [
    *((Dialect.CHAT, title, *case) for title, case in REFUSED_CHUNKS.items()),
    *((Dialect.MESSAGES, title, *case) for title, case in REFUSED_EVENTS.items()),
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("upstream", "title", "event", "sentence"), REFUSED, ids=[case[1] for case in REFUSED])
def test_other_forms_are_refused_in_a_sentence(
    client: Dialect, upstream: Dialect, title: str, event: dict[str, Any], sentence: str
) -> None:
    end = make_chunk({}, "stop") if upstream is Dialect.CHAT else {"type": "message_stop"}
    with pytest.raises(GatewayFailure) as refused:
        play_stream([event, end], client, upstream)
    assert sentence in refused.value.detail
    assert refused.value.kind == "nonsense"
    pending = PendingAnswer()
    fill_with_failure(pending, refused.value, client)
    content = asyncio.run(read_content(pending))
    error = json.loads(content)["error"]
    assert sentence in error["message"]
    assert not PYTHON.search(error["message"])
    assert error["type"] == "api_error"


async def read_content(pending: PendingAnswer) -> bytes:
    return b"".join([piece async for piece, _ in pending.read()])


@pytest.mark.parametrize("client", CLIENTS)
def test_the_earlier_form_of_a_call_is_a_call(client: Dialect) -> None:
    pieces = [{"name": "add", "arguments": ""}, {"arguments": '{"x"'}, {"arguments": ": 1}"}]
    chunks = [*(make_chunk({"function_call": piece}) for piece in pieces), make_chunk({}, "function_call")]
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    recorded, read, content = play_stream([*chunks, {**make_chunk({}), "usage": usage}], client, Dialect.CHAT)
    assert [call[1:] for call in recorded] == [("add", {"x": 1})]
    if client is Dialect.CHAT:
        assert b"".join(render_event("", chunk) for chunk in chunks) in content
    else:
        assert read == recorded


def test_a_stream_that_goes_on_with_a_complete_call_is_an_error() -> None:
    function = {"name": "add", "arguments": "{}"}
    pieces = [{"index": at, "id": str(at), "function": function} for at in (0, 1)]
    pieces.append({"index": 0, "id": "0", "function": {"arguments": '{"x": 1}'}})
    chunks = [make_chunk({"tool_calls": [piece]}) for piece in pieces]
    for client in (Dialect.MESSAGES, Dialect.RESPONSES):
        with pytest.raises(GatewayFailure, match="goes back to an earlier tool call"):
            play_stream(chunks, client, Dialect.CHAT)


def test_text_between_pieces_of_calls_is_kept() -> None:
    pieces = [{"index": 0, "id": "a", "function": {"name": "mul", "arguments": '{"x"'}}]
    pieces += [{"index": 1, "id": "b", "function": {"name": "bash", "arguments": "{}"}}]
    chunks = [make_chunk({"tool_calls": [piece]}) for piece in pieces]
    chunks += [
        make_chunk({"content": "Done."}),
        make_chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}),
    ]
    chunks += [make_chunk({}, "tool_calls") | {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}]
    for client in CLIENTS:
        recorded, read, content = play_stream(chunks, client, Dialect.CHAT)
        assert recorded == read == [("a", "mul", {"x": 1}), ("b", "bash", {})]
        assert b"Done." in content
