"""Pre-filter of seeds: rules for the format, and a model's verdict that counts only with quotes of the seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulators.conversation import Dialogue, DialogueTurn, FunctionCall, TurnRole
from simulators.prefilter import SeedReason, judge_by_rules
from simulators.seeds.seed import Seed
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import answer_well, find_case, is_verdict, make_seed, read_lines, simulate, write_seeds

HUMAN = DialogueTurn(role=TurnRole.HUMAN, text="Show W1.")
CALL = DialogueTurn(role=TurnRole.FUNCTION_CALL, calls=(FunctionCall(name="show", arguments={}),))
UNREAD = DialogueTurn(role=TurnRole.FUNCTION_CALL, text="show(W1)")
RESULT = DialogueTurn(role=TurnRole.OBSERVATION, text="pending")
END = DialogueTurn(role=TurnRole.ASSISTANT, text="It is pending.")
EMPTY = DialogueTurn(role=TurnRole.ASSISTANT, text=" ")


def make(*turns: DialogueTurn) -> Seed:
    return Seed(conversation=Dialogue(turns=turns), file="x", line=1, format="sharegpt")


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        ((HUMAN, CALL, RESULT, END), ""),
        ((HUMAN, CALL, RESULT, RESULT, CALL, RESULT, END), ""),
        ((HUMAN, END, CALL, RESULT, END), ""),
        ((HUMAN, END, HUMAN), ""),
        ((), "there is no turn but the system's"),
        ((END, HUMAN), "turn 1 is assistant after nothing"),
        ((HUMAN, RESULT, END), "turn 2 is observation after human"),
        ((HUMAN, CALL, END), "turn 3 is assistant after function_call"),
        ((HUMAN, UNREAD, RESULT, END), "turn 2 is no call: 'show(W1)'"),
        ((HUMAN, EMPTY), "turn 2 (assistant) is empty"),
        ((HUMAN,), "the agent has no turn"),
    ],
)
def test_rules_find_malformed_seeds(turns: tuple[DialogueTurn, ...], problem: str) -> None:
    verdict = judge_by_rules(make(*turns))
    assert (verdict.detail, verdict.reason) == (problem, SeedReason.MALFORMED if problem else None)


def head(holds: bool, quote: str) -> dict[str, Any]:
    return {"holds": holds, "because": "So it is.", "quote": quote}


def answer(request: ModelRequest) -> Turn:
    """Verdicts by number: 0 good, 1 incomplete, 2 illogical, 3 invented quote, 4 then a true one, 5 none."""
    if not is_verdict(request):
        return answer_well(request)
    number = find_case(request)
    true, false = "Certainly. What is your email address?", "This sentence stands nowhere in it."
    is_second = sum(message["role"] == "assistant" for message in request.body["messages"]) > 0
    quote = false if number == 3 or (number == 4 and not is_second) else true
    if number == 5:
        return Turn(text="All is well with it.")
    return Turn(text=json.dumps({"completeness": head(number != 1, quote), "logic": head(number != 2, true)}))


def test_a_verdict_counts_only_with_quotes_that_stand_in_the_seed(tmp_path: Path) -> None:
    malformed = make_seed(6)
    malformed["conversations"][3]["value"] = "find the user"
    unsolved = {**make_seed(7), "resolved": False}
    (tmp_path / "seeds.json").write_text(json.dumps([*map(make_seed, range(6)), malformed, unsolved]))
    with ScriptedModel(answer) as model:
        done = simulate(tmp_path, model, "--per-seed", "1")
        assert done.exit_code == 0, done.stderr
        verdicts = {line["line"] - 1: line for line in read_lines(tmp_path / "out" / "seeds.jsonl")}
        n_verdicts = sum(is_verdict(request) for request in model.requests)
        again = simulate(tmp_path, model, "--per-seed", "1")
        assert sum(is_verdict(request) for request in model.requests) == n_verdicts
    reasons = {number: verdict["reason"] for number, verdict in verdicts.items()}
    assert reasons == {
        0: None,
        1: "seed-incomplete",
        2: "seed-illogical",
        3: "seed-unjudged",
        4: None,
        5: "seed-unjudged",
        6: "seed-malformed",
        7: "seed-incomplete",
    }
    assert n_verdicts == 1 + 1 + 1 + 2 + 2 + 2  # an invalid answer is requested once more; rules need none
    assert verdicts[3]["detail"] == "the quote of completeness does not stand in the conversation"
    assert verdicts[1]["opinion"]["completeness"] == head(False, "Certainly. What is your email address?")
    assert [len(verdicts[number]["answers"]) for number in (0, 4, 6)] == [1, 2, 0]
    summary = again.lines[-1]
    assert summary["rejected_seeds"] == {
        "seed-illogical": 1,
        "seed-incomplete": 2,
        "seed-malformed": 1,
        "seed-unjudged": 2,
    }
    assert (summary["planned"], summary["seeds"]) == (2, 8)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| seeds | 2 used of 8, " in card
    assert "- 2 seeds: `seed-incomplete`" in card


@pytest.mark.parametrize(("word", "planned", "verdicts"), [("rules", 1, 0), ("off", 2, 0), ("model", 1, 1)])
def test_the_pre_filter_is_a_setting(tmp_path: Path, word: str, planned: int, verdicts: int) -> None:
    malformed = make_seed(1)
    malformed["conversations"][3]["value"] = "find the user"
    (tmp_path / "seeds.json").write_text(json.dumps([make_seed(0), malformed]))
    with ScriptedModel(answer) as model:
        done = simulate(tmp_path, model, "--per-seed", "1", "--simulate-prefilter", word)
        assert (done.exit_code, done.lines[-1]["planned"]) == (0, planned), done.stderr
        assert sum(is_verdict(request) for request in model.requests) == verdicts


def test_without_a_seed_nothing_is_simulated_and_the_reasons_are_shown(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", [1, 2])
    with ScriptedModel(answer) as model:
        done = simulate(tmp_path, model, "--total", "5")
        assert (done.exit_code, model.paid) == (0, 2), done.stderr
    assert (done.lines[-1]["planned"], done.lines[-1]["kept"]) == (0, 0)
    assert set(done.lines[-1]["rejected_seeds"]) == {"seed-incomplete", "seed-illogical"}
