"""Supervised fine-tuning on conversations with TRL, with the loss on the answers alone.

python -m benchmarks.loop.trainer.sft --model DIR --data messages.jsonl --epochs 10 --out DIR
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer


def main() -> None:
    """Write the trained model, its tokenizer and `train.json` to the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=float, required=True)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.data.read_text().splitlines()]
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(options.model),
        processing_class=AutoTokenizer.from_pretrained(options.model),
        train_dataset=Dataset.from_list([{"messages": row["messages"]} for row in rows]),
        args=SFTConfig(
            output_dir=str(options.out / "trainer"),
            assistant_only_loss=True,
            num_train_epochs=options.epochs,
            per_device_train_batch_size=options.batch,
            learning_rate=options.rate,
            lr_scheduler_type="cosine",
            warmup_steps=1 / 15,
            max_length=None,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=True,
            gradient_checkpointing=False,
            dataloader_pin_memory=False,
            disable_tqdm=True,
            seed=0,
        ),
    )
    trainer.train()
    trainer.save_model(str(options.out))
    (options.out / "train.json").write_text(json.dumps(trainer.state.log_history))


if __name__ == "__main__":
    main()
