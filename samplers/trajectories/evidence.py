"""Facts that the measures of a trajectory look at: answers, tool calls with their results, and the submission."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from samplers.trajectories.requests import Json, ModelRequest, get_text
from taskdb.records.rollouts import Rollout

FAILURES = re.compile(
    r"""\A\s*(?:<tool_use_error>|\[?(?:tool\s)?error\b)      # the result is an error
    |\A\s*\{\s*"success"\s*:\s*false\b                   # or an answer of a world's tool
    |^\s*(?:process\ exited\ with\ code|exit(?:ed|\ )?\s?(?:code|status)|return\ ?code)\s*:?\s*[1-9-]  # or a status
    |<(?:returncode|exit_code|exit-code)>\s*[1-9-]
    |"(?:exit_code|exitCode|returncode)"\s*:\s*[1-9-]
    |\[.{0,60}(?:exit|return)\ ?code\s*:?\s*[1-9-]
    |^Traceback\ \(most\ recent\ call\ last\)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""Texts of a failed call: an error message at its beginning, an exit status other than 0, or a traceback."""
VOLATILE = re.compile(r"^(?:chunk id|wall time|duration|elapsed(?: time)?)\s*:.*$\n?", re.IGNORECASE | re.MULTILINE)
"""Lines that scaffolds add to each result, and that differ although the result is the same."""
ACTION = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)?\s*\n(.*?)```", re.DOTALL)
"""Command in an answer of a scaffold without tools."""
TEXT_CALL = "text"
"""Name of the call of a scaffold that offers no tools."""


@dataclass(frozen=True, kw_only=True)
class ObservedCall:
    """A tool call and its result."""

    name: str
    arguments: str
    result: str | None
    """None where no later request has it."""
    is_known: bool = True
    """Whether its tool was offered and its arguments are a JSON object."""

    @property
    def has_failed(self) -> bool:
        """Whether its result reports a failure."""
        return self.result is not None and FAILURES.search(self.result) is not None

    @property
    def outcome(self) -> tuple[str, str, str | None]:
        """Name, arguments and result, without the parts that differ in every result."""
        return self.name, self.arguments, None if self.result is None else VOLATILE.sub("", self.result)

    @property
    def action(self) -> tuple[str, str]:
        """Name and arguments."""
        return self.name, self.arguments


@dataclass(frozen=True, kw_only=True)
class TrajectoryEvidence:
    """A trajectory with its rollout.

    `requests`: those of the trajectory; for a main trajectory, of all main trajectories of the rollout, as a summarised
    history continues the same work. `later`: all requests of the rollout, among which results are found.
    """

    rollout: Rollout
    requests: Sequence[ModelRequest]
    later: Sequence[ModelRequest]
    submission: bytes

    @cached_property
    def calls(self) -> list[ObservedCall]:
        """Calls of the answers in order."""
        return [call for request in self.requests if request.answer is not None for call in self._list_calls(request)]

    @cached_property
    def answers(self) -> list[str]:
        """Texts of the answers: reasoning, text and arguments of calls."""
        return [_join_answer(request.answer) for request in self.requests if request.answer is not None]

    def _list_calls(self, request: ModelRequest) -> Iterator[ObservedCall]:
        answer = request.answer or {}
        offered = {str((tool.get("function") or tool).get("name", "")) for tool in request.tools}
        for call in answer.get("tool_calls") or ():
            function = call.get("function") or {}
            name, arguments = str(function.get("name", "")), str(function.get("arguments") or "{}")
            yield ObservedCall(
                name=name,
                arguments=arguments,
                result=self._find_result(request, answer, str(call.get("id", ""))),
                is_known=name in offered and _is_object(arguments),
            )
        if not request.tools and (matches := ACTION.findall(get_text(answer))):
            result = self._find_result(request, answer, None)
            yield ObservedCall(name=TEXT_CALL, arguments="\n".join(matches).strip(), result=result)

    def _find_result(self, request: ModelRequest, answer: Json, call: str | None) -> str | None:
        """Return the result of a call from the first later request that has it.

        Without an id, the result that follows.
        """
        start = self._places[request.exchange] + 1
        for later_request in self.later[start:]:
            if (result := _search_result(later_request.messages, answer, call)) is not None:
                return result
        return None

    @cached_property
    def _places(self) -> dict[int, int]:
        return {request.exchange: place for place, request in enumerate(self.later)}


def _search_result(messages: Sequence[Json], answer: Json, call: str | None) -> str | None:
    """Return the last result of a call among messages."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if call is not None and message.get("role") == "tool" and message.get("tool_call_id") == call:
            return get_text(message)
        is_answer = message.get("role") == "assistant" and get_text(message) == get_text(answer)
        if call is None and is_answer and place + 1 < len(messages):
            return get_text(messages[place + 1])
    return None


def _join_answer(answer: Json) -> str:
    calls = [str((call.get("function") or {}).get("arguments") or "") for call in answer.get("tool_calls") or ()]
    return "\n".join([get_text(answer, "reasoning_content"), get_text(answer), *calls])


def _is_object(arguments: str) -> bool:
    try:
        parsed: Any = json.loads(arguments)
    except ValueError:
        return False
    return isinstance(parsed, dict)
