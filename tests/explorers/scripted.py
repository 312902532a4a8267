"""A scripted model that walks, writes, evolves, judges, solves and searches for rivals on the planted corpus.

Answers depend on the request alone. The samples of a question begin with equal requests; the first answer draws a
variant from the request's key and puts it into its query, where later turns find it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.explorers.planted import CHAINS, Chain, PlantedFact
from tests.samplers.scripted_model import Call, ModelRequest, ScriptedModel, Turn

ROUNDS = 5
WRONG = "Nobody Known"
WRONG_ROUNDS = (2, 3)
"""Rounds in which an eighth of the samples is wrong."""
_SECTION = re.compile(
    r"^(?P<heading>[^\n]+)\n\n(?P<mark>[0-9a-f]{16})\n(?P<text>.*?)\n(?P=mark)$", re.DOTALL | re.MULTILINE
)
_BEGINNINGS = {
    "You explore": "walk",
    "Write a question": "write",
    "Make a question": "evolve",
    "Decide whether a quote": "imply",
    "Decide whether an answer": "compare",
    "Answer a question from a corpus": "solve",
    "Answer a question from memory": "closed",
    "An answer to a question is wrong": "rival",
    "Extract from a page": "extract",
}


def find_role(request: ModelRequest) -> str:
    """Return the work that a request is for."""
    system = request.body["messages"][0]["content"]
    return next(role for beginning, role in _BEGINNINGS.items() if system.startswith(beginning))


def read_sections(request: ModelRequest) -> dict[str, str]:
    """Return heading -> data of the first message of the user."""
    user = request.body["messages"][1]["content"]
    return {match["heading"].split(",")[0]: match["text"] for match in _SECTION.finditer(user)}


# ---------------------------------------------------------------------------------------------------------- questions


def list_clues(chain: Chain, number: int) -> list[dict[str, Any]]:
    """Return the clues of a round: each round up to the fourth blurs another, the fifth removes the last."""
    clues = []
    for at, fact in enumerate(chain.facts, 1):
        is_blurred, is_removed = at <= number, at == len(chain.facts) and number >= ROUNDS
        operation = "remove" if is_removed else "blur" if is_blurred else "none"
        text = fact.blurred_clue if is_blurred else fact.clue
        value = fact.blurred if is_blurred else ""
        clues.append({"text": text, "fact": at, "operation": operation, "entity": fact.hidden, "value": value})
    return clues


def write_question(chain: Chain, number: int) -> str:
    """Return the text of the question of a round."""
    texts = [clue["text"] for clue in list_clues(chain, number) if clue["operation"] != "remove"]
    return (
        f"谁符合以下所有条件：{'；'.join(texts)}？"
        if chain.is_chinese
        else f"Who fulfils all of this: {'; '.join(texts)}?"
    )


QUESTIONS = {write_question(chain, number): (chain, number) for chain in CHAINS for number in range(ROUNDS + 1)}


def make_draft(chain: Chain, number: int) -> dict[str, Any]:
    return {
        "question": write_question(chain, number),
        "answer": chain.answer,
        "aliases": [],
        "answer_type": "name",
        "answer_page": chain.answer_page,
        "clues": list_clues(chain, number),
    }


def find_chain(seed: str) -> Chain:
    return next(chain for chain in CHAINS if chain.seed == seed)


# -------------------------------------------------------------------------------------------------------------- roles


def answer_walk(request: ModelRequest) -> Turn:
    chain = find_chain(read_sections(request)["Seed"])
    turns = [(make_search(fact.object), make_browse(fact.page, fact.relation)) for fact in chain.facts]
    turns.append((make_search(chain.answer), make_browse(chain.answer_page, chain.answer)))
    if request.place < len(turns):
        return Turn(calls=turns[request.place])
    facts = [
        {
            "subject": fact.subject,
            "relation": fact.relation,
            "object": fact.object,
            "page": fact.page,
            "quote": fact.quote,
        }
        for fact in chain.facts
    ]
    return write_turn({"facts": facts})


def answer_write(request: ModelRequest) -> Turn:
    return write_turn(make_draft(find_chain(read_sections(request)["Seed"]), 0))


def answer_evolve(request: ModelRequest) -> Turn:
    chain, _ = QUESTIONS[read_sections(request)["Question"]]
    number = int(request.body["messages"][1]["content"].split(maxsplit=2)[1])
    return write_turn(make_draft(chain, number))


def answer_imply(request: ModelRequest) -> Turn:
    given = read_sections(request)
    is_implied = any(
        fact.quote == given["Quote"]
        and given["Clue"] in (fact.clue, fact.blurred_clue)
        and given["Answer"] in fact.quote
        for chain in CHAINS
        for fact in chain.facts
    )
    return write_turn({"reason": "as planted", "implied": is_implied})


def answer_compare(request: ModelRequest) -> Turn:
    answer = read_sections(request)["Answer"]
    return write_turn({"quote": answer, "same": False})


def answer_closed(request: ModelRequest) -> Turn:
    return write_turn({"answer": "", "confidence": 0, "quotes": []})


def answer_solve(request: ModelRequest) -> Turn:
    chain, number = QUESTIONS[read_sections(request)["Question"]]
    variant = find_variant(request)
    facts = list_active_facts(chain, number)
    turns = [(make_search(f"{facts[0].clue} v{variant}"),)]
    turns += [(make_search(f"{facts[0].clue} {at}"),) for at in range(number)]
    turns.append(tuple(make_browse(fact.page, fact.clue) for fact in facts))
    if request.place < len(turns):
        return Turn(calls=turns[request.place])
    if variant == 7 and number in WRONG_ROUNDS:
        return write_turn({"answer": WRONG, "confidence": 0.3, "quotes": []})
    quotes = [{"page": fact.page, "quote": fact.quote} for fact in facts]
    return write_turn({"answer": chain.answer, "confidence": 0.9, "quotes": quotes})


def answer_rival(request: ModelRequest) -> Turn:
    given = read_sections(request)
    chain, number = QUESTIONS[given["Question"]]
    if any("Others have answered" in heading for heading in given):
        return write_turn({"answer": WRONG, "clues": []})
    other = chain if chain.second else next_chain(chain)
    facts = [other.facts[fact_number] for fact_number in range(len(list_active_facts(chain, number)))]
    if request.place == 0:
        return Turn(calls=tuple(make_browse(fact.page, "") for fact in facts))
    clues = [{"clue": at, "page": fact.page, "quote": fact.quote} for at, fact in enumerate(facts, 1)]
    return write_turn({"answer": chain.second or other.answer, "clues": clues})


def next_chain(chain: Chain) -> Chain:
    """Return the next chain in the same language, whose facts are alike."""
    alike = [other for other in CHAINS if other.is_chinese == chain.is_chinese]
    return alike[(alike.index(chain) + 1) % len(alike)]


def list_active_facts(chain: Chain, number: int) -> list[PlantedFact]:
    clues = list_clues(chain, number)
    return [chain.facts[clue["fact"] - 1] for clue in clues if clue["operation"] != "remove"]


def find_variant(request: ModelRequest) -> int:
    """Return the variant of a sample, 0..7."""
    if request.place == 0:
        return int(request.headers["idempotency-key"][:8], 16) % 8
    calls = next(message for message in request.body["messages"] if message["role"] == "assistant")["tool_calls"]
    return int(re.search(r" v(\d)\"", calls[0]["function"]["arguments"])[1])  # type: ignore[index]


def make_search(*queries: str) -> Call:
    return Call("search", {"queries": list(queries)})


def make_browse(page: str, query: str) -> Call:
    return Call("browse", {"url": f"https://planted.example/{page}", "query": query})


def write_turn(value: Mapping[str, Any]) -> Turn:
    return Turn(text=json.dumps(value, ensure_ascii=False))


ROLES: dict[str, Callable[[ModelRequest], Turn]] = {
    "walk": answer_walk,
    "write": answer_write,
    "evolve": answer_evolve,
    "imply": answer_imply,
    "compare": answer_compare,
    "solve": answer_solve,
    "closed": answer_closed,
    "rival": answer_rival,
}


def answer(request: ModelRequest) -> Turn:
    """Return the answer to a request of any role."""
    return ROLES[find_role(request)](request)


def open_scripted_explorer(**options: Any) -> ScriptedModel:
    """Return the server of the scripted model."""
    return ScriptedModel(answer, **options)
