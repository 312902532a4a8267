"""Many scenarios of the worlds that ship: two kinds for each world, with ids, amounts and names of their own.

A state is one of the world's own with other numbers in its ids. A task names what is to be done; which call that
takes, and with which ids, has to be read from it, and an amount that is owed has to be looked up.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.definitions import State
from worlds.examples.loading import EXAMPLES_FOLDER, load_example_world

FIRST_NAMES = ("Ada", "Bela", "Cleo", "Dario", "Elif", "Femi", "Gita", "Hugo", "Ines", "Jonas")
LAST_NAMES = ("Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Sato", "Tamm", "Urbina", "Vance")
LEAST_NUMBER, MOST_NUMBER = 10, 99
"""Numbers in ids: all have two digits."""
DEMONSTRATED, REINFORCED, MEASURED = "demonstrated", "reinforced", "measured"
PURPOSES = (DEMONSTRATED, REINFORCED, MEASURED)
"""Solutions are shown in states of the first, rewards given in those of the second, nothing is learned in the third."""


@dataclass(frozen=True, kw_only=True)
class DrawnTask:
    """A task in a state: `check` is an expression on `final_state`."""

    text: str
    item: str
    check: str
    solution: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ScenarioFamily:
    """A kind of task. `draw` may change the state, and returns the task in it."""

    world: str
    state: str
    """Name of the world's own state that others are made from."""
    id_pattern: str
    """Regular expression of ids, with their letter and their number as groups."""
    draw: Callable[[State, random.Random], DrawnTask]


@dataclass(frozen=True, kw_only=True)
class DrawnScenario:
    """A scenario for a world's folder."""

    world: str
    name: str
    state: State
    task: DrawnTask

    @property
    def full_name(self) -> str:
        """Name in the database."""
        return f"{self.world}.{self.name}"

    def write(self, folder: Path) -> None:
        """Write the scenario and its state into the folder of its world."""
        (folder / "states" / f"{self.name}.json").write_text(json.dumps(self.state))
        own = folder / "scenarios" / self.name
        own.mkdir(parents=True)
        (own / "task.md").write_text(f"{self.task.text}\n")
        (own / "scenario.json").write_text(json.dumps({"state": self.name, "solution": list(self.task.solution)}))
        (own / "checks.py").write_text(
            f'def is_done(final_state: dict) -> bool:\n    """{self.task.item}"""\n    return bool({self.task.check})\n'
        )


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def _settle(state: State, chance: random.Random) -> DrawnTask:
    member = chance.choice(list(state["members"].values()))
    member["fine_cents"] = chance.randrange(105, 995, 5)
    key = member["member_id"]
    return DrawnTask(
        text=f"Member {key} pays all that is owed. Look up the fine in cents, and record the payment.",
        item="Has recorded the payment of everything.",
        check=f"final_state['members']['{key}']['fine_cents'] == 0",
        solution=[
            _call("get_member", member_id=key),
            _call("pay_fine", member_id=key, cents={"$result": [0, "data", "fine_cents"]}),
        ],
    )


def _take_back(state: State, chance: random.Random) -> DrawnTask:
    loan = chance.choice([loan for loan in state["loans"].values() if loan["returned_on"] is None])
    key = loan["loan_id"]
    return DrawnTask(
        text=f"The book of loan {key} was returned on {state['today']}. Take it back.",
        item="Has ended the loan.",
        check=f"final_state['loans']['{key}']['returned_on'] == {state['today']!r}",
        solution=[_call("return_book", loan_id=key)],
    )


def _store(state: State, chance: random.Random) -> DrawnTask:
    parcel = next(parcel for parcel in state["parcels"].values() if parcel["status"] == "announced")
    locker = chance.choice([locker for locker in state["lockers"].values() if not locker["parcel_ids"]])
    locker["in_service"] = True
    parcel["weight_grams"] = chance.randrange(200, 4000, 100)
    key, place = parcel["parcel_id"], locker["locker_id"]
    return DrawnTask(
        text=f"The parcel {key} was announced and is here. Put it into locker {place}.",
        item="Has stored the parcel in its locker.",
        check=f"final_state['parcels']['{key}']['locker_id'] == '{place}' and "
        f"final_state['lockers']['{place}']['parcel_ids'] == ['{key}']",
        solution=[_call("store_parcel", parcel_id=key, locker_id=place)],
    )


def _deliver(state: State, chance: random.Random) -> DrawnTask:
    parcel = next(parcel for parcel in state["parcels"].values() if parcel["status"] == "on-tour")
    key, name = parcel["parcel_id"], f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}"
    return DrawnTask(
        text=f"The parcel {key} was handed over to {name}, who signed. Record the delivery.",
        item="Has recorded who signed for the parcel.",
        check=f"(final_state['parcels']['{key}']['status'], final_state['parcels']['{key}']['signed_by']) "
        f"== ('delivered', '{name}')",
        solution=[_call("record_delivery", parcel_id=key, signed_by=name)],
    )


