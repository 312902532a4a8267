"""Conversations of agents, written by hand: answers with calls of the tools of a scaffold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.instructions.actions import ModelAnswer, read_actions
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checks import make_check
from evaluation.instructions.evidence import CheckVerdict, RolloutEvidence

WORKDIR = "/testbed"
Call = tuple[str, Mapping[str, Any]]


def bash(command: str) -> Call:
    return "bash", {"command": command}


def make_answers(*answers: str | Sequence[str | Call], turn: int = 1, first: int = 0) -> list[ModelAnswer]:
    """Return answers, each a text or a list of a text and calls."""
    made = []
    for number, answer in enumerate(answers, first):
        parts = [answer] if isinstance(answer, str) else answer
        texts = [part for part in parts if isinstance(part, str)]
        calls = [
            {"id": f"call_{number}_{at}", "function": {"name": part[0], "arguments": json.dumps(part[1])}}
            for at, part in enumerate(part for part in parts if not isinstance(part, str))
        ]
        message = {"role": "assistant", "content": "\n".join(texts), "tool_calls": calls}
        made.append(ModelAnswer(exchange=number, turn=turn, message=message))
    return made


def make_evidence(
    answers: Sequence[ModelAnswer], changes: Sequence[ChangedFile] = (), tools: Sequence[str] = ()
) -> RolloutEvidence:
    log = read_actions(answers, workdir=WORKDIR, own_tools=tools)
    return RolloutEvidence(actions=log.actions, changes=changes, suffixes=(".py",))


def decide(
    check: str,
    answers: Sequence[ModelAnswer],
    changes: Sequence[ChangedFile] = (),
    tools: Sequence[str] = (),
    **arguments: Any,
) -> CheckVerdict:
    return make_check(check, arguments, "a test").decide(make_evidence(answers, changes, tools))
