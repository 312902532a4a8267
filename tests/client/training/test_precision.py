"""The output layer in fp32."""

from __future__ import annotations

import copy

import pytest
import torch
from mergemill_client.training import fp32_head
from torch import nn


class TinyModel(nn.Module):
    """A language model of an embedding and an output layer, which share weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64, 256)
        self.lm_head = nn.Linear(256, 64, bias=False)
        self.lm_head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.embedding(ids))


def make_model() -> TinyModel:
    torch.manual_seed(0)
    return TinyModel().to(torch.bfloat16)


IDS = torch.arange(64)


def test_logits_are_those_of_fp32_and_weights_keep_their_type() -> None:
    model = make_model()
    rows = model.embedding.weight.detach().float()
    exact = rows @ rows.T
    assert (model(IDS).float() - exact).abs().max() > 0.1
    logits = fp32_head(model)(IDS)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, exact)
    assert model.lm_head.weight is model.embedding.weight
    assert model.lm_head.weight.dtype == torch.bfloat16


def test_autocast_does_not_lower_it_again() -> None:
    model = fp32_head(make_model().float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(IDS).dtype == torch.float32


def test_gradients_reach_the_weights() -> None:
    model = fp32_head(make_model())
    model(IDS).logsumexp(-1).sum().backward()
    assert model.lm_head.weight.grad.dtype == torch.bfloat16
    assert model.lm_head.weight.grad.abs().sum() > 0


def test_it_survives_copies_and_a_second_call() -> None:
    model = fp32_head(fp32_head(make_model()))
    copied = copy.deepcopy(model)
    copied.lm_head.weight.data.zero_()
    assert copied(IDS).dtype == torch.float32
    assert not copied(IDS).any()
    assert model(IDS).any()
    assert set(model.state_dict()) == set(make_model().state_dict())


def test_the_layer_is_found_as_transformers_name_it() -> None:
    model = make_model()
    model.get_output_embeddings = lambda: model.lm_head
    assert fp32_head(model)(IDS).dtype == torch.float32


def test_a_model_without_a_plain_output_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="no output layer"):
        fp32_head(nn.Sequential(nn.Linear(2, 2)))
    model = make_model()
    model.lm_head = nn.Sequential(nn.Linear(256, 64))
    with pytest.raises(TypeError, match="Sequential"):
        fp32_head(model)
