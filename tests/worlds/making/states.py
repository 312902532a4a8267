"""States of the golden worlds in which every tool soon succeeds, for gates with few calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from worlds.definitions import State


def ease(name: str, state: State) -> State:
    """Return a state of a golden world with entries for the tools that need a rare combination."""
    return EASIER[name](copy.deepcopy(state)) if name in EASIER else state


def _ease_parcels(state: State) -> State:
    parcels: dict[str, Any] = state["parcels"]
    cities = sorted({parcel["address"]["city"] for parcel in parcels.values()})
    courier_ids = sorted(state["couriers"])
    for number, courier_id in enumerate(courier_ids):
        state["couriers"][courier_id] |= {"cities": cities, "max_parcels": 50, "is_on_tour": number == 0}
    lockers: list[dict[str, Any]] = [
        {"locker_id": f"K-9{n}", "zone": "B", "max_grams": 90_000_000, "parcel_ids": [], "in_service": n != 3}
        for n in range(4)
    ]
    state["lockers"] = {locker["locker_id"]: locker for locker in lockers}
    for parcel in parcels.values():
        parcel |= {"locker_id": None, "courier_id": None, "status": "announced"}
    made = [
        {"status": "on-tour", "courier_id": courier_ids[0]},
        {"status": "loaded", "courier_id": courier_ids[-1]},
        {"status": "stored", "locker_id": "K-90"},
        {"status": "stored", "locker_id": "K-90"},
    ]
    model = next(iter(parcels.values()))
    for number in range(24):
        # New keys follow those that the program makes: the order of a dict must be that of its keys.
        key = f"P-{state['next_parcel']}"
        state["next_parcel"] += 1
        parcels[key] = {**copy.deepcopy(model), "parcel_id": key, **made[number % 4]}
        if number % 4 >= 2:
            lockers[0]["parcel_ids"].append(key)
    return state


def _ease_library(state: State) -> State:
    model = next(iter(state["books"].values()))
    for number in range(8):
        key = f"B-{state['next_number']}"
        state["next_number"] += 1
        state["books"][key] = {**model, "book_id": key, "title": f"Volume {number}", "copies": 1, "available": 0}
    for member in state["members"].values():
        member |= {"status": "active", "fine_cents": 500, "loan_limit": 20}
    return state


EASIER: Mapping[str, Callable[[State], State]] = {"parcel_depot": _ease_parcels, "library_loans": _ease_library}
