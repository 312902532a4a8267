"""A small world for tests, and the same world with one thing changed."""

from __future__ import annotations

from worlds.definitions import Call, Check, ScenarioDefinition, State, WorldDefinition
from worlds.examples.loading import split_checks

HEADER = """from typing import Any, ClassVar, TypedDict


class Item(TypedDict):
    item_id: str
    name: str
    shelf_id: str
    count: int
"""
WORLD = '''

class Store:
    FOREIGN_KEYS: ClassVar[dict[str, str]] = {"items.shelf_id": "shelves"}

    def __init__(self, state: dict[str, Any]) -> None:
        self.clock: int = state["clock"]
        self.shelves: dict[str, dict[str, str]] = state["shelves"]
        self.items: dict[str, Item] = state["items"]

    def get_item(self, item_id: str) -> dict[str, Any]:
        """Show an item."""
        # get
        if item_id not in self.items:
            return {"success": False, "error": "there is no such item"}
        return {"success": True, "data": self.items[item_id]}

    def count_items(self) -> dict[str, Any]:
        """Count all items."""
        # count
        return {"success": True, "data": sum(item["count"] for item in self.items.values())}

    def rename_item(self, item_id: str, name: str) -> dict[str, Any]:
        """Rename an item."""
        # rename
        if item_id not in self.items or not name:
            return {"success": False, "error": "there is no such item, or no name"}
        self.items[item_id]["name"] = name
        return {"success": True, "message": "renamed"}

    def move_item(self, item_id: str, shelf_id: str) -> dict[str, Any]:
        """Move an item to a shelf."""
        # move
        if item_id not in self.items or shelf_id not in self.shelves:
            return {"success": False, "error": "there is no such item or shelf"}
        self.items[item_id]["shelf_id"] = shelf_id
        return {"success": True, "message": "moved"}

    def add_item(self, name: str, shelf_id: str) -> dict[str, Any]:
        """Add an item."""
        # add
        if shelf_id not in self.shelves:
            return {"success": False, "error": "there is no such shelf"}
        item_id = f"I-{len(self.items) + 1}"
        self.items[item_id] = {"item_id": item_id, "name": name, "shelf_id": shelf_id, "count": 1}
        return {"success": True, "message": "added", "item_id": item_id}

    def take_items(self, item_id: str, count: int) -> dict[str, Any]:
        """Take some of an item off its shelf."""
        # take
        if item_id not in self.items or not 0 < count <= self.items[item_id]["count"]:
            return {"success": False, "error": "there are not so many"}
        self.items[item_id]["count"] -= count
        return {"success": True, "message": "taken"}
'''
STATE: State = {
    "clock": 0,
    "shelves": {"S-1": {"shelf_id": "S-1"}, "S-2": {"shelf_id": "S-2"}},
    "items": {
        "I-1": {"item_id": "I-1", "name": "lamp", "shelf_id": "S-1", "count": 40},
        "I-2": {"item_id": "I-2", "name": "vase", "shelf_id": "S-2", "count": 3},
    },
}
TASK = "Rename the item I-1 to floor lamp and move it to the shelf S-2. Then add a new item named clock on shelf S-1."
CHECKS = '''
def has_renamed(final_state):
    """Has renamed I-1."""
    return final_state["items"]["I-1"]["name"] == "floor lamp"


def has_moved(final_state):
    """Has moved I-1."""
    return final_state["items"]["I-1"]["shelf_id"] == "S-2"


def has_added(initial_state, final_state):
    """Has added a clock."""
    made = [one for key, one in final_state["items"].items() if key not in initial_state["items"]]
    return [(one["name"], one["shelf_id"]) for one in made] == [("clock", "S-1")]
'''
SOLUTION = (
    Call(tool="rename_item", arguments={"item_id": "I-1", "name": "floor lamp"}),
    Call(tool="move_item", arguments={"item_id": "I-1", "shelf_id": "S-2"}),
    Call(tool="add_item", arguments={"name": "clock", "shelf_id": "S-1"}),
)


def make_world(old: str = "", new: str = "", *, header: str = "", state: State | None = None) -> WorldDefinition:
    """Return the store with `old` replaced by `new`; the marks `# get`, `# move` and so on begin the tools' bodies.

    `header` stands in front of the class.
    """
    assert old in WORLD
    body = WORLD.replace(old, new, 1) if old else WORLD
    program = f"{header}\n{HEADER}{body}"
    return WorldDefinition(name="store", program=program, documentation="A store.", states={"first": state or STATE})


def make_checks(source: str) -> tuple[Check, ...]:
    return split_checks(source)


def make_scenario(checks: str = CHECKS, *, solution: tuple[Call, ...] | None = SOLUTION) -> ScenarioDefinition:
    return ScenarioDefinition(
        name="store.first", world="store", state=STATE, task=TASK, checks=make_checks(checks), solution=solution
    )
