"""Options of `mergemill sample` that make no sense are refused before a database, an engine or a model is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergemill.cli.agents.sample import parse_sampling
from tests.cli import run_mergemill


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scaffold", ",", "--model", "m"), "--scaffold names none"),
        (("--scaffold", "react", "--model", ""), "--model is missing"),
        (("--scaffold", "react", "--model", "m", "--attempts", "0"), "neither a number from 1 to 10000 nor staged"),
        (("--scaffold", "react", "--model", "m", "--attempts", "99999999999"), "neither a number from 1 to 10000"),
        (("--scaffold", "react", "--model", "m", "--sampling", "hot"), "is not NAME=VALUE"),
        (("--scaffold", "react", "--model", "m", "--sampling", "messages=[]"), "messages is the agent's"),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run_mergemill("sample", *words, cwd=tmp_path)
    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--scaffold", "react", "--system", "none.md"), 3, "--system: cannot read none.md: No such file"),
        (("--scaffold", "react", "--system", "blank.md"), 3, "blank.md is not a text of 1 to 100000 bytes"),
        (("--scaffold", "react", "--system", "long.md"), 3, "long.md is not a text of 1 to 100000 bytes"),
        (("--scaffold", "react", "--system", "bytes.md"), 3, "cannot read bytes.md: it is no text"),
        (("--scaffold", "react,oracle", "--system", "text.md"), 2, "oracle has no system prompt that can be added to"),
        (("--scaffold", "tools", "--environment", "synthetic", "--system", "text.md"), 2, "--system is for tasks"),
    ],
)
def test_a_text_that_cannot_be_added_to_a_system_prompt_is_one_line(
    words: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    for name, content in {"blank": b" \n", "long": b"a" * 100_001, "bytes": b"\xff", "text": b"Be brief."}.items():
        (tmp_path / f"{name}.md").write_bytes(content)
    done = run_mergemill("sample", "--model", "m", *words, cwd=tmp_path)
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_settings_of_sampling_are_json_where_they_can_be() -> None:
    words = ["temperature=0.7", 'stop=["a"]', "tier=fast", "seed=NaN", "note=a=b"]
    assert parse_sampling(words) == {
        "temperature": 0.7,
        "stop": ["a"],
        "tier": "fast",
        "seed": "NaN",  # no server reads it as a number
        "note": "a=b",
    }
