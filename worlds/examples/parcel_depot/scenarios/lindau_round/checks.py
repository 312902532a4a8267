"""Checks of the final state."""

from typing import Any

State = dict[str, Any]


def _is_like(state: State, parcel_id: str, **expected: object) -> bool:
    parcel = state["parcels"].get(parcel_id, {})
    return all(name in parcel and parcel[name] == value for name, value in expected.items())


def has_delivered_to_greta(final_state: State) -> bool:
    """Has delivered P-101 against Greta Lindqvist's signature."""
    return _is_like(
        final_state,
        "P-101",
        status="delivered",
        signed_by="Greta Lindqvist",
        attempts=1,
        locker_id=None,
        courier_id=None,
    )


def has_recorded_attempt(final_state: State) -> bool:
    """Has recorded the attempt for P-102, which is loaded by C-1 again."""
    return _is_like(final_state, "P-102", status="loaded", courier_id="C-1", attempts=2, signed_by=None, locker_id=None)


def has_loaded_the_third(final_state: State) -> bool:
    """Has left P-107 with C-1, without an attempt."""
    return _is_like(final_state, "P-107", status="loaded", courier_id="C-1", attempts=0, locker_id=None)


def has_emptied_lockers(final_state: State) -> bool:
    """Has taken the three parcels out of their lockers."""
    lockers = final_state["lockers"]
    return not lockers["K-1"]["parcel_ids"] and not lockers["K-3"]["parcel_ids"]


def has_ended_tour(initial_state: State, final_state: State) -> bool:
    """Has ended the tour of C-1 after a delivery, and not that of C-2."""
    couriers = final_state["couriers"]
    return couriers == initial_state["couriers"] and _is_like(final_state, "P-101", status="delivered")


def has_stored_in_k2(final_state: State) -> bool:
    """Has stored P-103 in locker K-2."""
    locker: dict[str, Any] = final_state["lockers"]["K-2"]
    return _is_like(final_state, "P-103", status="stored", locker_id="K-2") and locker["parcel_ids"] == ["P-103"]


def has_returned_p104(final_state: State) -> bool:
    """Has recorded the third attempt for P-104, which is returned."""
    return _is_like(final_state, "P-104", status="returned", attempts=3, courier_id=None, signed_by=None)


def has_delivered_to_kadri(final_state: State) -> bool:
    """Has delivered P-105 against Kadri Tamm's signature."""
    return _is_like(final_state, "P-105", status="delivered", signed_by="Kadri Tamm", attempts=1, courier_id=None)