def _decide(state: State, chance: random.Random) -> DrawnTask:
    leave = next(leave for leave in state["leaves"].values() if leave["status"] == "requested")
    for shift in state["shifts"].values():
        shift["doctor_ids"] = [other for other in shift["doctor_ids"] if other != leave["doctor_id"]]
    key, is_granted = leave["leave_id"], chance.random() < 0.5
    word, status = ("Approve", "approved") if is_granted else ("Reject", "rejected")
    return DrawnTask(
        text=f"{word} the leave {key} that was requested.",
        item=f"Has {status} the leave.",
        check=f"final_state['leaves']['{key}']['status'] == '{status}'",
        solution=[_call("decide_leave", leave_id=key, approve=is_granted)],
    )


def _fill(state: State, chance: random.Random) -> DrawnTask:
    shift = next(shift for shift in state["shifts"].values() if shift["status"] == "draft" and not shift["doctor_ids"])
    doctor = chance.choice(list(state["doctors"].values()))
    shift["needed"] = 1
    doctor["skills"] = sorted({*doctor["skills"], shift["required_skill"]})
    key, who = shift["shift_id"], doctor["doctor_id"]
    return DrawnTask(
        text=f"The draft of shift {key} has no doctor yet. Assign {who} to it, and publish it.",
        item="Has published the shift with its doctor.",
        check=f"(final_state['shifts']['{key}']['doctor_ids'], final_state['shifts']['{key}']['status']) "
        f"== (['{who}'], 'published')",
        solution=[_call("assign_doctor", shift_id=key, doctor_id=who), _call("publish_shift", shift_id=key)],
    )


MARKED, PLAIN = r"\b([BMLHPKC])-(\d+)\b", r"\b([DWSV])(\d+)\b"
COUNTERS = frozenset({"next_number", "next_parcel"})
"""Attributes that hold the number of the next id."""
FAMILIES: Mapping[str, ScenarioFamily] = {
    "settle": ScenarioFamily(world="library_loans", state="spring", id_pattern=MARKED, draw=_settle),
    "take_back": ScenarioFamily(world="library_loans", state="autumn", id_pattern=MARKED, draw=_take_back),
    "store": ScenarioFamily(world="parcel_depot", state="monday", id_pattern=MARKED, draw=_store),
    "deliver": ScenarioFamily(world="parcel_depot", state="friday", id_pattern=MARKED, draw=_deliver),
    "decide": ScenarioFamily(world="clinic_rota", state="december", id_pattern=PLAIN, draw=_decide),
    "fill": ScenarioFamily(world="clinic_rota", state="june", id_pattern=PLAIN, draw=_fill),
}
"""Name -> family."""


def renumber(state: State, pattern: str, chance: random.Random) -> State:
    """Return a state with other numbers in its ids: the ids of a letter are moved together, and so is what counts them.

    Args:
        state: initial state.
        pattern: regular expression of ids with their letter and their number as groups.
        chance: draws the numbers.
    """
    text = json.dumps(state)
    numbers: dict[str, list[int]] = defaultdict(list)
    for letter, number in re.findall(pattern, text):
        numbers[letter].append(int(number))
    shifts = {
        letter: chance.randint(LEAST_NUMBER - min(used), MOST_NUMBER - max(used))
        for letter, used in sorted(numbers.items())
    }
    made: State = json.loads(
        re.sub(pattern, lambda id_: id_[0].removesuffix(id_[2]) + str(int(id_[2]) + shifts[id_[1]]), text)
    )
    for counter in COUNTERS & made.keys():
        made[counter] = MOST_NUMBER + 1
    if "counters" in made:
        made["counters"] = dict.fromkeys(made["counters"], MOST_NUMBER)
    return made


def draw_scenarios(numbers: Mapping[str, int], kinds: Iterable[str] = FAMILIES) -> dict[str, list[DrawnScenario]]:
    """Return scenarios for each purpose, no two of them with the same task.

    Args:
        numbers: purpose -> scenarios of each family.
        kinds: names of the families.
    """
    drawn: dict[str, list[DrawnScenario]] = {purpose: [] for purpose in PURPOSES}
    for kind in kinds:
        family = FAMILIES[kind]
        chance = random.Random(kind)  # noqa: S311 - the same draw in each run
        states = load_example_world(family.world).states
        seen: set[str] = set()
        for purpose in PURPOSES:
            for number in range(1, numbers[purpose] + 1):
                state, task = _draw_new(family, states[family.state], chance, seen)
                name = f"{kind}_{purpose}_{number}"
                drawn[purpose].append(DrawnScenario(world=family.world, name=name, state=state, task=task))
    return drawn


def _draw_new(family: ScenarioFamily, state: State, chance: random.Random, seen: set[str]) -> tuple[State, DrawnTask]:
    """Return a state, and a task in it that was not drawn yet."""
    while True:
        drawn = renumber(state, family.id_pattern, chance)
        task = family.draw(drawn, chance)
        if task.text not in seen:
            seen.add(task.text)
            return drawn, task


def write_worlds(folder: Path, scenarios: Sequence[DrawnScenario]) -> list[Path]:
    """Write a folder for each world, with these scenarios in place of its own; return the folders."""
    folders = []
    for name in sorted({scenario.world for scenario in scenarios}):
        own = folder / name
        shutil.copytree(EXAMPLES_FOLDER / name, own, ignore=shutil.ignore_patterns("scenarios", "__pycache__"))
        for scenario in scenarios:
            if scenario.world == name:
                scenario.write(own)
        folders.append(own)
    return folders
