"""Make a tokenizer and a model with random weights.

python -m benchmarks.loop.trainer.begin --data messages.jsonl --layers 4 --width 704 --out DIR
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.loop.trainer.chat import train_tokenizer

VOCABULARY = 1024
CONTEXT = 2048
HEAD_WIDTH = 64


def main() -> None:
    """Write model and tokenizer to the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.data.read_text().splitlines()]
    tokenizer = train_tokenizer(rows, VOCABULARY)
    torch.manual_seed(0)
    # at the usual 0.02 attention is nearly uniform for long, and answers are memorised before copying is learned
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=options.width,
            intermediate_size=options.width * 21 // 8,
            num_hidden_layers=options.layers,
            num_attention_heads=options.width // HEAD_WIDTH,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            initializer_range=options.width**-0.5,
        )
    )
    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)
    lengths = [len(tokenizer.apply_chat_template(row["messages"], return_dict=True)["input_ids"]) for row in rows]
    report = {"parameters": model.num_parameters(), "vocabulary": len(tokenizer), "longest": max(lengths)}
    (options.out / "begin.json").write_text(json.dumps(report | {"tokens": sum(lengths)}))


if __name__ == "__main__":
    main()
