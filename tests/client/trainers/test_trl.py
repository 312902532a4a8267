"""Objectives in TRL: real training steps of a tiny model, equal to those of TRL's own losses where both exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import trl
from datasets import Dataset
from mergemill_client.training import fp32_head
from mergemill_client.training.trl import ObjectiveTrainer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

WORDS = ["<pad>", "<eos>", "<unk>", *(f"w{number}" for number in range(29))]


def make_tokenizer() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def reward_words(completions: list[str], **_: Any) -> list[float]:
    return [completion.count("w3") + 0.1 * len(set(completion.split())) for completion in completions]


def make_trainer(folder: Path, kind: type[GRPOTrainer] = ObjectiveTrainer, **settings: Any) -> GRPOTrainer:
    own = {name: settings.pop(name) for name in ("objective", "eps_high", "eps_low") if name in settings}
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(WORDS), pad_token_id=0, eos_token_id=1, **sizes))
    defaults: dict[str, Any] = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "num_generations": 4,
        "num_iterations": 3,
        "max_completion_length": 6,
        "max_steps": 9,
        "learning_rate": 0.05,
        "gradient_checkpointing": False,
    }
    config = GRPOConfig(
        str(folder), use_cpu=True, bf16=False, report_to=[], save_strategy="no", logging_steps=1, **defaults | settings
    )
    prompts = Dataset.from_dict({"prompt": ["w1 w2", "w4 w5 w6"] * 4})
    return kind(
        model,
        reward_funcs=reward_words,
        args=config,
        train_dataset=prompts,
        processing_class=make_tokenizer(),
        **own,
    )


def train(trainer: GRPOTrainer) -> tuple[list[dict[str, float]], torch.Tensor]:
    """Return the log of each step, and the weights of the output layer at the end."""
    trainer.train()
    return [log for log in trainer.state.log_history if "loss" in log], trainer.model.lm_head.weight.detach().clone()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"objective": "cispo", "eps_high": 4.0}, {"loss_type": "cispo", "epsilon_high": 5.0}),
        ({"objective": "dapo", "eps_high": 0.28, "eps_low": 0.2}, {"loss_type": "dapo", "epsilon_high": 0.28}),
        ({"objective": "grpo", "eps_high": 0.2}, {"loss_type": "grpo", "epsilon": 0.2}),
    ],
)
def test_training_steps_are_those_of_trl(ours: dict[str, Any], theirs: dict[str, Any], tmp_path: Path) -> None:
    assert trl.__version__ == "1.16.0"
    logs, weights = train(make_trainer(tmp_path, **ours))
    expected, expected_weights = train(make_trainer(tmp_path, GRPOTrainer, **theirs))
    assert len(logs) == 9
    for name in ("loss", "grad_norm", "entropy"):
        assert [log[name] for log in logs] == pytest.approx([log[name] for log in expected], rel=1e-4, abs=1e-6), name
    torch.testing.assert_close(weights, expected_weights, rtol=1e-3, atol=1e-4)
    assert max(log["ratio_max"] for log in logs) > 1.3
    assert max(log["clipped"] for log in logs) > 0


def test_the_lower_bound_changes_the_training_steps(tmp_path: Path) -> None:
    weights = [train(make_trainer(tmp_path, eps_high=4.0, eps_low=low))[1] for low in (None, 1.0, 0.01)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.allclose(weights[0], weights[2])


@pytest.mark.parametrize(
    "setting", [{"entropy_coef": 0.1}, {"top_entropy_quantile": 0.5}, {"importance_sampling_level": "sequence"}]
)
def test_settings_that_change_the_loss_in_another_way_are_refused(setting: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        make_trainer(tmp_path, eps_high=4.0, **setting)
    with pytest.raises(ValueError, match="cispo, ppo, dapo, grpo"):
        make_trainer(tmp_path, objective="reinforce", eps_high=4.0)


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_of_transformers_computes_its_logits_in_fp32(tied: bool) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(WORDS), tie_word_embeddings=tied, **sizes)
    model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    ids = torch.arange(len(WORDS))[None]
    hidden = model.model(ids).last_hidden_state
    before = model(ids).logits
    logits = fp32_head(model)(ids).logits
    assert (before.dtype, logits.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(logits, hidden.float() @ model.lm_head.weight.float().T)
    assert (model.lm_head.weight is model.model.embed_tokens.weight) is tied
