"""Supervised fine-tuning on conversations with TRL, with the loss on the answers alone.

python -m benchmarks.loop.trainer.sft --model DIR --data messages.jsonl --epochs 10 [--until LOSS] --out DIR
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import SFTConfig, SFTTrainer

RECENT = 5
"""Steps whose mean loss decides about the end."""


class LossStop(TrainerCallback):  # type: ignore[misc]  # transformers is not installed where types are checked
    """Ends the training once the mean loss of the last steps is low enough: the model is to stay unsure of answers."""

    def __init__(self, loss: float) -> None:
        self.loss = loss

    def on_log(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """Look at the losses so far."""
        losses = [entry["loss"] for entry in state.log_history if "loss" in entry][-RECENT:]
        if len(losses) == RECENT and sum(losses) / RECENT < self.loss:
            control.should_training_stop = True


def main() -> None:
    """Write the trained model, its tokenizer and `train.json` to the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=float, required=True)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--until", type=float, default=0.0, metavar="LOSS", help="end once the loss is lower")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.data.read_text().splitlines()]
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(options.model),
        processing_class=AutoTokenizer.from_pretrained(options.model),
        callbacks=[LossStop(options.until)],
        train_dataset=Dataset.from_list([{"messages": row["messages"]} for row in rows]),
        args=SFTConfig(
            output_dir=str(options.out / "trainer"),
            assistant_only_loss=True,
            num_train_epochs=options.epochs,
            per_device_train_batch_size=options.batch,
            learning_rate=options.rate,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=5,
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
