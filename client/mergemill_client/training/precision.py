"""The output layer of a language model in fp32."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

Model = TypeVar("Model", bound=nn.Module)


class Fp32Linear(nn.Linear):  # type: ignore[misc]  # torch is not installed where types are checked
    """Linear layer that computes in fp32 and returns fp32, whatever its weights and inputs are; autocast is ignored."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name in torch
        """Return fp32 outputs, [..., out_features]."""
        with torch.autocast(input.device.type, enabled=False):
            return functional.linear(
                input.float(), self.weight.float(), None if self.bias is None else self.bias.float()
            )


def fp32_head(model: Model) -> Model:
    """Let a model compute its logits in fp32, and return it.

    In half precision trainer and inference engine disagree about the probabilities of tokens, most at those with
    large logits; MiniMax-M1 (arXiv 2506.13585) traced that to the output layer. Weights keep their type,
    so tied embeddings, checkpoints and optimisers are as before. Calling it twice does nothing more.

    Args:
        model: has `get_output_embeddings()` as models of transformers have, or an attribute `lm_head`.

    Raises:
        ValueError: the model has no output layer.
        TypeError: the layer is no plain `nn.Linear`, as with adapters of PEFT on it.
    """
    getter = getattr(model, "get_output_embeddings", None)
    head = getter() if getter else getattr(model, "lm_head", None)
    if head is None:
        raise ValueError(f"{type(model).__name__} has no output layer: neither get_output_embeddings() nor lm_head")
    if type(head) not in (nn.Linear, Fp32Linear):
        raise TypeError(f"the output layer is {type(head).__name__}, not nn.Linear; leave it out of adapters")
    head.__class__ = Fp32Linear
    return model
