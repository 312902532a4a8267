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


def test_settings_of_sampling_are_json_where_they_can_be() -> None:
    words = ["temperature=0.7", 'stop=["a"]', "tier=fast", "seed=NaN", "note=a=b"]
    assert parse_sampling(words) == {
        "temperature": 0.7,
        "stop": ["a"],
        "tier": "fast",
        "seed": "NaN",  # no server reads it as a number
        "note": "a=b",
    }
