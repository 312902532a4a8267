"""A small domain pack, its seeds, and a script that plays persons, tools and judge."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.samplers.scripted_model import ModelRequest, Turn
from tests.simulators.environment.making import is_judge, read_latest
from tests.simulators.making import make_random, make_seed, read_prompt

POLICY = "Serve the customers of a shop. Ask for the email address, look at the order, and cancel it if they agree."
CASES = (13, 28, 37, 42, 64, 71)
"""Numbers of the cases of episodes."""
TAUGHT_CASES = tuple(number for number in range(10, 80) if number not in CASES)
"""Numbers of cases that conversations to train on may be about: the same digits in other pairs."""
UNREADABLE = 37
"""The case whose judge cannot be read."""
TOOLS = {
    "find_user_id_by_email": ["email"],
    "get_order_details": ["order_id"],
    "cancel_pending_order": ["order_id", "reason"],
}
MARKERS = {"human": "HUMAN", "gpt": "ASSISTANT", "function_call": "FUNCTION_CALL", "observation": "OBSERVATION"}
ORDER = re.compile(r"order is #W(\d+)")
ANSWERS = {
    "find_user_id_by_email": 4,
    "get_order_details": 6,
    "cancel_pending_order": 10,
    "email": 2,
    "cancel it": 8,
}
"""What an agent's turn contains -> the turn of the seed that answers it. Anything else ends the conversation."""
CANCELLED = re.compile(r"cancel_pending_order\W+arguments\W+order_id\W+#W(\d+)")


def write_shop(folder: Path) -> Path:
    """Write the pack; return its folder."""
    folder.mkdir(parents=True)
    tools = [
        {
            "name": name,
            "description": f"{name.replace('_', ' ').capitalize()}.",
            "parameters": {
                "type": "object",
                "properties": {argument: {"type": "string"} for argument in arguments},
                "required": arguments,
            },
        }
        for name, arguments in TOOLS.items()
    ]
    (folder / "tools.json").write_text(json.dumps(tools))
    (folder / "policy.md").write_text(POLICY)
    (folder / "format.toml").write_text("turn_tolerance = 5\n")
    (folder / "validators.toml").write_text('ids = ["order_id"]\n')
    return folder


def write_cases(path: Path) -> Path:
    """Write the seeds, each of which is a task of `simulate env` as well."""
    path.write_text(json.dumps([make_seed(number) for number in CASES]))
    return path


def write_conversation(request: ModelRequest) -> Turn:
    """Write a conversation about another case, as a simulator does."""
    number = make_random(request).choice(TAUGHT_CASES)
    turns = make_seed(number)["conversations"]
    return Turn(text="\n\n".join(f"{MARKERS[turn['from']]}: {_cut_thought(turn['value'])}" for turn in turns))


def _cut_thought(text: str) -> str:
    return text.rpartition("</think>\n")[2]


def play_case(request: ModelRequest) -> Turn:
    """Play person or tool in an episode, or judge it: 1 where the order that was named is cancelled."""
    prompt = read_prompt(request)
    if is_judge(request):
        return Turn(text=_judge(prompt))
    return Turn(text=_answer(read_latest(request), prompt))


def _judge(prompt: str) -> str:
    if f"case number {UNREADABLE}." in prompt:
        return "?"
    named, cancelled = ORDER.search(prompt), CANCELLED.search(prompt.replace("\\", ""))
    is_right = bool(named and cancelled and named[1] == cancelled[1])
    return json.dumps({"reasoning": "The order decides.", "reward": int(is_right)})


def _answer(latest: str, prompt: str) -> str:
    match = re.search(r"case number (\d+)", prompt)
    turns = [turn["value"] for turn in make_seed(int(match[1]) if match else 0)["conversations"]]
    for sign, place in ANSWERS.items():
        if sign in latest:
            return str(turns[place])
    return "[TERMINATE]"
