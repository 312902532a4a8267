"""Compare loss and gradients of merged rows with those of their requests' rows, in torch and fp32.

`python torch_program.py ROWS.jsonl`: each line has the rows of one tree, `{"merged": row, "requests": [rows]}`. Prints
the number of trees and the largest difference of losses and of gradients.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

VOCABULARY, PLACES, WIDTH, LAYERS = 32, 128, 16, 2


class TinyTransformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.places = torch.nn.Embedding(PLACES, WIDTH)
        self.queries = torch.nn.ModuleList(torch.nn.Linear(WIDTH, 3 * WIDTH) for _ in range(LAYERS))
        self.mixers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Any, places: Any, mask: Any) -> Any:
        hidden = self.tokens(tokens) + self.places(places)
        for project, mix in zip(self.queries, self.mixers, strict=True):
            query, key, value = project(torch.nn.functional.layer_norm(hidden, (WIDTH,))).chunk(3, dim=-1)
            scores = (query @ key.T / WIDTH**0.5).masked_fill(~mask, float("-inf"))
            hidden = hidden + torch.tanh(mix(scores.softmax(-1) @ value))
        return self.head(hidden)


def build_mask(parents: list[int]) -> Any:
    mask = torch.eye(len(parents), dtype=torch.bool)
    for token, parent in enumerate(parents):
        if parent >= 0:
            mask[token] |= mask[parent]
    return mask


def compute_gradients(model: TinyTransformer, rows: list[dict[str, Any]]) -> tuple[float, Any]:
    model.zero_grad()
    n_trained = sum(sum(row["loss_mask"]) for row in rows)
    total = 0.0
    for row in rows:
        parents = torch.tensor(row["parents"])
        logits = model(torch.tensor(row["token_ids"]), torch.tensor(row["position_ids"]), build_mask(row["parents"]))
        trained = torch.tensor(row["loss_mask"]).nonzero()[:, 0]
        targets = torch.tensor(row["token_ids"])[trained]
        loss = torch.nn.functional.cross_entropy(logits[parents[trained]], targets, reduction="sum") / n_trained
        loss.backward()
        total += float(loss)
    return total, torch.cat([parameter.grad.flatten().clone() for parameter in model.parameters()])


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = TinyTransformer()
    n_trees, loss_difference, gradient_difference = 0, 0.0, 0.0
    for line in Path(sys.argv[1]).read_text().splitlines():
        tree = json.loads(line)
        loss, gradient = compute_gradients(model, [tree["merged"]])
        expected_loss, expected_gradient = compute_gradients(model, tree["requests"])
        n_trees += 1
        loss_difference = max(loss_difference, abs(loss - expected_loss))
        gradient_difference = max(gradient_difference, float((gradient - expected_gradient).abs().max()))
    sys.stdout.write(json.dumps({"trees": n_trees, "loss": loss_difference, "gradient": gradient_difference}))


if __name__ == "__main__":
    main()
