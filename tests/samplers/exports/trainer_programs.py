"""Programs that read training data with the code of trainers, run in environments of their own.

Each prints one JSON object a line, for each row that is trained: `trained`, the text of the tokens with a loss.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.exporters.consumers import install, run_command

TORCH = ("torch==2.9.1", "torchaudio==2.9.1", "torchvision==0.24.1")
NO_TRITON = ("triton ; python_version < '3'",)
AXOLOTL_PACKAGES = (
    "torch==2.9.1",
    "transformers==5.23.0",
    "datasets==5.2.0",
    "addict",
    "fire",
    "loguru",
    "colorama",
    "peft",
)


def install_llama_factory() -> Path:
    """Return the `bin` folder of LLaMA-Factory's environment."""
    return install("llamafactory==0.9.5", sys.executable, *TORCH)


def install_trl() -> Path:
    """Return the `bin` folder of TRL's environment."""
    return install("verl==0.9.1", sys.executable, "trl==1.16.0", "pytest", "pytest-timeout", overrides=NO_TRITON)


def install_axolotl() -> Path:
    """Return the `bin` folder of Axolotl's environment."""
    return install("jinja2==3.1.6", sys.executable, *AXOLOTL_PACKAGES, bare=("axolotl==0.19.0",))


def read(command: Path, program: str, *words: str | Path, cwd: Path) -> list[dict[str, Any]]:
    """Run a program and return the objects that it prints."""
    output = run_command(command, "python", "-c", program, *words, cwd=cwd)
    return [json.loads(line) for line in output.splitlines() if line.startswith(('{"trained"', '{"row"', '{"file"'))]


def make_tokenizer(command: Path, folder: Path) -> Path:
    """Write a tokenizer to a folder in `folder`, and return it."""
    run_command(command, "python", "-c", TOKENIZER, folder / "tokenizer", cwd=folder)
    return folder / "tokenizer"


DATASETS = """\
import json, sys
from datasets import load_dataset
for row in load_dataset(sys.argv[1], split="train"):
    print(json.dumps({"row": row["instance_id"], "columns": sorted(row)}))
"""
"""Arguments: the folder."""

TOKENIZER = """\
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

signs = sorted(pre_tokenizers.ByteLevel.alphabet())
made = Tokenizer(models.BPE(vocab={sign: number for number, sign in enumerate(signs)}, merges=[]))
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
made.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<end>")
tokenizer.chat_template = (
    "{% if tools %}[tools]{{ tools | tojson }}\\n{% endif %}"
    "{% for message in messages %}[{{ message.role }}]{% if message.role == 'assistant' %}{% generation %}"
    "{{ message.content }}{% for call in message.tool_calls or [] %}"
    "<call>{{ call.function.name }} {{ call.function.arguments }}</call>{% endfor %}"
    "<end>{% endgeneration %}{% else %}{{ message.content }}<end>{% endif %}\\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
tokenizer.save_pretrained(sys.argv[1])
"""
"""Makes a tokenizer with a token per byte and a chat template with calls. Argument: its folder.

Axolotl finds what a template uses of a message only where that is called `message`.
"""

LLAMA_FACTORY = """\
import json, sys
from pathlib import Path
from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
from llamafactory.hparams import DataArguments, ModelArguments
from transformers import AutoTokenizer, Seq2SeqTrainingArguments

folder, tokenizer_folder, mask_history = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
name = next(iter(json.loads((Path(folder) / "dataset_info.json").read_text())))
data = DataArguments(dataset=name, dataset_dir=folder, template="qwen", cutoff_len=100_000,
                     mask_history=mask_history == "yes", overwrite_cache=True)
template = get_template_and_fix_tokenizer(tokenizer, data)
training = Seq2SeqTrainingArguments(output_dir=folder + "-out", report_to=[])
model = ModelArguments(model_name_or_path=tokenizer_folder)
for row in get_dataset(template, model, data, training, stage="sft", tokenizer=tokenizer)["train_dataset"]:
    kept = [token for token, label in zip(row["input_ids"], row["labels"]) if label >= 0]
    print(json.dumps({"trained": tokenizer.decode(kept), "all": tokenizer.decode(row["input_ids"])}))
"""
"""LLaMA-Factory's own loader, converter and encoder. Arguments: folder, tokenizer, yes or no for `mask_history`."""

TRL = """\
import json, sys
from datasets import load_dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl import SFTConfig, SFTTrainer

folder, tokenizer_folder = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16,
                                     num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=4096))
columns = ("messages", "tools")
rows = load_dataset(folder, split="train").select_columns(columns)
config = SFTConfig(output_dir=folder + "-out", assistant_only_loss=True, max_length=4096, max_steps=2, use_cpu=True,
                   report_to=[], bf16=False, save_strategy="no", per_device_train_batch_size=1, disable_tqdm=True)
trainer = SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=tokenizer)
for row in trainer.train_dataset:
    labels = row.get("labels")
    masks = row.get("assistant_masks") or [label >= 0 for label in labels]
    kept = [token for token, mask in zip(row["input_ids"], masks) if mask]
    print(json.dumps({"trained": tokenizer.decode(kept), "all": tokenizer.decode(row["input_ids"])}))
trainer.train()
"""
"""TRL's SFTTrainer: its own preparation of the rows, then two steps. Arguments: folder, tokenizer."""

AXOLOTL = """\
import json, sys
from axolotl.prompt_strategies.chat_template import StrategyLoader
from axolotl.utils.dict import DictDefault
from datasets import load_dataset
from transformers import AutoTokenizer

folder, tokenizer_folder = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
cfg = DictDefault({"train_on_inputs": False, "sequence_len": 100_000, "chat_template": "tokenizer_default"})
ds_cfg = DictDefault({"type": "chat_template", "field_messages": "messages", "field_tools": "tools",
                      "message_field_training": "weight",
                      "message_property_mappings": {"role": "role", "content": "content"}})
strategy = StrategyLoader()(tokenizer, cfg, ds_cfg)
for row in load_dataset(folder, split="train"):
    made = strategy.tokenize_prompt(row)
    kept = [token for token, label in zip(made["input_ids"], made["labels"]) if label >= 0]
    print(json.dumps({"trained": tokenizer.decode(kept), "all": tokenizer.decode(made["input_ids"])}))
"""
"""Axolotl's strategy `chat_template`. Arguments: folder, tokenizer."""

HARBOR = """\
import json, sys
from pathlib import Path
from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator

for path in sorted(Path(sys.argv[1]).glob("trajectories/*.json")):
    validator = TrajectoryValidator()
    is_valid = validator.validate(path)
    steps = len(Trajectory.model_validate_json(path.read_text()).steps) if is_valid else 0
    print(json.dumps({"file": path.name, "valid": is_valid, "errors": validator.errors, "steps": steps}))
"""
"""Harbor's validator of ATIF. Argument: the folder."""
