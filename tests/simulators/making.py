"""Seeds and simulated answers of the domain retail, and the command line with a scripted simulator."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

from tests.cli import CommandResult, run_mergemill
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn

WORDS = tuple(
    """
    amber basin cedar delta ember fjord grove haven inlet jasper knoll lunar maple north ocean pearl quartz ridge slate
    timber umber valley willow zephyr anchor bridge canyon desert engine forest garden harbor island jungle kettle
    lantern meadow needle orchard pillow quiver ribbon saddle tunnel vessel window yonder basket candle dagger
    """.strip().split()
)
THOUGHT = "The status decides what is possible. I will call the function get_order_details."
PLAIN = ("--per-seed", "1", "--simulate-scenarios", "off", "--simulate-failures", "0")
"""Options for one conversation of each seed, with nothing drawn."""
CASE = re.compile(r"case number (\d+)")
Speaker = dict[str, str]


def make_seed(number: int) -> dict[str, Any]:
    """Return a ShareGPT row; its first turn names its number."""
    user, order = f"ana_case_{number}", f"#W{4_000_000 + number}"
    return {
        "conversations": [
            say("human", f"Hello, this is case number {number}. I want to cancel an order."),
            say("gpt", "Certainly. What is your email address?"),
            say("human", f"It is ana{number}@example.org, and the order is {order}."),
            call("find_user_id_by_email", {"email": f"ana{number}@example.org"}),
            say("observation", user),
            call("get_order_details", {"order_id": order}, "Its status decides what I may do."),
            say("observation", json.dumps({"order_id": order, "status": "pending", "total": 20 + number})),
            say(
                "gpt", f"The order {order} is pending, and {20 + number} dollars would be refunded. Shall I cancel it?"
            ),
            say("human", "Yes, I ordered it by mistake."),
            call("cancel_pending_order", {"order_id": order, "reason": "ordered by mistake"}),
            say("observation", json.dumps({"order_id": order, "status": "cancelled"})),
            say("gpt", f"It is cancelled. You get {20 + number} dollars back within 5 to 7 business days."),
        ],
        "system": "You serve the customers of a shop.",
        "tools": json.dumps([{"name": "get_order_details", "description": "Return an order.", "parameters": {}}]),
    }


def say(speaker: str, text: str) -> Speaker:
    return {"from": speaker, "value": text}


def call(name: str, arguments: dict[str, Any], thought: str = "") -> Speaker:
    text = json.dumps({"name": name, "arguments": arguments})
    return say("function_call", f"<think>\n{thought}\n</think>\n{text}" if thought else text)


def write_seeds(path: Path, numbers: range | list[int]) -> Path:
    path.write_text(json.dumps([make_seed(number) for number in numbers]))
    return path


def write_answer(drawn: random.Random, *, failing: bool = False, **changes: str) -> str:
    """Return a conversation of its own as a simulator writes it. `changes`: name of a block -> another text of it."""

    def phrase(size: int) -> str:
        return " ".join(drawn.choice(WORDS) for _ in range(size))

    number = drawn.randrange(1_000_000, 9_999_999)
    user, order, email = f"{drawn.choice(WORDS)}_{number}", f"#W{number}", f"{drawn.choice(WORDS)}{number}@example.org"
    total = number % 400 + 0.5
    blocks = {
        "opening": f"HUMAN: Good day, my {phrase(6)} was late, and the {phrase(5)} is wrong. Please cancel {order}.",
        "question": f"ASSISTANT: I am sorry about the {phrase(4)}. Which email address do you use with us?",
        "email": f"HUMAN: {email}, as I wrote when the {phrase(6)} came.",
        "find": f'FUNCTION_CALL: {{"name": "find_user_id_by_email", "arguments": {{"email": "{email}"}}}}',
        "user": f"OBSERVATION: {user}",
        "error": f"OBSERVATION: Error: the service {phrase(2)} did not answer in time",
        "look": f"FUNCTION_CALL:\n<think>\n{THOUGHT}\n</think>\n"
        f'{{"name": "get_order_details", "arguments": {{"order_id": "{order}"}}}}',
        "order": f'OBSERVATION: {{"order_id": "{order}", "status": "pending", "total": {total}, "of": "{phrase(7)}"}}',
        "offer": f"ASSISTANT: The order {order} with {phrase(5)} is pending; {total} dollars due. Shall I cancel it?",
        "consent": f"HUMAN: Yes please, because of the {phrase(6)}. It is no longer needed.",
        "cancel": f'FUNCTION_CALL: {{"name": "cancel_pending_order", "arguments": {{"order_id": "{order}", '
        '"reason": "no longer needed"}}',
        "cancelled": f'OBSERVATION: {{"order_id": "{order}", "status": "cancelled", "note": "{phrase(5)}"}}',
        "end": f"ASSISTANT: Done: {order} is cancelled, and {total} dollars are on their way. Regards, {phrase(4)}.",
    }
    names = [name for name in blocks if name != "error"]
    if failing:
        names[4:4] = ["error", "find"]
    filled = {name: text.replace("ORDER", order).replace("EMAIL", email) for name, text in changes.items()}
    texts = [{**blocks, **filled}[name] for name in names]
    return "\n\n".join(text for text in texts if text)


def read_prompt(request: ModelRequest) -> str:
    return "\n".join(str(message["content"]) for message in request.body["messages"])


def find_case(request: ModelRequest) -> int:
    """Return the number of the seed in a prompt."""
    match = CASE.search(read_prompt(request))
    assert match
    return int(match[1])


def is_verdict(request: ModelRequest) -> bool:
    """Return whether a request is the pre-filter's."""
    return "You review conversations" in read_prompt(request)


def accept_seed(request: ModelRequest) -> Turn:
    """Return the verdict that all is well, with quotes of the seed."""
    number = find_case(request)
    quote = f"Hello, this is case number {number}. I want to cancel an order."
    head = {"holds": True, "because": "It is.", "quote": quote}
    return Turn(text=json.dumps({"completeness": head, "logic": head}))


def make_random(request: ModelRequest) -> random.Random:
    """Return random numbers that depend on the call alone: its key, or its content where it has none."""
    key = request.headers.get("idempotency-key") or request.fingerprint
    return random.Random(hashlib.sha256(key.encode()).digest())


def answer_well(request: ModelRequest) -> Turn:
    """A simulator that makes no mistake."""
    if is_verdict(request):
        return accept_seed(request)
    return Turn(text=write_answer(make_random(request), failing="One call fails on the way" in read_prompt(request)))


def simulate(
    folder: Path, model: ScriptedModel | str, *words: str, seeds: Path | str = "seeds.json", **variables: str
) -> CommandResult:
    """Run `mergemill simulate sft` with JSON output."""
    url = model if isinstance(model, str) else model.url
    named = ("--seeds", str(seeds), "--llm", url, "--model", "scripted")
    domain = () if "--domain" in words else ("--domain", "retail")
    out = () if "--out" in words else ("--out", "out")
    return run_mergemill("simulate", "sft", *named, *domain, *out, *words, "--json", cwd=folder, **variables)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
