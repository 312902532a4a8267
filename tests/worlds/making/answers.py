"""A model server that makes the three golden worlds: twelve seed tasks, twelve themes, three worlds, six scenarios.

Its answers are cut from `worlds.examples` and depend on the request alone. Of the four themes of each world one lies in
the centre of its cluster.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.samplers.scripted_model import Call, ModelRequest, ScriptedModel, Turn
from tests.worlds.making.golden import CutWorld, cut_world
from tests.worlds.making.states import ease
from worlds.definitions import Check, ScenarioDefinition
from worlds.program.analysis import analyse_program

WORLDS = ("clinic_rota", "library_loans", "parcel_depot")
LABELS: dict[str, tuple[str, ...]] = {
    "clinic_rota": ("Clinic rota", "Hospital shift planning", "Duty roster of a ward", "Doctors' leave and shifts"),
    "library_loans": ("Library loans", "Town library lending", "School library catalogue", "Book holds and fines"),
    "parcel_depot": ("Parcel depot", "Delivery route planning", "Parcel storage and pickup", "Courier depot shelves"),
}
"""World -> labels of its themes, that of the world first."""
TASKS: dict[str, tuple[str, ...]] = {
    "clinic_rota": (
        "Publish the day shift of the surgery ward and approve the leave of Dr Simic.",
        "Which night shifts in June still need a doctor? Assign Dr Rao to the first of them.",
        "Cancel the shift on Sunday and tell me who was assigned to it.",
        "Add a note to the evening shift that the new monitors arrive.",
    ),
    "library_loans": (
        "Lend the book about the river to Mrs Okafor and tell me when it is due.",
        "Renew all loans of member M-3 that are due this week.",
        "Put me into the queue for the novel that my friend has borrowed.",
        "Record that Tom paid his fine and make his membership active again.",
    ),
    "parcel_depot": (
        "Store the parcel from Bern on a shelf with room for it and plan it for the Lindau route.",
        "Which parcels wait longer than five days? Return them to their senders.",
        "Load route seven and close it when all parcels are in.",
        "Move the parcel P-12 to the cold shelf, since it must stay under eight degrees.",
    ),
}
KINDS = {
    "seed-filter": "You sort requests",
    "theme": "Infer the environment",
    "repository-task": "texts about a software project",
    "world-state": "This is the first step",
    "world-rules": "This is the second step",
    "world-class": "This is the third step",
    "world-operations": "This is the fourth step",
    "world-method": "write the method for it",
    "initial-state": "You write initial states",
    "tester": "You test an environment",
    "checker": "You check one call",
    "task": "You write tasks for agents",
    "checklist": "Turn it into a checklist",
    "check": "Write a Python function that decides",
    "solver": "carry out a task in it",
}
"""Kind of a question -> words of its prompt."""


def write_tasks(path: Path) -> Path:
    """Write the twelve seed tasks, one a line."""
    path.write_text("".join(f"{task}\n" for tasks in TASKS.values() for task in tasks))
    return path


def read_prompt(request: ModelRequest) -> str:
    """Return system prompt and first message of the user."""
    return "\n".join(str(message["content"]) for message in request.body["messages"][:2])


def find_kind(request: ModelRequest) -> str:
    """Return the kind of question."""
    system = str(request.body["messages"][0]["content"])
    return next(kind for kind, words in KINDS.items() if words in system)


def find_world(text: str) -> CutWorld:
    """Return the world that a prompt is about."""
    for name in WORLDS:
        cut = cut_world(name)
        class_name = analyse_program(cut.world.program).class_name
        marks = (
            *TASKS[name],
            f"Environment {LABELS[name][0]}\n",
            cut.introduction,
            f"class {class_name}:",
            *cut.rules[:1],
        )
        if any(mark in text for mark in marks):
            return cut
    raise AssertionError(text[-3000:])


def find_scenario(cut: CutWorld, text: str) -> ScenarioDefinition:
    """Return the scenario whose task, else whose state stands in a prompt."""
    named = next((scenario for scenario in cut.scenarios if scenario.task in text), None)
    return named or next(
        scenario for scenario in cut.scenarios if json.dumps(scenario.state, ensure_ascii=False, indent=1) in text
    )


def answer(request: ModelRequest) -> Turn:
    """Return the answer of a model that makes no mistake."""
    text, kind = read_prompt(request), find_kind(request)
    if kind == "solver":
        return solve(request, find_scenario(find_world(text), text))
    made = ANSWERS[kind](text)
    return Turn(text=made if isinstance(made, str) else json.dumps(made))


def embed(text: str) -> list[float]:
    """Return a vector: the world's axis, and within its plane a triangle around the first theme."""
    label = text.partition(":")[0]
    world = next(name for name, labels in LABELS.items() if label in labels)
    place = LABELS[world].index(label)
    angle = 2 * math.pi * place / 3
    offset = [0.0, 0.0] if place == 0 else [math.cos(angle), math.sin(angle)]
    return [10.0 * (name == world) for name in WORLDS] + offset


def open_scripted_model(reply: Callable[[ModelRequest], Turn] = answer, **more: Any) -> ScriptedModel:
    """Return the server."""
    return ScriptedModel(reply, embed=embed, **more)


# ------------------------------------------------------------------------------------------------------- answers


def _answer_filter(text: str) -> dict[str, Any]:
    find_world(text)
    return {"analysis": "It reads and changes the records of one system.", "answer": True}


