"""Checks of the final state."""

from typing import Any

State = dict[str, Any]


def _find_new_parcel(initial_state: State, final_state: State) -> dict[str, Any]:
    made = [one for key, one in final_state["parcels"].items() if key not in initial_state["parcels"]]
    return made[0] if len(made) == 1 else {}


def has_registered_parcel(initial_state: State, final_state: State) -> bool:
    """Has registered one parcel of 1200 grams for Xenia Wolf."""
    parcel = _find_new_parcel(initial_state, final_state)
    address = {"street": "Mill Lane 8", "city": "Ashford"}
    return (parcel.get("recipient"), parcel.get("weight_grams"), parcel.get("address")) == ("Xenia Wolf", 1200, address)


def has_loaded_new_parcel(initial_state: State, final_state: State) -> bool:
    """Has loaded the new parcel for C-7."""
    parcel = _find_new_parcel(initial_state, final_state)
    found = [parcel.get(name) for name in ("status", "courier_id", "locker_id", "attempts", "signed_by")]
    return found == ["loaded", "C-7", None, 0, None]


def has_corrected_address(final_state: State) -> bool:
    """Has changed the address of P-54."""
    address: dict[str, str] = final_state["parcels"]["P-54"]["address"]
    return address == {"street": "Castle Hill 16", "city": "Folkestone"}


def has_loaded_p54(final_state: State) -> bool:
    """Has loaded P-54 for C-7."""
    parcel: dict[str, Any] = final_state["parcels"]["P-54"]
    return (parcel["status"], parcel["courier_id"], parcel["locker_id"]) == ("loaded", "C-7", None)


def has_reported_damage(initial_state: State, final_state: State) -> bool:
    """Has reported the damage to P-50, once."""
    parcel: dict[str, Any] = final_state["parcels"]["P-50"]
    report = {"parcel_id": "P-50", "description": "wet on one side"}
    reports: list[dict[str, str]] = final_state["damage_reports"]
    return (parcel["status"], parcel["locker_id"]) == ("damaged", None) and reports == [
        *initial_state["damage_reports"],
        report,
    ]


def has_unloaded_p51(final_state: State) -> bool:
    """Has put P-51 into locker K-8."""
    parcel: dict[str, Any] = final_state["parcels"]["P-51"]
    ids: list[str] = final_state["lockers"]["K-8"]["parcel_ids"]
    return (parcel["status"], parcel["locker_id"], parcel["courier_id"]) == ("stored", "K-8", None) and ids == ["P-51"]


def has_closed_k9(final_state: State) -> bool:
    """Has taken the empty locker K-9 out of service."""
    locker: dict[str, Any] = final_state["lockers"]["K-9"]
    return locker["in_service"] is False and not locker["parcel_ids"]
