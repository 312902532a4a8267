"""What is read from the output of each program about how it ended. The outputs are small ones of the real shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backends.sandbox.execution import ExecResult
from samplers.scaffolds.base import CommandScaffold
from samplers.scaffolds.registry import load_scaffold

GATEWAY_ERROR = {"error": {"message": "the upstream answered 400: no\n right form", "code": "gateway_rejected"}}
TEXT = "the upstream answered 400: no right form"


def render(*events: dict[str, Any], exit_code: int = 0) -> ExecResult:
    """Return the result of a command that prints these events after another line, and half an event in the middle."""
    lines = ["starting {", *map(json.dumps, events[:-1]), '{"type": "cut off', *map(json.dumps, events[-1:])]
    return ExecResult(exit_code=exit_code, output="\n".join(lines), files={}, seconds=1.0, killed_by=None)


def crash(text: str) -> ExecResult:
    """Return the result of a program that ends with an exception."""
    return ExecResult(exit_code=1, output=text, files={}, seconds=1.0, killed_by=None)


def fail_openhands(code: str, detail: str) -> ExecResult:
    return render({"status": "error", "errors": [{"code": code, "detail": detail}]})


CASES: list[tuple[str, ExecResult, str | None, str]] = [
    ("claude-code", render({"type": "result", "subtype": "success", "is_error": False}), None, ""),
    (
        "claude-code",
        render(
            {"type": "result", "subtype": "error_max_turns", "is_error": True, "errors": ["Reached 4"]}, exit_code=1
        ),
        "turn-limit",
        "Reached 4",
    ),
    (
        "claude-code",
        render({"type": "result", "is_error": True, "result": f"API Error: 400 {TEXT}"}, exit_code=1),
        "model-failed",
        f"API Error: 400 {TEXT}",
    ),
    ("codex", render({"type": "turn.started"}, {"type": "turn.completed"}), None, ""),
    (
        "codex",
        render({"type": "turn.failed", "error": {"message": json.dumps(GATEWAY_ERROR)}}, exit_code=1),
        "model-failed",
        TEXT,
    ),
    ("opencode", render({"type": "step_finish"}), None, ""),
    (
        "opencode",
        render({"type": "error", "error": {"name": "APIError", "data": GATEWAY_ERROR["error"]}}, exit_code=1),
        "model-failed",
        TEXT,
    ),
    (
        "opencode",
        render({"type": "error", "error": {"name": "UnknownError"}}),
        "model-failed",
        '{"name": "UnknownError"}',
    ),
    ("qwen-code", render({"type": "result", "subtype": "success", "is_error": False}), None, ""),
    ("qwen-code", render({"type": "user"}, exit_code=53), "turn-limit", ""),
    ("qwen-code", render({"type": "result", "is_error": True, "error": {"message": TEXT}}), "model-failed", TEXT),
    ("mini-swe-agent", render({"exit_status": "Submitted"}), None, ""),
    ("mini-swe-agent", render({"exit_status": "LimitsExceeded"}), "turn-limit", "exit status LimitsExceeded"),
    ("mini-swe-agent", render({"exit_status": "RepeatedFormatError"}), "no-action", "exit status RepeatedFormatError"),
    ("mini-swe-agent", crash("SyntaxError: no program"), "agent-failed", "exit code 1: SyntaxError: no program"),
    ("mini-swe-agent", render({"exit_status": "Strange"}), "agent-failed", "exit status Strange"),
    ("openhands", render({"status": "finished", "errors": []}), None, ""),
    ("openhands", fail_openhands("MaxIterationsReached", "4"), "turn-limit", "MaxIterationsReached: 4"),
    ("openhands", fail_openhands("LLMBadRequestError", TEXT), "agent-failed", f"LLMBadRequestError: {TEXT}"),
    ("openhands", fail_openhands("ImportError", "no tools"), "agent-failed", "ImportError: no tools"),
    ("openhands", render({"status": "stuck", "errors": []}), "agent-failed", "stuck"),
]


@pytest.mark.parametrize(("name", "result", "reason", "detail"), CASES)
def test_the_last_event_says_how_a_program_ended(
    name: str, result: ExecResult, reason: str | None, detail: str
) -> None:
    end = describe_end(name, result)
    assert (end.reason, end.detail, end.output) == (reason, detail, result.output)


def describe_end(name: str, result: ExecResult) -> Any:
    scaffold = load_scaffold(name)
    assert isinstance(scaffold, CommandScaffold)
    return scaffold.describe_end(result)
