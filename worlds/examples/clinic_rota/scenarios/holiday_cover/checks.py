"""Checks of the final state."""

from typing import Any

State = dict[str, Any]


def _find_faro(state: State) -> dict[str, Any]:
    found = [doctor for doctor in state["doctors"].values() if doctor["name"] == "Dr Ines Faro"]
    return found[0] if len(found) == 1 else {}


def _find_shift(state: State) -> dict[str, Any]:
    key = ("W8", "2025-12-31", "evening")
    found = [one for one in state["shifts"].values() if (one["ward_id"], one["date"], one["period"]) == key]
    return found[0] if len(found) == 1 else {}


def has_published_s41(final_state: State) -> bool:
    """Has published S41."""
    status: str = final_state["shifts"]["S41"]["status"]
    return status == "published"


def has_added_doctor(final_state: State) -> bool:
    """Has added Dr Ines Faro with grade, skills and phone number."""
    doctor = _find_faro(final_state)
    found = (doctor.get("grade"), sorted(doctor.get("skills", [])), doctor.get("phone"))
    return found == ("senior", ["surgery", "triage"], "555-0199")


def has_drafted_shift(final_state: State) -> bool:
    """Has drafted the evening shift for 2 doctors with the skill triage."""
    shift = _find_shift(final_state)
    return (shift.get("needed"), shift.get("required_skill")) == (2, "triage")


def has_staffed_shift(final_state: State) -> bool:
    """Has assigned D33 and Dr Ines Faro to it and published it."""
    shift = _find_shift(final_state)
    expected = {"D33", _find_faro(final_state).get("doctor_id")}
    return set(shift.get("doctor_ids", [])) == expected and shift.get("status") == "published"


def has_cancelled_s42(final_state: State) -> bool:
    """Has cancelled S42, which has no doctors any more."""
    shift: dict[str, Any] = final_state["shifts"]["S42"]
    return (shift["status"], shift["doctor_ids"]) == ("cancelled", [])


def has_approved_leave(initial_state: State, final_state: State) -> bool:
    """Has requested and approved the leave of D33, once."""
    made = [one for key, one in final_state["leaves"].items() if key not in initial_state["leaves"]]
    found = [(one["doctor_id"], one["first_day"], one["last_day"], one["status"]) for one in made]
    return found == [("D33", "2026-01-02", "2026-01-05", "approved")]


def has_kept_requests(initial_state: State, final_state: State) -> bool:
    """Has not decided on the leave V51."""
    leave: dict[str, Any] = final_state["leaves"]["V51"]
    is_kept: bool = leave == initial_state["leaves"]["V51"]
    return is_kept
