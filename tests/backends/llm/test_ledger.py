"""The ledger of answers alone: keys, damaged lines, and the pace of calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from backends.llm.base import Message, ModelReply, Tool, ToolCall
from backends.llm.ledger import (
    CALLS_NAME,
    CallIdentity,
    CallLedger,
    Pacer,
    RecordedEmbeddings,
    RecordedModel,
    compute_call_key,
    read_reply,
)
from backends.llm.meter import UsageMeter
from core.errors import CancelledRunError, InputError

PROMPT = (Message(role="system", text="Write."), Message(role="user", text="Now."))
IDENTITY = CallIdentity(purpose="conversation", seed="s1")


class CountingModel:
    """A model that numbers its answers."""

    name = "counting"
    context_tokens = 1000

    def __init__(self) -> None:
        self.keys: list[str] = []

    def complete(self, messages: Sequence[Message], tools: object = (), **more: Any) -> ModelReply:
        self.keys.append(more["request_key"])
        return ModelReply(text=f"answer {len(self.keys)}", finish_reason="length", seconds=1.5)

    def get_model(self, name: str) -> CountingModel:
        return self

    def stop(self) -> None:
        """Nothing runs."""


def complete(model: Any, ledger: CallLedger, **changes: Any) -> ModelReply:
    identity = CallIdentity(**{"purpose": "conversation", "seed": "s1", **changes})
    return RecordedModel(model, ledger, identity, Pacer(0)).complete(PROMPT, meter=UsageMeter())


def test_an_answer_is_that_of_the_ledger_also_in_another_process(tmp_path: Path) -> None:
    model = CountingModel()
    with CallLedger(tmp_path) as ledger:
        first = complete(model, ledger)
        assert complete(model, ledger) == first
        assert complete(model, ledger, sample=2).text == "answer 2"
        assert complete(model, ledger, attempt=2).text == "answer 3"
        assert complete(model, ledger, settings={"temperature": 0.5}).text == "answer 4"
    with CallLedger(tmp_path) as ledger:
        again = complete(model, ledger)
        assert (again.text, again.finish_reason, again.seconds) == ("answer 1", "length", 1.5)
        assert len(ledger) == len(set(model.keys)) == 4
    assert model.keys[0] == compute_call_key("counting", IDENTITY, PROMPT, None)


def test_a_damaged_line_costs_its_own_answer_alone(tmp_path: Path) -> None:
    model = CountingModel()
    with CallLedger(tmp_path) as ledger:
        for sample in (1, 2, 3):
            complete(model, ledger, sample=sample)
    path = tmp_path / CALLS_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\x00garbage\n" + lines[2] + b'{"key": "half')
    with CallLedger(tmp_path) as ledger:
        texts = [complete(model, ledger, sample=sample).text for sample in (1, 2, 3)]
    assert texts == ["answer 1", "answer 4", "answer 3"]
    assert path.read_bytes().splitlines(keepends=True)[:3] == [lines[0], b"\x00garbage\n", lines[2]]
    with CallLedger(tmp_path) as ledger:
        assert [complete(model, ledger, sample=sample).text for sample in (1, 2, 3)] == texts
    assert len(model.keys) == 4


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    model = CountingModel()
    with CallLedger(tmp_path) as ledger:
        threads = [
            threading.Thread(target=complete, args=(model, ledger), kwargs={"sample": n % 10}) for n in range(40)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger) == 10
        texts = [complete(model, ledger, sample=n).text for n in range(10)]
    assert len(set(texts)) == 10
    assert len((tmp_path / CALLS_NAME).read_text().splitlines()) == 10


def test_a_folder_is_open_once(tmp_path: Path) -> None:
    with CallLedger(tmp_path), pytest.raises(InputError, match="another `mergemill simulate` writes to"):
        CallLedger(tmp_path).__enter__()
    with CallLedger(tmp_path) as ledger:
        assert len(ledger) == 0


def test_calls_keep_a_distance_and_end_when_stopped() -> None:
    pacer = Pacer(0.15)
    started = time.monotonic()
    threads = [threading.Thread(target=pacer.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.4 < time.monotonic() - started < 2
    slow = Pacer(100)
    slow.wait()
    threading.Timer(0.1, slow.stop).start()
    with pytest.raises(CancelledRunError):
        slow.wait()
    assert time.monotonic() - started < 5


class CallingModel(CountingModel):
    """A model that calls a tool with its number."""

    def complete(self, messages: Sequence[Message], tools: object = (), **more: Any) -> ModelReply:
        reply = super().complete(messages, tools, **more)
        call = ToolCall(id=f"c{len(self.keys)}", name="look", arguments={"number": len(self.keys)})
        return ModelReply(text=reply.text, tool_calls=(call,))


def test_tool_calls_are_kept_and_what_is_called_and_offered_is_part_of_the_key(tmp_path: Path) -> None:
    model, tool = CallingModel(), Tool(name="look", description="Look.", parameters={"type": "object"})

    def call(ledger: CallLedger, messages: Sequence[Message], *tools: Tool) -> ModelReply:
        return RecordedModel(model, ledger, IDENTITY, Pacer(0)).complete(messages, tools, meter=UsageMeter())

    with CallLedger(tmp_path) as ledger:
        first = call(ledger, PROMPT, tool)
        result = Message(role="tool", text="blue", tool_call_id="c1", tool_name="look")
        second = call(ledger, (*PROMPT, first.message, result), tool)
        other = Message(role="assistant", text=first.text, tool_calls=(ToolCall(id="c1", name="look", arguments={}),))
        call(ledger, (*PROMPT, other, result), tool)
        call(ledger, PROMPT)
    with CallLedger(tmp_path) as ledger:
        assert call(ledger, PROMPT, tool) == first
        assert call(ledger, (*PROMPT, first.message, result), tool) == second
    assert (len(model.keys), second.tool_calls[0].arguments) == (4, {"number": 2})


class CountingEmbeddings:
    """Embeddings that are the length of a text, and a third."""

    name = "lengths"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, meter: UsageMeter, request_key: str = "") -> list[list[float]]:
        self.texts += texts
        return [[len(text), 1 / 3] for text in texts]

    def stop(self) -> None:
        """Nothing runs."""


def test_how_the_arguments_of_a_call_were_written_is_kept_and_is_no_part_of_the_key(tmp_path: Path) -> None:
    """Earlier ledgers do not have it, and their answers stay paid."""
    call = ToolCall(id="c1", name="look", arguments={"number": 1}, written='{"number":1}')
    line = {"text": "", "reasoning": "", "finish_reason": "stop", "usage": {}, "cost": 0, "seconds": 0}
    earlier = read_reply(
        {**line, "tool_calls": [{"id": "c1", "name": "look", "arguments": {"number": 1}, "problem": ""}]}
    )
    keys = {
        compute_call_key("m", IDENTITY, [*PROMPT, Message(role="assistant", text="", tool_calls=(tool_call,))], None)
        for tool_call in (call, earlier.tool_calls[0])
    }
    assert (len(keys), earlier.tool_calls[0].written) == (1, "")
    with CallLedger(tmp_path) as ledger:
        ledger.add("k", IDENTITY, PROMPT, ModelReply(text="", tool_calls=(call,)), "m")
        assert read_reply(ledger.find("k") or {}).tool_calls[0].written == '{"number":1}'


def test_a_text_is_embedded_once_and_its_vector_is_the_same_in_another_process(tmp_path: Path) -> None:
    model, identity = CountingEmbeddings(), CallIdentity(purpose="embedding", seed="themes")

    def embed(ledger: CallLedger, *texts: str) -> list[list[float]]:
        return RecordedEmbeddings(model, ledger, identity, Pacer(0)).embed(texts, meter=UsageMeter())

    with CallLedger(tmp_path) as ledger:
        first = embed(ledger, "a", "bb")
        assert embed(ledger, "bb", "ccc", "a") == [first[1], [3.0, first[0][1]], first[0]]
    with CallLedger(tmp_path) as ledger:
        assert embed(ledger, "a", "bb") == first
    assert model.texts == ["a", "bb", "ccc"]
