"""Embeddings over real HTTP: vectors in the order of the texts, and errors in one line."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from backends.llm.client import ChatModel
from backends.llm.meter import UsageMeter
from backends.llm.response import EmbeddingResponse
from core.config import Settings
from core.errors import InputError
from core.settings.machine import HostSettings
from tests.samplers.scripted_model import ScriptedModel, Turn


def open_model(url: str, **changes: Any) -> closing[ChatModel]:
    return closing(
        ChatModel(
            Settings(llm=url, model="small", llm_price_prompt=2, **changes).llm,
            HostSettings(),
            first_pause=0.01,
        )
    )


def test_vectors_come_in_the_order_of_the_texts_and_are_counted() -> None:
    with ScriptedModel([Turn()], embed=lambda text: [len(text), 0.5]) as server:
        meter = UsageMeter()
        with open_model(server.url) as model:
            assert model.embed(["a b c", "d"], meter=meter, request_key="k") == [[5.0, 0.5], [1.0, 0.5]]
        assert (server.requests[0].body["input"], server.paid_keys["k"]) == (["a b c", "d"], 1)
    assert (meter.requests, meter.prompt_tokens, meter.cost) == (1, 4, 8e-06)


def test_an_endpoint_that_refuses_is_an_error_of_one_line() -> None:
    with (
        ScriptedModel([Turn()], key="right") as server,
        open_model(server.url, llm_key="wrong") as model,
        pytest.raises(InputError, match="rejects small with 401"),
    ):
        model.embed(["a"], meter=UsageMeter())


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"data": "none"},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": []}]},
        {"data": [{"embedding": [1.0]}, {"embedding": ["1"]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
    ],
)
def test_what_is_no_list_of_vectors_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="vectors"):
        EmbeddingResponse().read(data, 2)


def test_vectors_are_sorted_by_their_index() -> None:
    response = EmbeddingResponse()
    response.read({"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}, 2)
    assert response.vectors == [[1.0], [2.0]]