def _answer_theme(text: str) -> dict[str, Any]:
    world, place = next(
        (name, place) for name, tasks in TASKS.items() for place, task in enumerate(tasks) if task in text
    )
    return {
        "analysis": "The records that the request needs are kept by one system.",
        "label": LABELS[world][place],
        "description": f"{cut_world(world).introduction} Its staff look things up in it and change them.",
        "usefulness": 8,
        "modelability": 9,
    }


def _answer_repository(text: str) -> dict[str, Any]:
    about = text.partition("\nProject ")[2].lower()
    for name, tasks in TASKS.items():
        if name.partition("_")[0] in about:
            return {"analysis": "It is for such a place.", "has_domain": True, "task": tasks[0]}
    return {"analysis": "It is a tool for programmers.", "has_domain": False, "task": ""}


def _answer_state_plan(text: str) -> dict[str, Any]:
    schema = analyse_program(find_world(text).world.program).state_schema
    entities = [
        {
            "name": name,
            "role": "Kept by the environment.",
            "attributes": [{"name": "all", "type": str(inner.get("type")), "meaning": "As the class has it."}],
        }
        for name, inner in schema["properties"].items()
    ]
    return {"analysis": "These things are kept.", "entities": entities}


def _answer_rules(text: str) -> dict[str, Any]:
    cut = find_world(text)
    return {"introduction": cut.introduction, "rules": cut.rules}


def _answer_class(text: str) -> str:
    return f"```python\n{find_world(text).class_source}```\n"


def _answer_operations(text: str) -> dict[str, Any]:
    operations = [
        {"name": name, "kind": kind, "summary": f"It does what {name.replace('_', ' ')} means."}
        for name, kind in find_world(text).kinds.items()
    ]
    return {"analysis": "These are useful.", "operations": operations}


def _answer_method(text: str) -> str:
    match = re.search(r"^Operation (\w+) ", text, re.MULTILINE)
    assert match
    return f"```python\n{find_world(text).methods[match[1]]}```\n"


def _answer_state(text: str) -> dict[str, Any]:
    match = re.search(r"This is state (\d+) of (\d+)", text)
    assert match
    cut = find_world(text)
    state = cut.scenarios[(int(match[1]) - 1) % len(cut.scenarios)].state
    return ease(cut.world.name, state) if match[2] == "1" else state


def _answer_test(text: str) -> dict[str, Any]:
    rows = re.findall(r"^(\w+): (\d+), (\d+)$", text, re.MULTILINE)
    tool, positive, negative = rows[0]
    schema = next(
        operation for operation in analyse_program(find_world(text).world.program).tools if operation.name == tool
    ).parameters
    number = int(positive) + int(negative)
    arguments = {name: _make_value(schema["properties"][name], number) for name in schema["required"]}
    case = "positive" if int(positive) <= int(negative) else "negative"
    return {"thought": "It is refused.", "function": tool, "parameters": arguments, "case": case}


def _make_value(schema: dict[str, Any], number: int) -> Any:
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    return {"string": f"X-{number}", "integer": number, "number": 1.5, "boolean": True, "array": [], "object": {}}[kind]


def _answer_verdict(text: str) -> dict[str, Any]:
    assert "State before" in text
    return {"analysis": "The call was refused for a good reason.", "verdict": "Pass", "reason": "It is right."}


def _answer_task(text: str) -> dict[str, Any]:
    return {"analysis": "All of it is possible.", "task": find_scenario(find_world(text), text).task}


def _answer_checklist(text: str) -> dict[str, Any]:
    checks = find_scenario(find_world(text), text).checks
    return {"analysis": "The task demands these.", "items": [check.item for check in checks]}


def _answer_check(text: str) -> str:
    name = re.search(r"`def (\w+)\(", text)
    assert name
    check = find_check(find_scenario(find_world(text), text).checks, text)
    return f"```python\n{check.source.replace(f'def {check.function}(', f'def {name[1]}(')}```\n"


def find_check(checks: Sequence[Check], text: str) -> Check:
    """Return the check whose item a prompt names."""
    return next(check for check in checks if re.search(rf"^{re.escape(check.item)}$", text, re.MULTILINE))


ANSWERS: dict[str, Callable[[str], Any]] = {
    "seed-filter": _answer_filter,
    "theme": _answer_theme,
    "repository-task": _answer_repository,
    "world-state": _answer_state_plan,
    "world-rules": _answer_rules,
    "world-class": _answer_class,
    "world-operations": _answer_operations,
    "world-method": _answer_method,
    "initial-state": _answer_state,
    "tester": _answer_test,
    "checker": _answer_verdict,
    "task": _answer_task,
    "checklist": _answer_checklist,
    "check": _answer_check,
}


def solve(request: ModelRequest, scenario: ScenarioDefinition) -> Turn:
    """Return the next call of the golden solution, with ids out of the results so far; then the end."""
    calls = scenario.solution or ()
    place = request.place
    if place >= len(calls):
        return Turn(text="Task Completed")
    results = [json.loads(message["content"]) for message in request.body["messages"] if message["role"] == "tool"]

    def resolve(value: Any) -> Any:
        if isinstance(value, dict) and "$result" in value:
            number, *keys = value["$result"]
            result = results[number]
            for key in keys:
                result = result[key]
            return result
        return [resolve(item) for item in value] if isinstance(value, list) else value

    arguments = {name: resolve(value) for name, value in calls[place].arguments.items()}
    return Turn(calls=(Call(calls[place].tool, arguments),))
