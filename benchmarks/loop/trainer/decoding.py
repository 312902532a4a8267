"""Sampling from the model, with the log-probability of each token and the memory of what a conversation has read."""

from __future__ import annotations

import threading
import zlib
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.loop.trainer.chat import parse_answer, render_answer

KEPT_CONVERSATIONS = 8
"""Conversations whose keys and values are kept."""


@dataclass(frozen=True, kw_only=True)
class SampledAnswer:
    """One answer: its tokens, their log-probabilities at the temperature of sampling, and the message they make."""

    prompt: list[int]
    tokens: list[int]
    logprobs: list[float]
    message: dict[str, Any]
    is_cut: bool


class Sampler:
    """A model and its tokenizer behind a lock. When the weights have changed, `forget` must be called."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, seed: int) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self._seed = seed
        self._asked: Counter[tuple[int, ...]] = Counter()
        self._lock = threading.Lock()
        self._read: OrderedDict[tuple[int, ...], DynamicCache] = OrderedDict()
        self._answers: dict[tuple[tuple[int, ...], str], list[int]] = {}

    def forget(self) -> None:
        """Drop what was computed with earlier weights."""
        with self._lock:
            self._read.clear()
            self._answers.clear()
            self._asked.clear()
            self._seed += 1

    def encode(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return the tokens of a prompt. Earlier answers are the tokens that were sampled, never tokenised again."""
        tokens: list[int] = []
        opening = self.tokenizer.convert_tokens_to_ids("<|assistant|>")
        for message in messages:
            sampled = None
            if message["role"] == "assistant":
                sampled = self._answers.get(((*tokens, opening), render_answer(message)))
            tokens += self._encode_message(message) if sampled is None else [opening, *sampled]
        return [*tokens, opening]

    def _encode_message(self, message: Mapping[str, Any]) -> list[int]:
        return list(self.tokenizer.apply_chat_template([message], return_dict=True)["input_ids"])

    def answer(self, messages: Sequence[Mapping[str, Any]], *, temperature: float, most: int) -> SampledAnswer:
        """Return the answer to a conversation, of at most `most` tokens."""
        with self._lock, torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            prompt = self.encode(messages)
            tokens, logprobs = self._decode(prompt, temperature, most)
            end = self.tokenizer.eos_token_id
            message = parse_answer(self.tokenizer.decode(tokens))
            is_cut = tokens[-1] != end
            self._answers[tuple(prompt), render_answer(message)] = [*tokens, end] if is_cut else tokens
        return SampledAnswer(prompt=prompt, tokens=tokens, logprobs=logprobs, message=message, is_cut=is_cut)

    def _decode(self, prompt: list[int], temperature: float, most: int) -> tuple[list[int], list[float]]:
        generator = self._make_generator(prompt)
        read, cache = self._find_read(prompt)
        fed = prompt[read:]
        tokens: list[int] = []
        logprobs: list[float] = []
        while len(tokens) < most:
            output = self.model(input_ids=torch.tensor([fed]), past_key_values=cache, use_cache=True)
            scores = torch.log_softmax(output.logits[0, -1].float() / max(temperature, 1e-6), dim=-1)
            chosen = int(torch.multinomial(scores.exp(), 1, generator=generator))
            tokens.append(chosen)
            logprobs.append(float(scores[chosen]))
            fed = [chosen]
            if chosen == self.tokenizer.eos_token_id:
                break
        self._read[*prompt, *tokens[:-1]] = cache
        while len(self._read) > KEPT_CONVERSATIONS:
            self._read.popitem(last=False)
        return tokens, logprobs

    def _make_generator(self, prompt: list[int]) -> torch.Generator:
        """Return the source of chance of an answer, which depends on the prompt and on how often it came."""
        self._asked[tuple(prompt)] += 1
        text = f"{self._seed} {self._asked[tuple(prompt)]} {prompt}"
        return torch.Generator().manual_seed(zlib.crc32(text.encode()))

    def _find_read(self, prompt: list[int]) -> tuple[int, DynamicCache]:
        """Return how many tokens of a prompt were read as the whole of an earlier conversation, and their cache."""
        known = max((key for key in self._read if tuple(prompt[: len(key)]) == key), key=len, default=None)
        return (0, DynamicCache()) if known is None else (len(known), self._read.pop(known))
