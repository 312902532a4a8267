"""History of a conversation as it is sent: counted in tokens, and cleared by a rule before each request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samplers.context.rules import ChatMessage, ContextRule

CHARS_PER_TOKEN = 4
"""Characters that count as a token where the server has not counted."""


@dataclass
class ConversationHistory:
    """Messages of a conversation in the form of chat completions. What was cleared once stays cleared."""

    rule: ContextRule
    messages: list[ChatMessage] = field(default_factory=list)
    _n_tokens: int = 0
    """Tokens of the first `_n_counted` messages, as the server counted them."""
    _n_counted: int = 0

    def append(self, message: ChatMessage) -> None:
        """Append a message that is no answer."""
        self.messages.append(message)

    def append_answer(self, response: Mapping[str, Any]) -> dict[str, Any]:
        """Append the answer of a response and return it."""
        answer = dict(response["choices"][0]["message"])
        self.messages.append(answer)
        usage = response.get("usage") or {}
        if n_tokens := (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0):
            self._n_tokens, self._n_counted = n_tokens, len(self.messages)
        return answer

    def prepare(self) -> Sequence[ChatMessage]:
        """Clear what the rule clears, and return the messages of the next request."""
        cleared = self.rule.clear(self.messages, self.count_tokens())
        if cleared != self.messages:
            self.messages, self._n_tokens, self._n_counted = cleared, 0, 0
        return self.messages

    def count_tokens(self) -> int:
        """Return the number of tokens, estimated for what the server has not counted."""
        uncounted = self.messages[self._n_counted :]
        return self._n_tokens + sum(len(json.dumps(message)) for message in uncounted) // CHARS_PER_TOKEN
