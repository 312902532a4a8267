"""What a model hands in: the submission in the text of its answer, in the form that the kind of task takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Union

from mergemill_client.errors import ClientError

SUBMISSION_FORMS = ("patch", "tests", "review", "rollout")
FORMS = {"review": "review", "test-writing": "tests", "instructions": "rollout"}
"""Kind of task -> form of its submissions; `patch` for all others."""
Content = Union[str, bytes, dict[str, Any]]
_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE)


def choose_form(kind: str) -> str:
    """Return the form of submissions to a kind of task: `patch`, `tests`, `review` or `rollout`."""
    return FORMS.get(kind, "patch")


def extract_submission(text: str) -> str:
    """Return the submission in a model's answer: the last fenced block, else an answer that is a patch or JSON.

    An answer with neither hands in nothing: the result is empty. What stands before `</think>` is not looked at.
    """
    answer = text.rpartition("</think>")[2]
    blocks = [match.group("body") for match in _FENCE.finditer(answer)]
    block = blocks[-1] if blocks else answer.lstrip()
    if not blocks and not block.startswith(("diff --git ", "--- ", "{")):
        return ""
    return block if block.endswith("\n") or not block else block + "\n"


def encode_submission(submission: Mapping[str, Content | None]) -> dict[str, Any]:
    """Return the one submission that is given, as JSON: form -> content.

    Args:
        submission: form, one of SUBMISSION_FORMS -> content; None for one that is not given.

    Raises:
        ClientError: none or several are given, or a form is not known.
    """
    given = {form: content for form, content in submission.items() if content is not None}
    if len(given) != 1 or not given.keys() <= set(SUBMISSION_FORMS):
        raise ClientError("give one of patch, tests, review and rollout")
    return {
        form: content.decode(errors="surrogateescape") if isinstance(content, bytes) else content
        for form, content in given.items()
    }
