"""Conversations as tokens: the chat template, the tokenizer, and the way back from an answer's text to tool calls."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END = "<|end|>"
CALL = "<|call|>"
PAD = "<|pad|>"
SPECIAL = (PAD, END, CALL, "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")
PIECES = Regex(r"[A-Za-z',.:;]*(?: [A-Za-z',.:;]+){4,}| {2,}| ?[A-Za-z]+|\n+|[0-9]| ?[^A-Za-z0-9\s_/]+|.")
"""Five words of prose or more are one piece, so that what all prompts share takes few tokens; else words and marks."""
TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'assistant' -%}"
    "<|assistant|>{% generation %}{{ message.content or '' }}"
    "{%- for call in message.tool_calls or [] -%}"
    "<|call|>{{ call.function.name }} "
    "{{ call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}"
    "{%- endfor -%}"
    "<|end|>{% endgeneration %}"
    "{%- else -%}"
    "<|{{ message.role }}|>{{ message.content }}<|end|>"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
"""The scaffold's system text names its tools; their descriptions are left out."""


def train_tokenizer(rows: Iterable[Mapping[str, Any]], vocabulary: int) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer with the chat template, trained on the texts of conversations.

    Args:
        rows: with `messages` as of OpenAI's chat completions.
        vocabulary: size at most.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(PIECES, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((text for row in rows for text in _list_texts(row)), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, chat_template=TEMPLATE, model_max_length=2048
    )


def _list_texts(row: Mapping[str, Any]) -> Iterable[str]:
    for message in row["messages"]:
        yield message.get("content") or ""
        for call in message.get("tool_calls") or ():
            arguments = call["function"]["arguments"]
            yield f"{call['function']['name']} "
            yield arguments if isinstance(arguments, str) else json.dumps(arguments)


def parse_answer(text: str) -> dict[str, Any]:
    """Return the message of an answer's text, its calls with new ids. What follows `CALL` is a name and arguments."""
    content, *calls = text.removesuffix(END).split(CALL)
    message: dict[str, Any] = {"role": "assistant", "content": content or None}
    if calls:
        message["tool_calls"] = [_parse_call(call) for call in calls]
    return message


def render_answer(message: Mapping[str, Any]) -> str:
    """Return the text that identifies an answer: of equal messages it is equal, whatever the ids of their calls."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return CALL.join([message.get("content") or "", *(f"{call['name']} {call['arguments']}" for call in calls)])


def _parse_call(text: str) -> dict[str, Any]:
    name, _, arguments = text.partition(" ")
    return {
        "id": f"call_{secrets.token_hex(8)}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
